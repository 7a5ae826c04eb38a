package server

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/gateway/splice"
	"github.com/lathe-run/lathe/store"
)

// A suspendedRun is the state of a suspended run when its log was last read.
type suspendedRun struct {
	lastID int64
	asked  int // number of open calls that require an approval
}

// maintenance resumes runs without a request of a client: runs whose approval requests have expired and, if the store is
// shared, runs that no process owns.
type maintenance struct {
	*runStarter
	turns *splice.Turns
	seen  map[string]suspendedRun // the runs of the last survey, by id; used only by the goroutine that surveys
}

// Limits of one survey, in which a process reads the runs that wait for an approval. Every process of a shared store makes
// surveys: without limits their cost would grow with the number of suspended runs times the number of processes.
const (
	// maxSurveyed is the number of suspended runs that a survey of a shared store lists, newest first. The gauge and the
	// turns in memory have no more.
	maxSurveyed = 10_000
	// maxSurveyReads is the number of logs that a survey of a shared store reads. Later surveys read the others.
	maxSurveyReads = 200
	// surveyShare limits the time spent on surveys: the pause after a survey is surveyShare times its duration. It applies
	// to every store.
	surveyShare = 50
	// maxSurveyPause is the maximum time between two surveys.
	maxSurveyPause = 5 * time.Minute
)

// recount makes one survey, and sets the gauge of open approvals.
func (mt *maintenance) recount(ctx context.Context) {
	_ = mt.opts.Engine.Flush(ctx, "") // if the store fails, the list of the survey reports it
	var err error
	if m := mt.opts.Metrics; m != nil {
		err = m.RecountApprovals(func() (map[string]int, error) { return mt.survey(ctx) })
	} else {
		_, err = mt.survey(ctx)
	}
	if err != nil && ctx.Err() == nil {
		mt.opts.Log.Error("the runs that wait for an approval could not be read", "code", lathe.CodeOf(err))
	}
}

// survey reads the suspended runs that wait for an approval, whichever process executed them, and returns the number of open
// approvals of each. It records the runs for equal requests and, if the store is not shared, adds the requests to the
// approval queue. It reads a log again only if the log has changed.
func (mt *maintenance) survey(ctx context.Context) (map[string]int, error) {
	next := map[string]suspendedRun{} // the runs whose log was read, now or before: mt.seen of the next survey
	open := map[string]int{}
	surveyed, reads := 0, 0
	for row, err := range (&store.RunFilter{Status: "parked"}).All(ctx, mt.opts.Index) {
		if err != nil {
			return nil, err
		}
		if row.Reason == lathe.ReasonAwaitingApproval {
			open[row.RunID] = len(row.Pending)
			run, known := mt.seen[row.RunID]
			isCurrent := known && run.lastID == row.LastID        // the log has not changed since the last survey
			mayRead := mt.shared == nil || reads < maxSurveyReads // this survey may read a further log
			if !isCurrent && mayRead {
				reads++
				run = mt.readSuspended(ctx, row.RunID)
			}
			if isCurrent || mayRead {
				next[row.RunID], open[row.RunID] = run, run.asked
			}
		}
		if surveyed++; mt.shared != nil && surveyed == maxSurveyed {
			break
		}
	}
	mt.seen = next
	return open, nil
}

// readSuspended reads the log of a suspended run. It returns the zero value if the run cannot be read.
func (mt *maintenance) readSuspended(ctx context.Context, id string) suspendedRun {
	v, p := mt.view(ctx, serverCaller(), id)
	if p != nil {
		return suspendedRun{} // the run was deleted in the meantime
	}
	s := suspendedRun{lastID: v.State.LastID}
	for _, o := range v.State.Open {
		if !o.Asked {
			continue
		}
		s.asked++
		if mt.shared == nil {
			mt.opts.Approvals.Await(v.Request(&o))
		}
	}
	var sum requestSum
	if label, err := hex.DecodeString(v.State.Run.Labels[labelRequest]); err == nil && len(label) == len(sum) && s.asked > 0 {
		copy(sum[:], label)
		mt.turns.Remember(sum.key(), id)
	}
	return s
}

// recountEvery repeats the survey until ctx is done. took is the duration of the last survey.
func (mt *maintenance) recountEvery(ctx context.Context, took time.Duration) {
	for {
		select {
		case <-time.After(surveyPause(mt.opts.Limits.Expiry, took)):
			began := time.Now()
			mt.recount(ctx)
			took = time.Since(began)
		case <-ctx.Done():
			return
		}
	}
}

// surveyPause returns the time until the next survey: every, or longer if the last survey took long.
func surveyPause(every, took time.Duration) time.Duration {
	return max(every, min(surveyShare*took, maxSurveyPause))
}
