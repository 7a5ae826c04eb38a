package tool

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/digest"
	"github.com/lathe-run/lathe/internal/setting"
)

// Options of a [Runner].
//
// No tool is withheld from a model without a sign. A runner of a set with tools requires a policy. A tool that the policy denies, or that
// needs an approval without an approver, is listed in [Work.Withheld], in RunStarted and in the result of the run, with a reason that
// [event.WithheldTool.Explain] puts into words. A function without a declared effect that is withheld for that reason is also a warning in
// Log. A name in [RunOptions].Allow of which the set has no tool is an error.
type Options struct {
	// Policy decides about tools and calls. It may be nil if the set has no tools when the runner is made; each call of a tool that the set
	// gets later is then denied.
	Policy lathe.Policy
	// Approver answers the requests of the policy. nil: tools whose calls need an approval are withheld from the model, and such calls are
	// denied. An agent of package agent always has an approver.
	Approver lathe.Approver
	Settings lathe.Settings             // for runs whose RunOptions have none
	Limits   lathe.Limits               // for runs whose RunOptions have none
	Now      func() time.Time           // nil: time.Now. It is the clock of latencies, rates, the cache and approvals
	NewID    func(prefix string) string // nil: random ids. It generates the ids of calls without one
	// HashMode and HashKey determine args_preview_hash. Only HashKeyed uses HashKey.
	HashMode HashMode
	HashKey  []byte
	// Log receives a warning for a tool that panicked, without arguments and output, and the errors of tools if LogErrors is set. When the
	// runner is made, it receives a warning for the functions of the set that are withheld since they declare no effect and there is no
	// approver. A sink of the events, such as observe.NewSlog, writes the line of each call, with its code and without the cause of a
	// failure. nil: discards.
	Log *slog.Logger
	// LogErrors writes a warning to Log with the cause of each failed call: the text of the error that the tool returns, or of the output
	// that reports the failure, with the tool, the run, the id of the call and the code. The text is truncated and without text that looks
	// like a key. It may contain arguments, outputs and addresses.
	LogErrors bool
	// Journal, if set, is called right before each call of a tool, with the verdict that allowed it. An error means that the intent could
	// not be stored: the tool is not called, and the call ends with unavailable. call may be retained and must not be changed.
	Journal func(ctx context.Context, call *lathe.CallInfo, v lathe.Verdict) error
	// Around, if set, is called in place of t.Call with the context and the arguments of each attempt of a call, and calls it: for logs,
	// traces, a context of its own, or an output that is changed. The call has passed validation, policy and approval, so args must not be
	// changed. Around has the duties of [lathe.Tool].Call: it may be called from several goroutines at once, and returns when ctx is done.
	Around func(ctx context.Context, t lathe.Tool, args json.RawMessage) (*lathe.Output, error)
	// OnError receives the errors of tools. They may contain arguments or secrets and are passed to nothing else, unless LogErrors is set.
	// OnError may be called from several goroutines at once.
	OnError func(ctx context.Context, call *lathe.CallInfo, err error)
	// Secrets are replaced by tokens for the model and for tools that are not granted them; nil: no secrets.
	Secrets *Secrets
	Circuit Circuit // configures the circuit of each backend that tools name
	Retry   Retry   // configures retries of tools that may be called again
	// CacheBytes is the maximum size of the cached outputs of tools with a CacheTTL, in bytes; 0: 16 MiB. Negative: no cache.
	CacheBytes int
}

// HashMode determines how args_preview_hash is computed.
type HashMode string

// The hash modes. The zero value has the effect of HashCompat.
const (
	HashCompat HashMode = "compat" // hash of the first 200 characters of the canonical text
	HashFull   HashMode = "full"   // hash of the whole canonical text
	HashKeyed  HashMode = "keyed"  // HMAC of the whole canonical text under HashKey
)

// A Runner executes the tool calls of runs. Its methods may be called from several goroutines at once.
type Runner struct {
	set        *Set
	opts       Options
	hash       digest.Mode
	cache      *cache
	secrets    *secretStore // nil: no secrets
	advertised advertisedLists
	abandoned  atomic.Int64
}

// NewRunner returns a runner over the set; nil is a set without tools. The error, a *[lathe.Error] of code invalid_config, names the option
// that is not valid: no policy for a set with tools, a limit below 0, an unknown hash mode, HashKeyed without a key, or the name of a
// secret.
func NewRunner(set *Set, opts *Options) (*Runner, error) {
	r := &Runner{set: set}
	if opts != nil {
		r.opts = *opts
	}
	if r.opts.Policy == nil && set != nil && len(set.now.Load().sorted) > 0 {
		return nil, invalidOption(errors.New("the set has tools and Policy is nil, which denies every call: set Policy to policy.Default() or another policy, or to policy.Effects{} if every call is to be denied"))
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
	warnUndeclared(r)
	return r, nil
}

// warnUndeclared logs the Go functions that no run will be offered because they declare no effect and there is no approver. Effects of tools
// from elsewhere are declared in a configuration.
func warnUndeclared(r *Runner) {
	if r.opts.Log == nil || r.opts.Approver != nil || r.set == nil {
		return
	}
	for _, e := range r.set.now.Load().sorted {
		if e.spec.Effect != lathe.EffectUndeclared || e.spec.Hidden || e.spec.Origin != originGo || judgeTool(r.opts.Policy, &lathe.RunInfo{}, e.spec).Decision != lathe.Ask {
			continue
		}
		held := event.WithheldTool{Tool: e.spec.Name, Reason: event.WithheldUndeclared}
		r.opts.Log.LogAttrs(context.Background(), slog.LevelWarn, "tool withheld", slog.String("tool_name", held.Tool),
			slog.String("reason", string(held.Reason)), slog.String("explanation", held.Explain()))
	}
}

func invalidOption(err error) error {
	return lathe.CodeInvalidConfig.Wrap("tool: new runner", err)
}

// Settings returns the settings of the runner's options.
func (r *Runner) Settings() lathe.Settings { return r.opts.Settings }

// Limits returns the limits of the runner's options.
func (r *Runner) Limits() lathe.Limits { return r.opts.Limits }

// Abandoned returns the number of calls whose tool had not returned abandonGrace after its context was done.
func (r *Runner) Abandoned() int64 { return r.abandoned.Load() }

func (r *Runner) now() time.Time { return r.opts.Now() }

// runCall executes the stages of one call. A call ends in exactly one of three ways: it is recorded and gets a result, it is parked, or it
// is handed over to the client that executes it.
func runCall(ctx context.Context, c *call) {
	c.awaitPrevious() // concurrent calls are named and planned in call order
	identify(c)       //  1 id
	resolveName(c)    //  2 name
	plan(c)           // from here on the call will get a result
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

// process executes the stages of a planned call from admission to the output for the model. The first stage that does not return proceed
// ends the call.
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

// obtainOutput obtains the output of the call: from the tool, or from an earlier process, the client, the approver or the cache.
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

// showOutput reduces the output to what the model may receive. Output from the cache was reduced before it was stored. No allowlist applies
// to output of the client.
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
