package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/lathe-run/lathe/remote"
	"github.com/lathe-run/lathe/store"
)

// A request that fails after a write changes nothing, and those before and behind it in the same batch are committed, whether the batch
// is executed with savepoints or not. A request is not executed if its context is done.
func TestFailureInBatch(t *testing.T) {
	t.Parallel()
	s, err := Open(filepath.Join(t.TempDir(), "runs.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	failed := errors.New("failed")
	done, cancel := context.WithCancel(t.Context())
	cancel()
	var want []string
	for _, savepoints := range []int{0, carefulBatches, carefulBatches - 1} {
		if s.careful != savepoints {
			t.Errorf("%d batches with savepoints, want %d", s.careful, savepoints)
		}
		var batch []*request
		write := func(ctx context.Context, name string, fails error) {
			name = name + string(rune('0'+len(want)))
			batch = append(batch, &request{ctx: ctx, done: make(chan answer, 1), do: func(ctx context.Context, tx querier) (int64, error) {
				return 7, errors.Join(put(ctx, tx, "INSERT INTO secret (name, value) VALUES (?, '')", name), fails)
			}})
			if ctx.Err() == nil && fails == nil {
				want = append(want, name)
			}
		}
		write(t.Context(), "a", nil)
		write(t.Context(), "b", failed)
		write(done, "c", nil)
		write(t.Context(), "d", nil)
		s.commit(batch)
		for i, wanted := range []error{nil, failed, context.Canceled, nil} {
			if a := <-batch[i].done; !errors.Is(a.err, wanted) || wanted == nil && a.end != 7 {
				t.Errorf("request %d: %d, %v, want %v", i, a.end, a.err, wanted)
			}
		}
		got, err := collect(t.Context(), s.read, func(scan scanner) (name string, err error) { return name, scan(&name) }, "SELECT name FROM secret")
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("the file has %q, want %q", got, want)
		}
	}
}

// What a change returns is that of the transaction that was committed, and nothing of one that was rolled back before.
func TestChangesMayBeExecutedAgain(t *testing.T) {
	t.Parallel()
	s, err := Open(filepath.Join(t.TempDir(), "runs.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	queue := store.NewRecords(func(ctx context.Context, op string, write bool, fn func(store.Rows, time.Time) error) error {
		for _, commit := range []bool{false, true} {
			tx, err := s.write.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			now := time.Now()
			err = fn(&rows{session{ctx, tx}, op, now, write, s.schema}, now)
			if commit && write && err == nil {
				err = tx.Commit()
			} else {
				err = errors.Join(err, tx.Rollback())
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	for _, key := range []string{"a", "b"} {
		if _, err := queue.PutCall(t.Context(), &remote.Call{Key: key, RunID: "run_1", CallID: key, Tool: "act", Definition: "d", Arguments: []byte("{}")}, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	claimed, err := queue.ClaimCalls(t.Context(), "worker", []string{"d"}, time.Hour, 10)
	if err != nil || len(claimed) != 2 {
		t.Fatalf("%d calls were claimed, want 2: %v", len(claimed), err)
	}
	lost := remote.Ref{Key: "c", Attempt: 1}
	if stop, err := queue.RenewCalls(t.Context(), "worker", []remote.Ref{lost}, time.Hour); err != nil || !slices.Equal(stop, []remote.Ref{lost}) {
		t.Errorf("%v is to stop, want %v: %v", stop, lost, err)
	}
}
