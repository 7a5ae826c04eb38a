package engine_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
)

// rewind has a store lose all of a run but its first events, and who carries it. What came to it from
// outside stays.
func rewind(t *testing.T, kept *store.Memory, id string, events int64) {
	t.Helper()
	facts, err := kept.Facts(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var log []lathe.Event
	for e, err := range kept.Read(t.Context(), id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		log = append(log, e)
	}
	if err := kept.Delete(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if _, err := kept.Append(t.Context(), id, 0, log[:events]...); err != nil {
		t.Fatal(err)
	}
	for _, f := range facts {
		if err := kept.PutFact(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
}

// F6: the store has lost the end of a log. Whatever it is that is missing, nothing is done again: the run is
// set aside by the node that knows, though another one is there first, and ends when a person says so.
func TestF6_LostEventsAreNotDoneAgain(t *testing.T) {
	t.Parallel()
	for _, asks := range []bool{false, true} {
		for n := int64(1); n < 13; n++ {
			t.Run(fmt.Sprintf("asks %v, %d events are left", asks, n), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { lose(t, asks, n) })
			})
		}
	}
}

func lose(t *testing.T, asks bool, left int64) {
	t.Helper()
	kept, c, d := store.NewMemory(nil), &counter{}, &desk{}
	slow := model{pieces: 1, wait: 10 * time.Second}
	loopOf := func() *loop.Loop {
		if asks {
			return askingLoopOf(t, slow, d, c)
		}
		return newLoop(t, slow, c)
	}
	knows, other := join(t, kept, loopOf()), join(t, kept, loopOf())
	knows.start(t, "run_1")
	time.Sleep(11*time.Second + time.Second/2) // between two looks for runs
	if asks {
		d.open.Store(true)
		if err := kept.PutFact(t.Context(), lathe.Fact{RunID: "run_1", Kind: lathe.FactApproval, Key: "a", Body: []byte(`{}`)}); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(4 * time.Second) // the model speaks for the second time
	rows, _, err := kept.Runs(t.Context(), nil)
	if err != nil || len(rows) != 1 || c.count() != 1 || rows[0].Status != "running" {
		t.Fatalf("%+v, %v, the tool ran %d times", rows, err, c.count())
	}
	if left >= rows[0].LastID {
		return // nothing is lost
	}
	rewind(t, kept, "run_1", left)
	knows.snap()
	other.losses <- nil
	time.Sleep(5 * time.Second) // longer than it takes to claim
	knows.losses <- []string{"run_1"}
	knows.mend()
	time.Sleep(10 * time.Minute)
	rows, _, err = kept.Runs(t.Context(), nil)
	if err != nil || len(rows) != 1 || rows[0].Status != "parked" || rows[0].Reason != lathe.ReasonInterrupted || c.count() != 1 {
		t.Fatalf("%+v, %v, the tool ran %d times", rows, err, c.count())
	}
	if err := kept.PutFact(t.Context(), lathe.Fact{RunID: "run_1", Kind: lathe.FactCancel}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute)
	if reason, n := ends(t, kept, "run_1"); reason != lathe.ReasonCancelled || n != 1 || c.count() != 1 {
		t.Errorf("it ends %s, %d times; the tool ran %d times", reason, n, c.count())
	}
}
