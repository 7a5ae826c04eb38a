package splice

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/gateway/memory"
	"github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/gateway/runlog"
	"github.com/lathe-run/lathe/internal/seal"
	"github.com/lathe-run/lathe/store"
)

// LabelConversation is the label under which the log of a run has the sum of the conversation that it was
// begun with, as its client had it. It is not listed with those of the client.
const LabelConversation = "lathe_conversation_sha256"

// maxLoaded bounds the runs that one look into the store goes through.
const maxLoaded = 1000

// loadedRuns reads from the store what other processes kept, and earlier ones: the logs of runs that handed
// calls over, and that wait for their results. Each log is read once when its run has come to rest. It looks no further back than turns are kept.
// One request of a key at a time reads them, and the others of that key wait for it, each as long as its client does.
type loadedRuns struct{ read sync.Map } // by the runs that were looked at: when they were begun

// forget removes runs that were begun before a time.
func (r *loadedRuns) forget(oldest time.Time) {
	for id, began := range r.read.Range {
		if began.(time.Time).Before(oldest) {
			r.read.Delete(id)
		}
	}
}

func (r *loadedRuns) has(runID string) bool {
	_, has := r.read.Load(runID)
	return has
}

func (r *loadedRuns) add(runID string, began time.Time) { r.read.Store(runID, began) }

// Turns keeps what runs did that their clients do not see, and splices it into the conversations that they send. Its methods may be called from
// several goroutines at once.
type Turns struct {
	opts   Options
	store  *turnStore
	absent KeySet // of texts and calls behind which the store has no turns
	loaded loadedRuns
}

// Options are the options of [New].
type Options struct {
	Index                 store.RunIndex // nil: no store keeps runs
	Shared                bool           // other processes use the store
	Approvals             bool           // calls may wait for a person
	Seals                 *seal.Keys
	MaxKept, MaxKeptBytes int // bounds of what is kept in memory
	KeepFor               time.Duration
	Now                   func() time.Time
	Log                   *slog.Logger
	// Lock waits for the lock of that name, or until ctx is done.
	Lock func(ctx context.Context, name string) (unlock func(), p *problem.Problem)
	// Flush has the store have all events of a run.
	Flush func(ctx context.Context, runID string) error
	// Background runs a function that a drain of the server waits for.
	Background func(func())
}

// New returns turns of which nothing is kept.
func New(o *Options) *Turns { return &Turns{opts: *o, store: newTurnStore(o)} }

// A Request is a request whose conversation is spliced, and its caller.
type Request struct {
	ID        string // for the log
	Owner     Owner
	Session   string
	Messages  []lathe.Message
	HandsOver bool              // it declares tools of the client
	Texts     bool              // answers of text have hidden turns, too
	CallTurns map[int]*CallTurn // set by [Turns.RestoreIDs]
	Waiting   *approval.Sentence
	Runs      Runs
	Memory    *memory.Reservation // for messages that are read from the store
}

// Runs reads the runs of a caller.
type Runs interface {
	// View returns a run as it is.
	View(ctx context.Context, runID string) (*runlog.View, *problem.Problem)
	// Suspended returns a run once it waits or has ended. If that takes long, it returns the run as it is.
	Suspended(ctx context.Context, runID string) (*runlog.View, *problem.Problem)
}

// Remember keeps the run that waits under a key; Forget removes what is kept under it.
func (ht *Turns) Remember(key Key, runID string) { ht.store.put(key, link{}, runID, nil, nil) }

// Forget removes what is kept under the key.
func (ht *Turns) Forget(key Key) { ht.store.remove(key) }

// Find returns what is kept under the key; nil: nothing.
func (ht *Turns) Find(key Key) *Stored { return ht.store.find(key) }

// KeepCalls keeps the messages own that a run added to a conversation and that end with calls of the client. Without ids the calls are found by
// the conversation before them, sum, and by the hidden turn before them, after. waits is the run that waits for the results; "": it has ended.
func (ht *Turns) KeepCalls(ids *CallIDs, turn int, sum Sum, after Key, calls []lathe.ToolCall, waits string, own []lathe.Message, keeps *event.RunRetention) {
	key, l := sum.key(calls), linkOf(after, calls)
	if ids.makes(turn) {
		key, l = (&callRef{run: ids.run, turn: turn}).key(), link{}
	}
	ht.absent.Remove(key)
	ht.store.put(key, l, waits, own, keeps)
}

// Unspliced returns a conversation that has no hidden turns.
func Unspliced(r *Request) *Spliced {
	c := newHash(r.Owner)
	for i := range r.Messages {
		c.Add(&r.Messages[i])
	}
	return &Spliced{Messages: r.Messages, Sum: c.Sum()}
}

