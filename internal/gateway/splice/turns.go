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

// LabelConversation is the label under which the log of a run contains the sum of the conversation that its client sent. It is not listed
// with the labels of the client.
const LabelConversation = "lathe_conversation_sha256"

// maxLoaded bounds the runs that one search of the store examines.
const maxLoaded = 1000

// loadedRuns are the runs whose logs were already read. The store is searched for turns of other processes and of earlier ones: the logs of
// runs that returned calls to their client. Each log is read once after its run has paused or ended. Runs older than KeepFor are not read.
// One request of a key at a time reads the logs, and other requests of the key wait for it until their clients disconnect.
type loadedRuns struct{ read sync.Map } // start time by run id

// forget removes runs that started before oldest.
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

// Turns stores the turns of runs that their clients do not see, and inserts them into the conversations that the clients send. Its methods
// may be called from several goroutines at once.
type Turns struct {
	opts   Options
	store  *turnStore
	absent KeySet // keys of texts and calls for which the store has no turns
	loaded loadedRuns
}

// Options are the options of [New].
type Options struct {
	Index                 store.RunIndex // nil: there is no store of runs
	Shared                bool           // other processes use the store
	Approvals             bool           // calls may wait for an approval
	Seals                 *seal.Keys
	MaxKept, MaxKeptBytes int // bounds of the turns in memory
	KeepFor               time.Duration
	Now                   func() time.Time
	Log                   *slog.Logger
	// Lock acquires the lock of that name, or returns a problem when ctx is done.
	Lock func(ctx context.Context, name string) (unlock func(), p *problem.Problem)
	// Flush writes all pending events of a run to the store.
	Flush func(ctx context.Context, runID string) error
	// Background runs a function in a goroutine for which a drain of the server waits.
	Background func(func())
}

// New returns a Turns that stores no turns yet.
func New(o *Options) *Turns { return &Turns{opts: *o, store: newTurnStore(o)} }

// A Request is a request whose conversation is spliced, with its caller.
type Request struct {
	ID        string // request id for the log
	Owner     Owner
	Session   string
	Messages  []lathe.Message
	HandsOver bool              // the request declares tools of the client
	Texts     bool              // answers of text may also have hidden turns: see [Sum.textKey]
	CallTurns map[int]*CallTurn // set by [Turns.RestoreIDs]
	Waiting   *approval.Sentence
	Runs      Runs
	Memory    *memory.Reservation // for messages that are read from the store
}

// Runs reads the runs of a caller.
type Runs interface {
	// View returns the run in its current state.
	View(ctx context.Context, runID string) (*runlog.View, *problem.Problem)
	// Suspended returns a run once it waits or has ended. After a time limit, it returns the run in its current state.
	Suspended(ctx context.Context, runID string) (*runlog.View, *problem.Problem)
}

// Remember stores the id of a run that waits under a key. [Turns.Forget] removes it.
func (ht *Turns) Remember(key Key, runID string) { ht.store.put(key, link{}, runID, nil, nil) }

// Forget removes the turns with the key.
func (ht *Turns) Forget(key Key) { ht.store.remove(key) }

// Find returns the turns with the key, or nil.
func (ht *Turns) Find(key Key) *Stored { return ht.store.find(key) }

// KeepCalls stores the messages own that a run added to a conversation and that end with calls of the client. If the calls have no ids of
// the gateway, they are found by sum, that of the conversation before them, and by after, the key of the hidden turn before them. waits is
// the id of the run if it waits for the results, and "" if it has ended.
func (ht *Turns) KeepCalls(ids *CallIDs, turn int, sum Sum, after Key, calls []lathe.ToolCall, waits string, own []lathe.Message, keeps *event.RunRetention) {
	key, l := sum.key(calls), linkOf(after, calls)
	if ids.makes(turn) {
		key, l = (&callRef{run: ids.run, turn: turn}).key(), link{}
	}
	ht.absent.Remove(key)
	ht.store.put(key, l, waits, own, keeps)
}

// Unspliced returns the conversation of the request without searching for hidden turns.
func Unspliced(r *Request) *Spliced {
	c := newHash(r.Owner)
	for i := range r.Messages {
		c.Add(&r.Messages[i])
	}
	return &Spliced{Messages: r.Messages, Sum: c.Sum()}
}

