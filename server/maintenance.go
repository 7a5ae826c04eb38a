package server

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/gateway/splice"
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
	*runStarter
	turns *splice.Turns
	seen  map[string]suspendedRun // by run; of the goroutine that surveys
}

// Bounds of one survey of a shared store, which every process on it makes: without them the cost of runs that wait would grow
// with their number and with that of the processes.
const (
	// maxSurveyed is how many of the runs that wait are read, the newest first: the gauge and the turns in memory hold no more.
	maxSurveyed = 10_000
	// maxSurveyReads is how many logs are read. The others are read by the next surveys.
	maxSurveyReads = 200
	// surveyShare is the inverse of the share of the time that surveys may take, on any store.
	surveyShare = 50
	// maxSurveyPause is the longest time between two surveys.
	maxSurveyPause = 5 * time.Minute
)

// recount reads which runs of the store wait for a person, whichever process asked: it sets the gauge of open
// approvals, keeps the runs for equal requests, and, on a store of this process alone, has the approval queue hold what was
// asked. A log is read again only where it has changed.
func (mt *maintenance) recount(ctx context.Context) {
	_ = mt.opts.Engine.Flush(ctx, "") // the list says what is wrong with the store
	count := func() (map[string]int, error) {
		next, open := map[string]suspendedRun{}, map[string]int{}
		f := &store.RunFilter{Status: "parked", Limit: maxPage}
		surveyed, reads := 0, 0
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
					if mt.shared != nil && reads >= maxSurveyReads {
						open[row.RunID] = len(row.Pending)
						continue
					}
					reads++
					seen = mt.readSuspended(ctx, row.RunID)
				}
				next[row.RunID], open[row.RunID] = seen, seen.asked
			}
			surveyed += len(rows)
			if f.After = after; after == "" || mt.shared != nil && surveyed >= maxSurveyed {
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
	s := suspendedRun{lastID: v.State.LastID}
	for i := range v.State.Open {
		o := &v.State.Open[i]
		if !o.Asked {
			continue
		}
		s.asked++
		if mt.shared == nil {
			mt.opts.Approvals.Await(v.Request(o))
		}
	}
	var sum requestSum
	if label, err := hex.DecodeString(v.State.Run.Labels[labelRequest]); err == nil && len(label) == len(sum) && s.asked > 0 {
		copy(sum[:], label)
		mt.turns.Remember(sum.key(), id)
	}
	return s
}

// recountEvery surveys again and again until ctx is done. took is how long the last survey took.
func (mt *maintenance) recountEvery(ctx context.Context, took time.Duration) {
	next := time.NewTimer(surveyPause(mt.opts.Limits.Expiry, took))
	defer next.Stop()
	for {
		select {
		case <-next.C:
			began := time.Now()
			mt.recount(ctx)
			next.Reset(surveyPause(mt.opts.Limits.Expiry, time.Since(began)))
		case <-ctx.Done():
			return
		}
	}
}

// surveyPause returns the time between two surveys: every, or longer if the last one took long.
func surveyPause(every, took time.Duration) time.Duration {
	return max(every, min(surveyShare*took, maxSurveyPause))
}