// Splice puts the hidden turns of a conversation, kept here or in the store, into the conversation of a request.
func (ht *Turns) Splice(ctx context.Context, a *Request, relayed bool) *Spliced {
	answers := func(m lathe.Message) bool { return m.Role == lathe.RoleTool }
	waiting, p := ht.waitingTurns(ctx, a)
	if p != nil {
		return &Spliced{Messages: a.Messages, Failed: p}
	}
	handsOver := a.HandsOver || ht.opts.Approvals
	if !a.Texts && (relayed || !handsOver) && len(waiting) == 0 && !slices.ContainsFunc(a.Messages, answers) {
		return &Spliced{Messages: a.Messages} // no calls were handed over, and none will be that have to be found again
	}
	want := spliceOptions{texts: a.Texts, callTurns: a.CallTurns}
	j := ht.store.splice(ctx, a.Owner, a.Messages, waiting, want)
	loaded, complete := false, false
	if !relayed && ht.opts.Index != nil && ht.anyUnknown(j.unknown) {
		loaded, complete = ht.loadTurns(ctx, a)
	}
	if loaded = ht.loadTexts(ctx, a, j.texts) || loaded; loaded {
		j = ht.store.splice(ctx, a.Owner, a.Messages, waiting, want)
	}
	if complete && ctx.Err() == nil {
		ht.noteAbsent(j)
	}
	return j
}

// anyUnknown reports whether the store was not asked for one of the keys.
func (ht *Turns) anyUnknown(keys []Key) bool {
	now := ht.opts.Now()
	return slices.ContainsFunc(keys, func(k Key) bool { return !ht.absent.Has(k, now) })
}

// noteAbsent notes the calls of a conversation that the store does not have, so that the next requests do not look for them
// again. If other processes use the store, the calls whose results the request has brought are not noted: another process may be about
// to store their run.
func (ht *Turns) noteAbsent(j *Spliced) {
	keys := j.unknown
	if ht.opts.Shared && j.latest {
		keys = keys[:len(keys)-1]
	}
	now := ht.opts.Now()
	for _, k := range keys {
		ht.absent.Add(k, now)
	}
}

// loadTurns reads what the runs of the caller in the store have that is not kept here. It reports whether it found something, and
// whether it read all that it looks for.
func (ht *Turns) loadTurns(ctx context.Context, c *Request) (found, complete bool) {
	unlock, p := ht.opts.Lock(ctx, "turns of "+c.Owner.Principal) // no run has a name with blanks
	if p != nil {
		return false, false
	}
	defer unlock()
	oldest := ht.opts.Now().Add(-ht.opts.KeepFor)
	ht.loaded.forget(oldest)
	f := &store.RunFilter{Principal: c.Owner.Principal, Limit: 100}
	for seen := 0; seen < maxLoaded; {
		rows, next, err := ht.opts.Index.Runs(ctx, f)
		if err != nil {
			ht.opts.Log.Error("turns that were kept could not be read", "request_id", c.ID, "code", lathe.CodeOf(err))
			return found, false
		}
		for i := range rows {
			row := &rows[i]
			if seen++; row.Started.Before(oldest) {
				return found, true
			}
			moves := row.Status == "running" // it may have been resumed since it returned calls to the client
			if !moves && (!handsOver(row.Reason) || ht.loaded.has(row.RunID)) {
				continue
			}
			loaded, p := ht.loadRun(ctx, c, row.RunID)
			if p != nil {
				ht.opts.Log.Error("turns that were kept could not be read", "request_id", c.ID, "code", p.Code)
				return found, false
			}
			if found = found || loaded; !moves {
				ht.loaded.add(row.RunID, row.Started)
			}
		}
		if f.After = next; next == "" {
			break
		}
	}
	return found, true
}

// handsOver reports whether a run that came to that has given calls to its client.
func handsOver(r lathe.Reason) bool {
	return r == lathe.ReasonClientToolCalls || r == lathe.ReasonAwaitingApproval || r == lathe.ReasonAwaitingToolResults
}

// loadRun keeps what the log of a run says that its client did not see. A problem says that the store did not answer.
func (ht *Turns) loadRun(ctx context.Context, c *Request, id string) (found bool, p *problem.Problem) {
	v, p := c.Runs.View(ctx, id)
	if p.Absent() {
		return false, nil
	}
	if p != nil {
		return false, p
	}
	sum, ok := sumOf(v)
	if !ok {
		return false, nil
	}
	var calls []lathe.ToolCall
	for i := range v.State.Open {
		if o := &v.State.Open[i]; v.Client[o.ID] {
			calls = append(calls, o.ToolCall)
		}
	}
	if len(calls) == 0 {
		return false, nil
	}
	waits := ""
	if v.State.Finished == nil {
		waits = id
	}
	ht.store.put(sum.key(calls), link{}, waits, v.State.Messages[v.State.Start:], v.State.Retention)
	return true, nil
}