// Splice inserts hidden turns from memory or from the store into the conversation of a request.
func (ht *Turns) Splice(ctx context.Context, req *Request, relayed bool) *Spliced {
	waiting, p := ht.waitingTurns(ctx, req)
	if p != nil {
		return &Spliced{Messages: req.Messages, Failed: p}
	}
	isAnswer := func(m lathe.Message) bool { return m.Role == lathe.RoleTool }
	handsOver := !relayed && (req.HandsOver || ht.opts.Approvals)
	mayHide := req.Texts || handsOver || len(waiting) > 0 || slices.ContainsFunc(req.Messages, isAnswer)
	if !mayHide {
		return &Spliced{Messages: req.Messages} // no calls were returned to the client, and none will be that must be found later
	}
	spliced := ht.store.splice(ctx, req, waiting)
	loaded, complete := false, false
	if !relayed && ht.opts.Index != nil && ht.anyUnknown(spliced.unknown) {
		loaded, complete = ht.loadTurns(ctx, req)
	}
	textsLoaded := ht.loadTexts(ctx, req, spliced.texts)
	if loaded || textsLoaded {
		spliced = ht.store.splice(ctx, req, waiting)
	}
	if complete && ctx.Err() == nil {
		ht.noteAbsent(spliced)
	}
	return spliced
}

// anyUnknown reports whether one of the keys is not recorded as absent from the store.
func (ht *Turns) anyUnknown(keys []Key) bool {
	now := ht.opts.Now()
	return slices.ContainsFunc(keys, func(k Key) bool { return !ht.absent.Has(k, now) })
}

// noteAbsent records the calls of a conversation that the store does not have, so that the next requests do not search for them again. If
// other processes use the store, calls whose results this request has sent are not recorded: another process may be about to store their
// run.
func (ht *Turns) noteAbsent(spliced *Spliced) {
	keys := spliced.unknown
	if ht.opts.Shared && spliced.latest {
		keys = keys[:len(keys)-1]
	}
	now := ht.opts.Now()
	for _, k := range keys {
		ht.absent.Add(k, now)
	}
}

// loadTurns reads the turns of the caller's runs in the store that are not in memory. found reports whether it stored any, and complete
// whether it read all runs in question.
func (ht *Turns) loadTurns(ctx context.Context, c *Request) (found, complete bool) {
	unlock, p := ht.opts.Lock(ctx, "turns of "+c.Owner.Principal) // the name contains a blank, which no run id does
	if p != nil {
		return false, false
	}
	defer unlock()
	oldest := ht.opts.Now().Add(-ht.opts.KeepFor)
	ht.loaded.forget(oldest)
	f := &store.RunFilter{Principal: c.Owner.Principal, Limit: 100}
	seen := 0
	for row, err := range f.All(ctx, ht.opts.Index) {
		if err != nil {
			ht.opts.Log.Error("turns that were kept could not be read", "request_id", c.ID, "code", lathe.CodeOf(err))
			return found, false
		}
		if seen++; seen > maxLoaded || row.Started.Before(oldest) {
			break
		}
		moves := row.Status == "running" // the run may have been resumed after it returned calls to the client
		if !moves && (!handsOver(row.Reason) || ht.loaded.has(row.RunID)) {
			continue
		}
		loaded, p := ht.loadRun(ctx, c, row.RunID)
		if p != nil {
			ht.opts.Log.Error("turns that were kept could not be read", "request_id", c.ID, "code", p.Code)
			return found, false
		}
		found = found || loaded
		if !moves {
			ht.loaded.add(row.RunID, row.Started)
		}
	}
	return found, true
}

// handsOver reports whether a run with this reason has returned calls to its client.
func handsOver(r lathe.Reason) bool {
	return r == lathe.ReasonClientToolCalls || r == lathe.ReasonAwaitingApproval || r == lathe.ReasonAwaitingToolResults
}

// loadRun stores the turns of a run from its log. It returns a problem if the store did not answer.
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
	for _, o := range v.State.Open {
		if v.Client[o.ID] {
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
