package approval

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
)

// RequestOf returns the request for approval of the open call o of the run s; o.Asked must be true. Details, Origin, Effect and Reason of the
// request are empty, since the log of a run does not have them.
func RequestOf(s *loop.State, o *loop.OpenCall) Request {
	r := Request{Digest: o.Digest, RunID: s.Run.RunID, SessionID: s.Run.SessionID, Principal: s.Run.Principal, ToolCallID: o.ID, Tool: o.Name,
		Turn: s.Turn, Seq: o.Seq, Rule: o.Rule, ExpiresAt: o.ExpiresAt, Arguments: o.Shown}
	if r.Arguments == nil {
		r.Arguments = json.RawMessage(o.Arguments)
	}
	return r
}

// Restore adds the requests of all parked runs of a store, such as those of an earlier process, as [Queue.Await] does. It returns all of
// these requests that have no answer in memory, including those that the queue already had. The caller must resume a run after its request
// was answered or has expired.
//
// The error joins the errors of runs that could not be read; the other runs are restored all the same. If the list of runs cannot be read
// to its end, Restore returns what it has restored until then, with the error.
func (q *Queue) Restore(ctx context.Context, runs store.RunIndex) (waiting []Request, err error) {
	var errs []error
	for row, err := range (&store.RunFilter{Status: "parked"}).All(ctx, runs) {
		if err != nil {
			errs = append(errs, err)
			break
		}
		s, err := stateOf(ctx, runs, row.RunID)
		if err != nil {
			errs = append(errs, lathe.CodeOf(err).Wrap("approval: restore "+row.RunID, err))
			continue
		}
		for i := range s.Open {
			if r := RequestOf(s, &s.Open[i]); s.Open[i].Asked && q.Await(r) {
				waiting = append(waiting, r)
			}
		}
	}
	return waiting, errors.Join(errs...)
}

// stateOf returns the state of a run from its log.
func stateOf(ctx context.Context, runs store.RunIndex, runID string) (*loop.State, error) {
	s := &loop.State{}
	for e, err := range runs.Read(ctx, runID, 0) {
		if err == nil {
			err = s.Apply(&e)
		}
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}
