package tool

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/digest"
	"github.com/lathe-run/lathe/internal/setting"
)

// Options of a [Runner]. The zero value denies every call.
type Options struct {
	Policy   lathe.Policy               // nil denies
	Approver lathe.Approver             // nil: calls that need an approval are denied
	Settings lathe.Settings             // of runs whose RunOptions have none
	Limits   lathe.Limits               // of runs whose RunOptions have none
	Now      func() time.Time           // time.Now; latencies, rates, the cache and approvals go by it
	NewID    func(prefix string) string // random; for calls that come without an id
	// HashMode and HashKey say how args_preview_hash is made. HashKey is used by HashKeyed only.
	HashMode HashMode
	HashKey  []byte
	// Log gets a warning for a tool that panicked, without arguments and output, and the errors of tools if LogErrors is set. The line
	// of each call is written by a sink of the events.
	Log *slog.Logger
	// LogErrors writes a warning to Log with the text of each error that a tool returns, and of each output that reports a failure, cut
	// and without what looks like a key. The text may hold arguments and outputs.
	LogErrors bool
	// Journal, when set, is called right before a tool is, with the verdict under which it is called.
	// An error means that the intent could not be stored: the tool is not called, and the call is
	// answered unavailable. call may be kept and must not be changed.
	Journal func(ctx context.Context, call *lathe.CallInfo, v lathe.Verdict) error
	// OnError gets the errors of tools. They may hold arguments or secrets and are not shown anywhere else, unless LogErrors is set.
	// OnError may be called from several goroutines at once.
	OnError func(ctx context.Context, call *lathe.CallInfo, err error)
	// Secrets are replaced by tokens for the model and for tools that are not granted them; nil: no secrets.
	Secrets *Secrets
	Circuit Circuit // of each backend that tools name
	Retry   Retry   // of tools that may run again
	// CacheBytes bounds the cached outputs of tools with a CacheTTL, in bytes; 16 MiB. Negative: no cache.
	CacheBytes int
}

// HashMode says how args_preview_hash is made.
type HashMode string

// The hash modes. The zero value counts as HashCompat.
const (
	HashCompat HashMode = "compat" // of the first 200 characters of the canonical text
	HashFull   HashMode = "full"   // of the whole canonical text
	HashKeyed  HashMode = "keyed"  // HMAC of the whole canonical text under HashKey
)

// A Runner executes the tool calls of runs. It may be used by several runs at once.
type Runner struct {
	set        *Set
	opts       Options
	hash       digest.Mode
	cache      *cache
	secrets    *secretStore // nil: no secrets
	advertised advertisedLists
	abandoned  atomic.Int64
}

// NewRunner returns a runner over the set; nil is a set without tools. The error, a *[lathe.Error] of code
// invalid_config, says which option cannot be used: a limit below 0, an unknown hash mode, HashKeyed without a key, the name of
// a secret.
func NewRunner(set *Set, opts *Options) (*Runner, error) {
	r := &Runner{set: set}
	if opts != nil {
		r.opts = *opts
	}
	if err := setting.Check(&r.opts.Limits); err != nil {
		return nil, invalidOption(err)
	}
	if r.opts.Now == nil {
		r.opts.Now = time.Now
	}
	if r.opts.NewID == nil {
		r.opts.NewID = func(prefix string) string { return prefix + rand.Text() }
	}
	r.opts.Circuit, r.opts.Retry = r.opts.Circuit.withDefaults(), r.opts.Retry.withDefaults()
	r.opts.HashKey = slices.Clone(r.opts.HashKey)
	switch r.opts.HashMode {
	case "", HashCompat:
		r.hash = digest.Compat
	case HashFull:
		r.hash = digest.Full
	case HashKeyed:
		r.hash = digest.Keyed
		if len(r.opts.HashKey) == 0 {
			return nil, invalidOption(errors.New("HashMode is keyed and HashKey is empty"))
		}
	default:
		return nil, invalidOption(fmt.Errorf("HashMode %.80q is not %s, %s or %s", r.opts.HashMode, HashCompat, HashFull, HashKeyed))
	}
	if r.opts.CacheBytes == 0 {
		r.opts.CacheBytes = 16 << 20
	}
	var err error
	if r.secrets, err = newSecretStore(r.opts.Secrets); err != nil {
		return nil, invalidOption(err)
	}
	r.cache = newCache(r.opts.CacheBytes)
	return r, nil
}

func invalidOption(err error) error {
	return &lathe.Error{Code: lathe.CodeInvalidConfig, Op: "tool: new runner", Err: err}
}

// Settings returns the settings of the runner's options.
func (r *Runner) Settings() lathe.Settings { return r.opts.Settings }

// Limits returns the limits of the runner's options.
func (r *Runner) Limits() lathe.Limits { return r.opts.Limits }

// Abandoned returns the number of calls whose tool still ran after its context was done and the grace had passed.
func (r *Runner) Abandoned() int64 { return r.abandoned.Load() }

func (r *Runner) now() time.Time { return r.opts.Now() }

// runCall takes one call through its stages. Whatever happens, the call ends in exactly one of three ways: it is
// recorded and answered, it is parked, or it is handed over to the client that executes it.
func runCall(ctx context.Context, c *call) {
	c.awaitPrevious() // calls that run side by side are named and planned in call order
	identify(c)       //  1 id
	resolveName(c)    //  2 name
	plan(c)           //    from here on the call will be answered
	c.releaseNext()
	if c.handedOver() {
		withdrawApproval(c)
		return
	}
	end := process(ctx, c)
	if end == parked {
		return
	}
	c.finish(end)
	load(c)
	record(c) // 14
}

// process takes a planned call from admission to the output that the model sees. The first stage that does not
// proceed ends the call.
func process(ctx context.Context, c *call) ending {
	if end := admit(c); end != proceed {
		return end
	}
	if end := obtainOutput(ctx, c); end != proceed {
		return end
	}
	if end := showOutput(ctx, c); end != proceed {
		return end
	}
	writeCache(c)
	return proceed
}

// obtainOutput gets the output of the call. It comes from the tool, unless the call was begun by an earlier process, was
// executed by the client, is answered by the approver or is in the cache.
func obtainOutput(ctx context.Context, c *call) ending {
	if end := recoverOutput(ctx, c); end != proceed || c.source == fromRecovery {
		return end
	}
	if c.Answer != nil {
		return readClientOutput(c)
	}
	if end := requireTool(c); end != proceed { //  2
		return end
	}
	if end := boundArguments(c, len(c.Arguments)); end != proceed { // 3
		return end
	}
	if end := readArguments(c); end != proceed { //  4
		return end
	}
	if end := validate(c); end != proceed { //  5
		return end
	}
	if end := authorize(c); end != proceed { //  6
		return end
	}
	if end := approve(ctx, c); end != proceed || c.source == fromApprover { // 7
		return end
	}
	if readCache(c); c.source == fromCache { //  8
		return proceed
	}
	if end := reserve(ctx, c); end != proceed { //  9
		return end
	}
	return execute(ctx, c) // 10
}

// showOutput makes of the output what the model may see. What comes from the cache was checked, redacted and screened
// before it was stored. What the client returned is its own: no allowlist applies to it.
func showOutput(ctx context.Context, c *call) ending {
	if c.source != fromCache {
		if end := checkOutput(ctx, c); end != proceed { // 11
			return end
		}
		if c.source != fromClient {
			if end := redact(ctx, c); end != proceed { // 12
				return end
			}
		}
		if end := screen(c); end != proceed { // 12
			return end
		}
	}
	return boundOutput(c) // 13
}
