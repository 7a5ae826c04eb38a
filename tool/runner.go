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

// Options configure a [Runner].
//
// A runner for a set with tools requires a Policy. A tool is withheld from models if the policy denies it, or if its calls require an
// approval and there is no approver. [Work.Withheld], RunStarted and the result of the run list withheld tools with a reason, which
// [event.WithheldTool.Explain] puts into words.
type Options struct {
	// Policy decides which tools are offered and which calls are executed. nil is permitted only for a set without tools; if tools are
	// added later, all of their calls are denied.
	Policy lathe.Policy
	// Approver answers the approval requests of the policy. nil: tools whose calls require an approval are withheld from the model, and
	// their calls are denied. Package agent always sets an approver.
	Approver lathe.Approver
	Settings lathe.Settings             // of runs without RunOptions.Settings; not checked
	Limits   lathe.Limits               // of runs without RunOptions.Limits
	Now      func() time.Time           // clock of latencies, rates, the cache and approvals; nil: time.Now
	NewID    func(prefix string) string // returns ids for calls without one; nil: prefix and random text
	// HashMode selects how args_preview_hash in events is computed; "": HashCompat. HashKey is the key of HashKeyed, and is not used
	// otherwise.
	HashMode HashMode
	HashKey  []byte
	// Log receives a warning if a tool panics and, when the runner is made, a warning for each function that is withheld because it
	// declares no effect and there is no approver. The runner does not log each call: use a sink of events for that, such as
	// observe.NewSlog. nil: no logging.
	Log *slog.Logger
	// LogErrors writes a warning to Log for each failed call: the tool, the run, the id of the call, the code, and the text of the error
	// that the tool returned, or of the output that reports the failure. The text is truncated, and parts that look like keys are removed.
	// It may contain arguments, outputs and addresses.
	LogErrors bool
	// Journal, if not nil, can store the intent to call a tool. It is called once for each call, right before the tool is called for the
	// first time, with the verdict that allowed the call. If it returns an error or panics, the tool is not called and the call ends with
	// unavailable. It may retain call but must not change it. It may be called from several goroutines at once.
	Journal func(ctx context.Context, call *lathe.CallInfo, v lathe.Verdict) error
	// Around, if not nil, is called for each attempt of a call in place of t.Call, and must call t.Call itself. It can write logs and
	// traces, pass another context or change the output. The call has passed validation, policy and approval, so Around must not change
	// args. It may be called from several goroutines at once and must return when ctx is done.
	Around func(ctx context.Context, t lathe.Tool, args json.RawMessage) (*lathe.Output, error)
	// OnError, if not nil, is called with each error that a tool returns. It is also called with a [*PanicError] if the tool panicked, with
	// the error of Journal, and with a [*CauseError] if the output is not valid or the allowlist names no part of it. The error may contain
	// arguments or secrets. OnError may be called from several goroutines at once.
	OnError func(ctx context.Context, call *lathe.CallInfo, err error)
	// Secrets are values that are hidden from models and tools, which receive a token in place of each; nil: none.
	Secrets *Secrets
	Circuit Circuit // circuit breaker of each Backend that tools name
	Retry   Retry   // retries of calls of read-only and idempotent tools
	// CacheBytes is the maximum total size in bytes of the cached outputs of tools with a CacheTTL; 0: 16 MiB; negative: no cache.
	CacheBytes int
}

// HashMode selects how args_preview_hash, the hash of a call's arguments in events, is computed.
type HashMode string

// The hash modes. "" is HashCompat. The canonical text is the RFC 8785 form of the arguments.
const (
	HashCompat HashMode = "compat" // hash of the first 200 characters of the canonical text
	HashFull   HashMode = "full"   // hash of the whole canonical text
	HashKeyed  HashMode = "keyed"  // HMAC of the whole canonical text under HashKey
)

var hashModes = map[HashMode]digest.Mode{"": digest.Compat, HashCompat: digest.Compat, HashFull: digest.Full, HashKeyed: digest.Keyed}

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

// NewRunner returns a runner for the tools of set. A nil set has no tools; opts may be nil if the set has none. The error has the code
// invalid_config and names the invalid option: no policy for a set with tools, a limit below 0, an unknown hash mode, HashKeyed without a
// key, or an invalid name of a secret.
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
	var known bool
	if r.hash, known = hashModes[r.opts.HashMode]; !known {
		return nil, invalidOption(fmt.Errorf("HashMode %.80q is not %s, %s or %s", r.opts.HashMode, HashCompat, HashFull, HashKeyed))
	}
	if r.hash == digest.Keyed && len(r.opts.HashKey) == 0 {
		return nil, invalidOption(errors.New("HashMode is keyed and HashKey is empty"))
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

// Settings returns the settings of the runner's options, as they were set: zero fields stay zero.
func (r *Runner) Settings() lathe.Settings { return r.opts.Settings }

// Limits returns the limits of the runner's options, as they were set: zero fields stay zero.
func (r *Runner) Limits() lathe.Limits { return r.opts.Limits }

// Abandoned returns the number of tool calls, since the runner was made, that had not returned 100 ms after their deadline or the end of
// their context. The runner does not wait for them any longer; their goroutines may still run.
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
