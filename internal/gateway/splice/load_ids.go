package splice

import (
	"context"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/gateway/pairs"
	"github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/gateway/runlog"
)

// This file finds the turns to which the ids of the gateway refer, in memory or in the log of their run.

// A CallTurn is the turn to which the call ids in a message of a client refer.
type CallTurn struct {
	ref   callRef
	turns *Stored // nil: no turns are stored
}

// load finds the turns of all gateway ids in the messages of the request. It reads the log of a run at most once.
func (r *idRestorer) load(ctx context.Context, ht *Turns, ids *CallIDs, c *Request) *problem.Problem {
	known := map[Key]*CallTurn{}
	unread := map[string][]*CallTurn{} // turns to read from the log, by run
	var runs []string                  // keys of unread, in the order of the messages
	find := func(ref callRef) *CallTurn {
		key := ref.key()
		if t := known[key]; t != nil {
			return t
		}
		t := &CallTurn{ref, ht.store.find(key)}
		known[key] = t
		if t.turns == nil || t.turns.RunID != "" { // serve.max_calls bounds their number
			if unread[ref.run] == nil {
				runs = append(runs, ref.run)
			}
			unread[ref.run] = append(unread[ref.run], t)
		}
		return t
	}
	for _, m := range c.Messages {
		for _, p := range m.Parts {
			id := gatewayID(p)
			if _, has := r.refs[id]; id == "" || has {
				continue
			}
			if ref, ok := ids.parse(id); ok {
				r.of[id], r.refs[id] = find(ref), ref
			}
		}
	}
	for _, run := range runs {
		if p := ht.loadCallTurns(ctx, c, run, unread[run]); p != nil || ctx.Err() != nil {
			return p
		}
	}
	return nil
}

// loadCallTurns reads turns of a run from its log, which it reads once. It returns a problem if the store did not answer, or if the memory
// for the turns cannot be reserved.
func (ht *Turns) loadCallTurns(ctx context.Context, c *Request, run string, turns []*CallTurn) *problem.Problem {
	now := ht.opts.Now()
	turns = slices.DeleteFunc(turns, func(t *CallTurn) bool { return ht.absent.Has(t.ref.key(), now) })
	if ht.opts.Index == nil || len(turns) == 0 {
		return nil
	}
	v, p := c.Runs.View(ctx, run)
	if p != nil && !p.Absent() && slices.ContainsFunc(turns, func(t *CallTurn) bool { return t.turns == nil }) { // else all are in memory
		return p
	}
	for _, t := range turns {
		var own []lathe.Message
		waits := ""
		if p == nil {
			own, waits = turnOf(v, t.ref)
		}
		switch {
		case len(own) > 0:
			t.turns = ht.store.put(t.ref.key(), link{}, waits, own, v.State.Retention)
			if p := c.Memory.Load(t.turns.messages); p != nil {
				return p
			}
		case t.turns == nil && !ht.opts.Shared:
			ht.absent.Add(t.ref.key(), now)
		}
	}
	return nil
}

// turnOf returns the messages of the turn of ref: those of the run after the previous calls that it returned to the client, up to the calls
// of ref, with the results of the calls of this server. The results of the client's calls are in its request. waits is the id of the run if
// it has not ended.
func turnOf(v *runlog.View, ref callRef) (own []lathe.Message, waits string) {
	isClients := func(c lathe.ToolCall) bool { return v.Client[c.ID] }
	isMeant := func(c lathe.ToolCall) bool { return v.Turns[c.ID] == ref.turn && hashOfCall(c.ID) == ref.hash }
	messages := v.State.Messages
	begin := v.State.Start - v.State.TakenOver
	var calls []lathe.ToolCall // of ref's turn
	end := -1
	for i := begin; i < len(messages) && end < 0; i++ {
		calls = messages[i].Calls()
		switch {
		case !slices.ContainsFunc(calls, isClients): // a message within a turn
		case slices.ContainsFunc(calls, isMeant):
			end = v.AfterResults(i + 1)
		default:
			begin = v.AfterResults(i + 1)
		}
	}
	if end < 0 {
		return nil, ""
	}
	own = slices.DeleteFunc(slices.Clone(messages[begin:end]), func(m lathe.Message) bool { return v.Client[pairs.Answered(&m)] })
	for _, o := range v.State.Open {
		if !v.Client[o.ID] && slices.ContainsFunc(calls, func(c lathe.ToolCall) bool { return c.ID == o.ID }) {
			own = append(own, pairs.PendingResult(&o.ToolCall))
		}
	}
	if v.State.Finished == nil {
		waits = v.State.Run.RunID
	}
	return own, waits
}
