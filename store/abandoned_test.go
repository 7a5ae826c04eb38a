package store

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/lathe-run/lathe/remote"
)

// A transaction that its caller has left goes on beside it. What it sets is not read: the race detector would say so.
func TestNothingIsReadOfATransactionThatGoesOn(t *testing.T) {
	left := errors.New("the caller has left")
	m := NewMemory(nil)
	key := "run_1/call_1"
	if _, err := m.PutCall(t.Context(), &remote.Call{Key: key, RunID: "run_1", Tool: "t", Definition: "d", Arguments: []byte(`{}`)}, time.Hour); err != nil {
		t.Fatal(err)
	}
	var behind sync.WaitGroup
	defer behind.Wait()
	q := NewRecords(func(ctx context.Context, op string, write bool, fn func(Rows, time.Time) error) error {
		if !write {
			return m.change(ctx, op, write, fn)
		}
		behind.Go(func() { _ = m.change(ctx, op, write, fn) })
		return left
	})
	ref := remote.Ref{Key: key, Worker: "w", Attempt: 1}
	call := &remote.Call{Key: "run_1/call_2", RunID: "run_1", Tool: "t", Definition: "d", Arguments: []byte(`{}`)}
	if row, err := q.PutCall(t.Context(), call, time.Hour); row != nil || !errors.Is(err, left) {
		t.Errorf("put: %v, %v", row, err)
	}
	if calls, err := q.ClaimCalls(t.Context(), "w", []string{"d"}, time.Hour, 1); calls != nil || !errors.Is(err, left) {
		t.Errorf("claim: %v, %v", calls, err)
	}
	if stop, err := q.RenewCalls(t.Context(), "w", []remote.Ref{ref}, time.Hour); stop != nil || !errors.Is(err, left) {
		t.Errorf("renew: %v, %v", stop, err)
	}
	result := &remote.Result{Data: []byte(`{}`)}
	if err := q.FinishCall(t.Context(), ref, result); !errors.Is(err, left) {
		t.Errorf("finish: %v", err)
	}
	result.Data = nil
	worker := &remote.Worker{ID: "w"}
	if err := q.PutWorker(t.Context(), worker, time.Hour); !errors.Is(err, left) {
		t.Errorf("worker: %v", err)
	}
	worker.ID = "other"
	if row, err := q.CancelCall(t.Context(), key); row != nil || !errors.Is(err, left) {
		t.Errorf("cancel: %v, %v", row, err)
	}
	if n, err := q.Sweep(t.Context(), time.Now()); n != 0 || !errors.Is(err, left) {
		t.Errorf("sweep: %d, %v", n, err)
	}
	secret := []byte("random")
	if kept, err := q.SharedSecret(t.Context(), "seal", secret); kept != nil || !errors.Is(err, left) {
		t.Errorf("secret: %q, %v", kept, err)
	}
	if err := q.SetValue(t.Context(), "name", secret); !errors.Is(err, left) {
		t.Errorf("value: %v", err)
	}
	signal := Signal{RunID: "run_1", Kind: SignalCancel, Body: secret}
	if err := q.PutSignal(t.Context(), signal); !errors.Is(err, left) {
		t.Errorf("signal: %v", err)
	}
	clear(secret)
}
