package storetest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/store"
)

// A RequestRetainer is a store that records requests and removes runs.
type RequestRetainer interface {
	store.Retainer
	store.RequestStore
}

// TestRequests runs the tests for [store.RequestStore]. open is as of [Test].
func TestRequests(t *testing.T, open func() RequestRetainer) {
	t.Helper()
	run(t, open, []testOf[RequestRetainer]{
		{"finds the run of a request", findsRequests},
		{"replaces the run of a request", replacesRequests},
		{"marks a request as delivered once", deliversRequests},
		{"keeps the record of a run that was retired", keepsRetiredRequests},
		{"removes the records of deleted runs", deletesRequests},
		{"respects the context with requests", requestsRespectContext},
		{"leaves one record of many writers", oneRequestWins},
	})
}

func digestOf(s string) store.RequestDigest { return sha256.Sum256([]byte(s)) }

func mustPutRequest(t *testing.T, s store.RequestStore, request, runID string) {
	t.Helper()
	found, err := s.FindRequest(t.Context(), digestOf(request))
	if err != nil && lathe.CodeOf(err) != lathe.CodeNotFound {
		t.Fatalf("find %s: %v", request, err)
	}
	if err := s.PutRequest(t.Context(), digestOf(request), runID, found.RunID); err != nil {
		t.Fatalf("put %s: %v", request, err)
	}
}

func wantNoRequest(t *testing.T, s store.RequestStore, request string) {
	t.Helper()
	if got, err := s.FindRequest(t.Context(), digestOf(request)); lathe.CodeOf(err) != lathe.CodeNotFound {
		t.Errorf("%s: %+v, %v, want not_found", request, got, err)
	}
}

// wantUndelivered fails unless the request has the run, and was not delivered.
func wantUndelivered(t *testing.T, s store.RequestStore, request, runID string) {
	t.Helper()
	if got := wantRequest(t, s, request, runID); got.Delivered || got.DeliveredAge != 0 {
		t.Errorf("%s: %+v, want a request that was not delivered", request, got)
	}
}

// wantDelivered fails unless the request has the run, and was delivered by mustDeliver, a second ago.
func wantDelivered(t *testing.T, s store.RequestStore, request, runID string) {
	t.Helper()
	if got := wantRequest(t, s, request, runID); !got.Delivered || got.DeliveredAge < time.Second || got.DeliveredAge > time.Minute {
		t.Errorf("%s: %+v, want a request that was delivered a second ago", request, got)
	}
}

// wantRequest fails unless the request has the run, and returns its record.
func wantRequest(t *testing.T, s store.RequestStore, request, runID string) store.RequestRecord {
	t.Helper()
	got, err := s.FindRequest(t.Context(), digestOf(request))
	if err != nil || got.RunID != runID {
		t.Errorf("%s: %+v, %v, want %s", request, got, err, runID)
	}
	if got.Age < 0 || got.Age > time.Minute {
		t.Errorf("%s: its age is %v", request, got.Age)
	}
	return got
}

func findsRequests(t *testing.T, s RequestRetainer) {
	wantNoRequest(t, s, "a")
	mustPutRequest(t, s, "a", "run_1") // before the run has any event
	mustPutRequest(t, s, "b", "run_2")
	wantUndelivered(t, s, "a", "run_1")
	wantUndelivered(t, s, "b", "run_2")
	wantNoRequest(t, s, "c")
}

func replacesRequests(t *testing.T, s RequestRetainer) {
	mustPutRequest(t, s, "a", "run_1")
	mustPutRequest(t, s, "a", "run_1")
	mustPutRequest(t, s, "a", "run_2")
	wantUndelivered(t, s, "a", "run_2")
	mustDeliver(t, s, "a", "run_2")
	for _, instead := range []string{"", "run_1", "run_9"} { // of the run that has answered it the caller knows nothing
		if err := s.PutRequest(t.Context(), digestOf("a"), "run_3", instead); lathe.CodeOf(err) != lathe.CodeConflict || !errors.Is(err, lathe.ErrConflict) {
			t.Errorf("in place of %q: %v, want a conflict", instead, err)
		}
		wantDelivered(t, s, "a", "run_2")
	}
	mustPutRequest(t, s, "a", "run_3")
	wantUndelivered(t, s, "a", "run_3")
	if err := s.PutRequest(t.Context(), digestOf("c"), "run_4", "run_1"); err != nil { // the record that it found was removed
		t.Error(err)
	}
	wantUndelivered(t, s, "c", "run_4")
}

