package tool

import (
	"context"
	"crypto/rand"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/digest"
)

// Options of a [Runner]. The zero value denies every call.
type Options struct {
	Policy   lathe.Policy               // nil denies
	Approver lathe.Approver             // nil: nobody can be asked, what would be asked for is denied
	Settings lathe.Settings             // of works whose RunOptions have none
	Limits   lathe.Limits               // of works whose RunOptions have none
	Now      func() time.Time           // time.Now; latencies, rates, the cache and approvals go by it
	NewID    func(prefix string) string // random; for calls that come without an id
	// HashMode and HashKey say how args_preview_hash is made. HashKey is used by HashKeyed only.
	HashMode HashMode
	HashKey  []byte
	// Log gets a warning for a tool that panicked: no arguments, no output. The line of each call is
	// written by those who are told the events.
	Log *slog.Logger
	// Journal, when set, is called right before a tool is, with the verdict under which it is called.
	// An error means that the intent could not be kept: the tool is not called, and the call is
	// answered unavailable. It must not keep call.
	Journal func(ctx context.Context, call *lathe.CallInfo, v lathe.Verdict) error
	// OnError is told the errors of tools, which may hold arguments or secrets and are shown nowhere
	// else. It may be called from several goroutines at once.
	OnError func(ctx context.Context, call *lathe.CallInfo, err error)
	// Secrets are kept from the model and from tools that are not granted them; nil: none.
	Secrets *Secrets
	Circuit Circuit // of each backend that tools name
	Retry   Retry   // of tools that may run again
	// CacheBytes bounds what is kept of the outputs of tools with a CacheTTL; 16 MiB. Negative: no cache.
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

// A Runner executes tool calls, and nothing else does. It may be used by several runs at once.
type Runner struct {
	set       *Set
	opts      Options
	hash      digest.Mode
	ownClock  bool // Options.Now was set
	cache     *cache
	vault     *vault                  // nil: no secrets
	works     sync.Pool               // of *Work
	lanes     sync.Pool               // of *lane
	surface   atomic.Pointer[surface] // of the run before
	abandoned atomic.Int64
}

// NewRunner returns a runner over the set. It panics when the options name a hash mode that there is not.
func NewRunner(set *Set, opts *Options) *Runner {
	r := &Runner{set: set}
	if opts != nil {
		r.opts = *opts
	}
	r.ownClock = r.opts.Now != nil
	if !r.ownClock {
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
	default:
		panic("tool: unknown hash mode " + string(r.opts.HashMode))
	}
	if r.opts.CacheBytes == 0 {
		r.opts.CacheBytes = 16 << 20
	}
	r.vault = newVault(r.opts.Secrets)
	r.cache = newCache(r.opts.CacheBytes)
	return r
}

// Settings returns the settings of the runner's options.
func (r *Runner) Settings() lathe.Settings { return r.opts.Settings }

// Limits returns the limits of the runner's options.
func (r *Runner) Limits() lathe.Limits { return r.opts.Limits }

// Abandoned counts the calls whose tool went on running after it had been told to stop.
func (r *Runner) Abandoned() int64 { return r.abandoned.Load() }

func (r *Runner) now() time.Time { return r.opts.Now() }

// runCall is the life of a call, from what the model asked for to what it is told. Each step may end
// the call with a code: then it returns true, and nothing but the record follows.
func (w *Work) runCall(ctx context.Context, c *call) {
	c.await()     // calls that run side by side are named and planned in call order
	w.identify(c) //  1 id
	w.find(c)     //  2 name
	w.plan(c)     //    its place in the run: from here on it will be answered
	c.pass()
	if w.handedOver(c) {
		w.withdraw(c)
		return // its owner executes and answers it
	}
	switch {
	case w.refused(c): //         by the loop, or because the run is over
	case w.lost(ctx, c): //       begun by a process that is gone, and not to be done twice
	case c.verified: //           begun there, and its tool knows what came of it
		if !w.badOutput(ctx, c) && !w.redact(ctx, c) && !w.screen(c) {
			w.oversizeOutput(c)
		}
	case w.taken(c): //           from the client, whose call it was
		if c.code == "" && !w.badOutput(ctx, c) && !w.screen(c) {
			w.oversizeOutput(c)
		}
	case w.unknownName(c): //         2
	case w.oversize(c): //        3 size of the argument text
	case w.unreadable(c): //      4 parse
	case w.invalid(c): //         5 validate
	case w.ungranted(c), w.denied(c): // 6 policy
	case w.unapproved(ctx, c): // 7 approval
		if c.parked != nil {
			return // answered later
		}
	case c.answered: //             by a person
		if !w.badOutput(ctx, c) && !w.redact(ctx, c) && !w.screen(c) {
			w.oversizeOutput(c)
		}
	case w.recall(c): //          8 cache: all but the size is done
		w.oversizeOutput(c)
	case w.limit(ctx, c): //      9
	case w.execute(ctx, c): //   10 journal the intent, call the tool
	case w.badOutput(ctx, c): //      11
	case w.redact(ctx, c), w.screen(c): // 12
	case w.oversizeOutput(c): // 13 size of the output
	default:
		w.keep(c) //                for the cache
	}
	w.record(c) //               14
}
