package server

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/store"
)

// A suspendedRun is what the log of a run that waits said when it was read.
type suspendedRun struct {
	lastID int64
	asked  int // calls that wait for a person
}

// maintenance resumes runs without a request of a client: those whose approvals have expired, and on a shared store those
// that no process owns.
type maintenance struct {
	*executor
	turns *hiddenTurns
	seen  map[string]suspendedRun // by run; of the goroutine that surveys
}

// recount reads which runs of the store wait for a person, whichever process asked: it sets the gauge of open
// approvals, keeps the runs for equal requests, and, on a store of this process alone, has the approval queue hold what was
// asked. A log is read again only where it has changed.
func (mt *maintenance) recount(ctx context.Context) {
	_ = mt.opts.Engine.Flush(ctx, "") // the list says what is wrong with the store
	count := func() (map[string]int, error) {
		next, open := map[string]suspendedRun{}, map[string]int{}
		f := &store.RunFilter{Status: "parked", Limit: maxPage}
		for {
			rows, after, err := mt.opts.Index.Runs(ctx, f)
			if err != nil {
				return nil, err
			}
			for i := range rows {
				row := &rows[i]
				if row.Reason != lathe.ReasonAwaitingApproval {
					continue
				}
				seen, known := mt.seen[row.RunID]
				if !known || seen.lastID != row.LastID {
					seen = mt.readSuspended(ctx, row.RunID)
				}
				next[row.RunID], open[row.RunID] = seen, seen.asked
			}
			if f.After = after; after == "" {
				mt.seen = next
				return open, nil
			}
		}
	}
	var err error
	if m := mt.opts.Metrics; m != nil {
		err = m.RecountApprovals(count)
	} else {
		_, err = count()
	}
	if err != nil && ctx.Err() == nil {
		mt.opts.Log.Error("the runs that wait for an approval could not be read", "code", lathe.CodeOf(err))
	}
}

// readSuspended reads a run that waits.
func (mt *maintenance) readSuspended(ctx context.Context, id string) suspendedRun {
	v, p := mt.view(ctx, mt.serverCaller(), id)
	if p != nil {
		return suspendedRun{} // it is gone by now
	}
	s := suspendedRun{lastID: v.state.LastID}
	for i := range v.state.Open {
		o := &v.state.Open[i]
		if !o.Asked {
			continue
		}
		s.asked++
		if mt.shared == nil {
			mt.opts.Approvals.Await(v.request(o))
		}
	}
	var sum requestSum
	if label, err := hex.DecodeString(v.state.Run.Labels[labelRequest]); err == nil && len(label) == len(sum) && s.asked > 0 {
		copy(sum[:], label)
		mt.turns.store.put(sum.key(), id, nil)
	}
	return s
}

// recountEvery surveys again and again until ctx is done.
func (mt *maintenance) recountEvery(ctx context.Context) {
	tick := time.NewTicker(mt.opts.Limits.Expiry)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			mt.recount(ctx)
		case <-ctx.Done():
			return
		}
	}
}
