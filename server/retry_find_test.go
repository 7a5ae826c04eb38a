package server

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/store"
)

// unstored returns the earlier runs of a server whose runs no store keeps, and a request that looks for one.
func unstored() (*earlierRuns, *tracked) {
	er := newEarlierRuns(&runViews{&core{opts: Options{Limits: Limits{}.withDefaults(), Now: time.Now}}})
	return er, &tracked{earlier: er, caller: &caller{arrived: time.Now()}, digest: store.RequestDigest{1}}
}

// A run that ends while a request looks for it has its result where no store keeps runs.
func TestRunThatEndsDuringLookupHasResult(t *testing.T) {
	t.Parallel()
	er, track := unstored()
	for range testdata.Cases(500) {
		id := "run_1"
		er.results = results{max: 1, maxBytes: 1 << 10}
		f := &inflightRun{id: id}
		er.inflight.add(f)
		done := make(chan struct{})
		go func() {
			defer close(done)
			er.results.put(id, &event.Result{Reason: lathe.ReasonAnswered}, 0, time.Now(), nil)
			er.inflight.remove(f)
		}()
		for over := false; !over; {
			e, p := er.readEarlier(t.Context(), track, id)
			if p != nil {
				t.Fatalf("the run is not found: %+v", p)
			}
			over = e.over
		}
		<-done
	}
}

// A run that ends before a request waits for it is not waited for, where no supervisor executes runs.
func TestRunThatEndedIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	er, _ := unstored()
	if res, ok := er.waitRun(t.Context(), "run_1"); res != nil || ok {
		t.Errorf("got %+v, %v, want no run", res, ok)
	}
}

// slowRequests is a store whose first lookups take a time.
type slowRequests struct {
	store.RequestStore
	slow int
	wait time.Duration
}

func (s *slowRequests) FindRequest(ctx context.Context, d store.RequestDigest) (store.RequestRecord, error) {
	if s.slow--; s.slow >= 0 {
		time.Sleep(s.wait)
	}
	return s.RequestStore.FindRequest(ctx, d)
}

// A request that came before the answer of an equal one was delivered gets that answer, and a request that came after it
// does not, however long the lookups take between which the delivery falls.
func TestLookupDuringDelivery(t *testing.T) {
	t.Parallel()
	for _, wait := range []time.Duration{time.Millisecond, slowLookup, slowLookup + 1, time.Second} {
		for _, slow := range []int{1, maxFastLookups - 1} {
			for _, after := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					er, track := unstored()
					er.requests = &slowRequests{er.requests, slow, wait}
					if err := er.requests.PutRequest(t.Context(), track.digest, "run_1", ""); err != nil {
						t.Fatal(err)
					}
					er.results.put("run_1", &event.Result{Reason: lathe.ReasonAnswered}, 0, time.Now(), nil)
					deliver := func() {
						if err := er.requests.DeliverRequest(t.Context(), track.digest, "run_1", time.Now()); err != nil {
							t.Error(err)
						}
					}
					if after {
						deliver()
						time.Sleep(wait / 2)
						track.caller.arrived = time.Now()
					} else {
						time.AfterFunc(wait/2, deliver)
					}
					e, p := er.findEarlier(t.Context(), track)
					if p != nil || (e == nil) != after {
						t.Errorf("%d lookups of %v, request after the delivery %v: got %+v, %+v", slow, wait, after, e, p)
					}
				})
			}
		}
	}
}
