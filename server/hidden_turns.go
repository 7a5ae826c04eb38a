package server

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/store"
)

// labelConversation is the label under which the log of a run has the sum of the conversation that it was
// begun with, as its client had it. It is not listed with those of the client.
const labelConversation = "lathe_conversation_sha256"

// maxLoaded bounds the runs that one look into the store goes through.
const maxLoaded = 1000

// loadedRuns reads from the store what other processes kept, and earlier ones: the logs of runs that handed
// calls over, and that wait for their results. Each log is read once when its run has come to rest. It looks no further back than turns are kept.
// One request of a key at a time reads them, and the others of that key wait for it, each as long as its client does.
type loadedRuns struct {
	mu   sync.Mutex
	read map[string]time.Time // runs that were looked at, and when they were begun
}

// forget removes runs that were begun before a time.
func (r *loadedRuns) forget(oldest time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.read, func(_ string, at time.Time) bool { return at.Before(oldest) })
}

func (r *loadedRuns) has(runID string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, has := r.read[runID]
	return has
}

func (r *loadedRuns) add(runID string, began time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.read == nil {
		r.read = map[string]time.Time{}
	}
	r.read[runID] = began
}

// hiddenTurns keeps what runs did that their clients do not see, and splices it into the conversations that they send.
type hiddenTurns struct {
	*runViews
	store  *turnStore
	absent keySet // of texts and calls behind which the store has no turns
	loaded loadedRuns
}

// splice puts the hidden turns of a conversation, kept here or in the store, into the conversation of a request.
func (ht *hiddenTurns) splice(ctx context.Context, a *chat, relayed bool) *spliced {
	answers := func(m lathe.Message) bool { return m.Role == lathe.RoleTool }
	waiting, p := ht.waitingTurns(ctx, a)
	if p != nil {
		return &spliced{messages: a.req.Messages, failed: p}
	}
	handsOver := len(a.req.Tools) > 0 || ht.opts.Approvals != nil
	if !a.keepsText && (relayed || !handsOver) && len(waiting) == 0 && !slices.ContainsFunc(a.req.Messages, answers) {
		return &spliced{messages: a.req.Messages} // no calls were handed over, and none will be that have to be found again
	}
	want := spliceOptions{texts: a.keepsText, onlyKept: relayed, callTurns: a.callTurns}
	j := ht.store.splice(ctx, a.owner(), a.req.Messages, waiting, want)
	loaded, complete := false, false
	if !relayed && ht.opts.Index != nil && ht.anyUnknown(j.unknown) {
		loaded, complete = ht.loadTurns(ctx, a.caller)
	}
	if loaded = ht.loadTexts(ctx, a.caller, j.texts) || loaded; loaded {
		j = ht.store.splice(ctx, a.owner(), a.req.Messages, waiting, want)
	}
	if complete && ctx.Err() == nil {
		ht.noteAbsent(j)
	}
	return j
}

// countLost reports turns that the conversation of a request does not have.
func (ht *hiddenTurns) countLost(c *caller, turns int) {
	if turns == 0 {
		return
	}
	ht.opts.Log.Warn("turns of this server are not in the conversation that the model gets: they are not stored any more, or the client has changed older messages",
		"request_id", c.requestID, "turns", turns)
	if ht.opts.Metrics != nil {
		ht.opts.Metrics.AddLostTurns(turns)
	}
}

// anyUnknown reports whether the store was not asked for one of the keys.
func (ht *hiddenTurns) anyUnknown(keys []turnKey) bool {
	now := ht.opts.Now()
	return slices.ContainsFunc(keys, func(k turnKey) bool { return !ht.absent.has(k, now) })
}

// noteAbsent notes the calls of a conversation that the store does not have, so that the next requests do not look for them
// again. If other processes use the store, the calls whose results the request has brought are not noted: another process may be about
// to store their run.
func (ht *hiddenTurns) noteAbsent(j *spliced) {
	keys := j.unknown
	if ht.shared != nil && j.latest {
		keys = keys[:len(keys)-1]
	}
	now := ht.opts.Now()
	for _, k := range keys {
		ht.absent.add(k, now)
	}
}

// loadTurns reads what the runs of the caller in the store have that is not kept here. It reports whether it found something, and
// whether it read all that it looks for.
func (ht *hiddenTurns) loadTurns(ctx context.Context, c *caller) (found, complete bool) {
	unlock, err := ht.locks.lock(ctx, "turns of "+c.key.Name) // no run has a name with blanks
	if err != nil {
		return false, false
	}
	defer unlock()
	oldest := ht.opts.Now().Add(-ht.opts.Limits.KeepFor)
	ht.loaded.forget(oldest)
	f := &store.RunFilter{Principal: c.key.Name, Limit: 100}
	for seen := 0; seen < maxLoaded; {
		rows, next, err := ht.opts.Index.Runs(ctx, f)
		if err != nil {
			ht.opts.Log.Error("turns that were kept could not be read", "request_id", c.requestID, "code", lathe.CodeOf(err))
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
				ht.opts.Log.Error("turns that were kept could not be read", "request_id", c.requestID, "code", p.Code)
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
func (ht *hiddenTurns) loadRun(ctx context.Context, c *caller, id string) (found bool, p *problem) {
	v, p := ht.viewOther(ctx, c, id)
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
	ht.store.put(sum.key(calls), waits, v.State.Messages[v.State.Start:], v.State.Retention)
	return true, nil
}
