package gateway

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/lathe-run/lathe"
)

// A surveyed is what the log of a run that waits said when it was read.
type surveyed struct {
	lastID int64
	asked  int // calls that wait for a person
}

// survey reads which runs of the store wait for a person, whichever process asked: it sets the gauge of open
// approvals, keeps the runs for equal requests, and, on a store of this process alone, has the desk hold what was
// asked. A log is read again only where it has changed.
func (g *Gateway) survey(ctx context.Context) {
	_ = g.opts.Engine.Settle(ctx, "") // the list says what is wrong with the store
	count := func() (map[string]int, error) {
		next, open := map[string]surveyed{}, map[string]int{}
		f := &lathe.RunFilter{Status: "parked", Limit: maxPage}
		for {
			rows, after, err := g.opts.Index.Runs(ctx, f)
			if err != nil {
				return nil, err
			}
			for i := range rows {
				row := &rows[i]
				if row.Reason != lathe.ReasonAwaitingApproval {
					continue
				}
				seen, known := g.seen[row.RunID]
				if !known || seen.lastID != row.LastID {
					seen = g.surveyRun(ctx, row.RunID)
				}
				next[row.RunID], open[row.RunID] = seen, seen.asked
			}
			if f.After = after; after == "" {
				g.seen = next
				return open, nil
			}
		}
	}
	var err error
	if m := g.opts.Metrics; m != nil {
		err = m.RecountApprovals(count)
	} else {
		_, err = count()
	}
	if err != nil && ctx.Err() == nil {
		g.opts.Log.Error("the runs that wait for an approval could not be read", "code", lathe.CodeOf(err))
	}
}

// surveyRun reads a run that waits.
func (g *Gateway) surveyRun(ctx context.Context, id string) surveyed {
	v, p := g.view(ctx, g.nobody(), id)
	if p != nil {
		return surveyed{} // it is gone by now
	}
	s := surveyed{lastID: v.state.LastID}
	for i := range v.state.Open {
		o := &v.state.Open[i]
		if !o.Asked {
			continue
		}
		s.asked++
		if g.shared == nil {
			g.opts.Desk.Await(v.request(o))
		}
	}
	var sum requestSum
	if label, err := hex.DecodeString(v.state.Run.Labels[labelRequest]); err == nil && len(label) == len(sum) && s.asked > 0 {
		copy(sum[:], label)
		g.kept.put(sum.key(), id, nil)
	}
	return s
}

// surveyOn surveys again and again until ctx is done.
func (g *Gateway) surveyOn(ctx context.Context) {
	tick := time.NewTicker(g.opts.Limits.Expiry)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			g.survey(ctx)
		case <-ctx.Done():
			return
		}
	}
}