func mustDeliver(t *testing.T, s store.RequestStore, request, runID string) {
	t.Helper()
	if err := s.DeliverRequest(t.Context(), digestOf(request), runID, time.Now().Add(-time.Second)); err != nil {
		t.Fatalf("deliver %s: %v", request, err)
	}
}

func deliversRequests(t *testing.T, s RequestRetainer) {
	mustDeliver(t, s, "a", "run_1") // of which there is no record
	wantNoRequest(t, s, "a")
	mustPutRequest(t, s, "a", "run_2")
	mustDeliver(t, s, "a", "run_1") // which another run has replaced
	wantUndelivered(t, s, "a", "run_2")
	mustDeliver(t, s, "a", "run_2")
	wantDelivered(t, s, "a", "run_2")
	first, err := s.FindRequest(t.Context(), digestOf("a"))
	if err != nil {
		t.Fatal(err)
	}
	mustDeliver(t, s, "a", "run_2")
	if again, err := s.FindRequest(t.Context(), digestOf("a")); err != nil || again.DeliveredAge < first.DeliveredAge {
		t.Errorf("delivered %v ago, and later %v ago: %v", first.DeliveredAge, again.DeliveredAge, err)
	}
}

func keepsRetiredRequests(t *testing.T, s RequestRetainer) {
	fillKept(t, s)
	mustPutRequest(t, s, "a", "run_0")
	if err := s.DeleteBefore(t.Context(), epoch.Add(1000*24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	wantLeft(t, s, "124578")
	wantUndelivered(t, s, "a", "run_0") // a repetition can then report that the run was removed
	if err := s.DeletePrincipal(t.Context(), "p0"); err != nil {
		t.Fatal(err)
	}
	wantNoRequest(t, s, "a")
}

func deletesRequests(t *testing.T, s RequestRetainer) {
	fillKept(t, s)
	for i := range 9 {
		mustPutRequest(t, s, fmt.Sprint(i), fmt.Sprintf("run_%d", i))
	}
	for _, do := range []func() error{
		func() error { return s.Delete(t.Context(), "run_0") },
		func() error { return s.DeleteSession(t.Context(), "s_4") },
		func() error { return s.DeletePrincipal(t.Context(), "p1") },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	wantLeft(t, s, "268")
	for i := range 9 {
		if i == 0 || i == 4 || i%2 == 1 {
			wantNoRequest(t, s, fmt.Sprint(i))
		} else {
			wantUndelivered(t, s, fmt.Sprint(i), fmt.Sprintf("run_%d", i))
		}
	}
}

func requestsRespectContext(t *testing.T, s RequestRetainer) {
	ctx := cancelled(t)
	if err := s.PutRequest(ctx, digestOf("a"), "run_1", ""); lathe.CodeOf(err) != lathe.CodeCancelled {
		t.Errorf("put: %v", err)
	}
	if _, err := s.FindRequest(ctx, digestOf("a")); lathe.CodeOf(err) != lathe.CodeCancelled {
		t.Errorf("find: %v", err)
	}
	if err := s.DeliverRequest(ctx, digestOf("a"), "run_1", time.Now()); lathe.CodeOf(err) != lathe.CodeCancelled {
		t.Errorf("deliver: %v", err)
	}
	wantNoRequest(t, s, "a")
}

func oneRequestWins(t *testing.T, s RequestRetainer) {
	var wg sync.WaitGroup
	var won atomic.Int64
	for i := range 16 {
		wg.Go(func() {
			switch err := s.PutRequest(t.Context(), digestOf("a"), fmt.Sprintf("run_%d", i), ""); {
			case err == nil:
				won.Add(1)
			case lathe.CodeOf(err) != lathe.CodeConflict:
				t.Errorf("put: %v", err)
			}
		})
	}
	wg.Wait()
	got, err := s.FindRequest(t.Context(), digestOf("a"))
	if err != nil || won.Load() != 1 {
		t.Fatalf("%d runs answer the request: %v", won.Load(), err)
	}
	for i := range 16 {
		mustDeliver(t, s, "a", fmt.Sprintf("run_%d", i))
	}
	wantDelivered(t, s, "a", got.RunID)
}
