package storetest

import (
	"context"
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
	for _, tt := range []struct {
		name string
		fn   func(*testing.T, RequestRetainer)
	}{
		{"finds the run of a request", findsRequests},
		{"replaces the run of a request", replacesRequests},
		{"marks a request as delivered once", deliversRequests},
		{"keeps the record of a run that was retired", keepsRetiredRequests},
		{"removes the records of deleted runs", deletesRequests},
		{"respects the context with requests", requestsRespectContext},
		{"leaves one record of many writers", oneRequestWins},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.fn(t, open())
		})
	}
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

// wantRequest fails unless the request has the run, "" for none, and is delivered or not.
func wantRequest(t *testing.T, s store.RequestStore, request, runID string, delivered bool) {
	t.Helper()
	got, err := s.FindRequest(t.Context(), digestOf(request))
	if runID == "" {
		if lathe.CodeOf(err) != lathe.CodeNotFound {
			t.Errorf("%s: %+v, %v, want not_found", request, got, err)
		}
		return
	}
	if err != nil || got.RunID != runID || got.Delivered != delivered {
		t.Errorf("%s: %+v, %v, want %s, delivered %v", request, got, err, runID, delivered)
	}
	if delivered && got.DeliveredAge < time.Second {
		t.Errorf("%s: delivered %v ago, and not a second", request, got.DeliveredAge)
	}
	if got.Age < 0 || got.Age > time.Minute || got.DeliveredAge < 0 || got.DeliveredAge > time.Minute || !delivered && got.DeliveredAge != 0 {
		t.Errorf("%s: ages of %v and %v", request, got.Age, got.DeliveredAge)
	}
}

func findsRequests(t *testing.T, s RequestRetainer) {
	wantRequest(t, s, "a", "", false)
	mustPutRequest(t, s, "a", "run_1") // before the run has any event
	mustPutRequest(t, s, "b", "run_2")
	wantRequest(t, s, "a", "run_1", false)
	wantRequest(t, s, "b", "run_2", false)
	wantRequest(t, s, "c", "", false)
}

func replacesRequests(t *testing.T, s RequestRetainer) {
	mustPutRequest(t, s, "a", "run_1")
	mustPutRequest(t, s, "a", "run_1")
	mustPutRequest(t, s, "a", "run_2")
	wantRequest(t, s, "a", "run_2", false)
	mustDeliver(t, s, "a", "run_2")
	for _, instead := range []string{"", "run_1", "run_9"} { // of the run that has answered it the caller knows nothing
		if err := s.PutRequest(t.Context(), digestOf("a"), "run_3", instead); lathe.CodeOf(err) != lathe.CodeConflict || !errors.Is(err, lathe.ErrConflict) {
			t.Errorf("in place of %q: %v, want a conflict", instead, err)
		}
		wantRequest(t, s, "a", "run_2", true)
	}
	mustPutRequest(t, s, "a", "run_3")
	wantRequest(t, s, "a", "run_3", false)
	if err := s.PutRequest(t.Context(), digestOf("c"), "run_4", "run_1"); err != nil { // the record that it found was removed
		t.Error(err)
	}
	wantRequest(t, s, "c", "run_4", false)
}

func mustDeliver(t *testing.T, s store.RequestStore, request, runID string) {
	t.Helper()
	if err := s.DeliverRequest(t.Context(), digestOf(request), runID, time.Now().Add(-time.Second)); err != nil {
		t.Fatalf("deliver %s: %v", request, err)
	}
}

func deliversRequests(t *testing.T, s RequestRetainer) {
	mustDeliver(t, s, "a", "run_1") // of which there is no record
	wantRequest(t, s, "a", "", false)
	mustPutRequest(t, s, "a", "run_2")
	mustDeliver(t, s, "a", "run_1") // which another run has replaced
	wantRequest(t, s, "a", "run_2", false)
	mustDeliver(t, s, "a", "run_2")
	wantRequest(t, s, "a", "run_2", true)
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
	wantRequest(t, s, "a", "run_0", false) // a repetition learns that the content is gone
	if err := s.DeletePrincipal(t.Context(), "p0"); err != nil {
		t.Fatal(err)
	}
	wantRequest(t, s, "a", "", false)
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
		id := fmt.Sprintf("run_%d", i)
		if i == 0 || i == 4 || i%2 == 1 {
			id = ""
		}
		wantRequest(t, s, fmt.Sprint(i), id, false)
	}
}

func requestsRespectContext(t *testing.T, s RequestRetainer) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.PutRequest(ctx, digestOf("a"), "run_1", ""); lathe.CodeOf(err) != lathe.CodeCancelled {
		t.Errorf("put: %v", err)
	}
	if _, err := s.FindRequest(ctx, digestOf("a")); lathe.CodeOf(err) != lathe.CodeCancelled {
		t.Errorf("find: %v", err)
	}
	if err := s.DeliverRequest(ctx, digestOf("a"), "run_1", time.Now()); lathe.CodeOf(err) != lathe.CodeCancelled {
		t.Errorf("deliver: %v", err)
	}
	wantRequest(t, s, "a", "", false)
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
	wantRequest(t, s, "a", got.RunID, true)
}
