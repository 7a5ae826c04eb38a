package engine_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
)

// rewind makes a store lose the claim of a run and all events after the first ones, whose number is events. The signals stay.
func rewind(t *testing.T, kept *store.Memory, id string, events int64) {
	t.Helper()
	signals, err := kept.Signals(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var log []event.Event
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
	for _, f := range signals {
		if err := kept.PutSignal(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
}

// F6: the store has lost the end of a log. Whatever it is that is missing, nothing is done again: the run is
// set aside by the node that knows, though another one is there first, and ends when a caller cancels it.
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
	kept, c, d := store.NewMemory(nil), &counter{}, &approvals{}
	slow := model{pieces: 1, wait: 10 * time.Second}
	loopOf := func() *loop.Loop {
		if asks {
			return askingLoopOf(t, slow, d, c)
		}
		return newLoop(t, slow, c)
	}
	knows, other := newHost(t, kept, loopOf()), newHost(t, kept, loopOf())
	knows.start(t, "run_1")
	time.Sleep(11*time.Second + time.Second/2) // between two looks for runs
	if asks {
		d.open.Store(true)
		if err := kept.PutSignal(t.Context(), store.Signal{RunID: "run_1", Kind: store.SignalApproval, Key: "a", Body: []byte(`{}`)}); err != nil {
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
	if err := kept.PutSignal(t.Context(), store.Signal{RunID: "run_1", Kind: store.SignalCancel}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute)
	if reason, n := ends(t, kept, "run_1"); reason != lathe.ReasonCancelled || n != 1 || c.count() != 1 {
		t.Errorf("it ends %s, %d times; the tool ran %d times", reason, n, c.count())
	}
}

// F6: the store has lost the end of a log, with an approval and an execution. A caller that resumes or cancels the run, at
// the node that knows of the loss or at another, gets code unavailable (try again) until the run is set aside.
func TestF6_NoRequestResumesAfterALoss(t *testing.T) {
	t.Parallel()
	for _, during := range []bool{false, true} { // the server is found to be another one by claiming the run
		for _, atKnows := range []bool{false, true} {
			t.Run(fmt.Sprintf("found by claiming %v, at the one that knows %v", during, atKnows), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { requestAfterLoss(t, during, atKnows) })
			})
		}
	}
}

func requestAfterLoss(t *testing.T, during, atKnows bool) {
	t.Helper()
	kept, c, d := store.NewMemory(nil), &counter{}, &approvals{}
	l := askingLoop(t, d, c)
	knows, other := newHost(t, kept, l), newHost(t, kept, l)
	knows.start(t, "run_1")
	time.Sleep(time.Second + time.Second/2) // between two looks for runs, and so on
	rows, _, err := kept.Runs(t.Context(), nil)
	if err != nil || len(rows) != 1 || rows[0].Reason != lathe.ReasonAwaitingApproval {
		t.Fatalf("%+v, %v", rows, err)
	}
	d.open.Store(true)
	if err := knows.supervisor.Resume(t.Context(), l, "run_1", nil); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	if c.count() != 1 || status(t, kept, "run_1") != "completed" {
		t.Fatalf("the tool ran %d times, and the run is %s", c.count(), status(t, kept, "run_1"))
	}
	rewind(t, kept, "run_1", rows[0].LastID)
	at, lost := other, []string(nil)
	if atKnows {
		at, lost = knows, []string{"run_1"}
	}
	meet := func() {
		at.losses <- lost
		at.losses <- nil // once it has heard
	}
	if during {
		at.taken = meet
	} else {
		meet()
	}
	refused := func(what string, err error) {
		t.Helper()
		if lathe.CodeOf(err) != lathe.CodeUnavailable || !strings.Contains(err.Error(), "try again") {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("resume", at.supervisor.Resume(t.Context(), l, "run_1", nil))
	at.taken = nil
	_, err = at.eng.Resume(t.Context(), l, "run_1", nil)
	refused("resume without a supervisor", err)
	_, err = at.eng.Cancel(t.Context(), l, "run_1")
	refused("cancel", err)
	if owner, err := kept.Owner(t.Context(), "run_1"); owner != "" || err != nil {
		t.Errorf("%q keeps the run, %v", owner, err)
	}
	if !atKnows {
		knows.losses <- []string{"run_1"}
	}
	time.Sleep(10 * time.Minute)
	rows, _, err = kept.Runs(t.Context(), nil)
	if err != nil || len(rows) != 1 || rows[0].Reason != lathe.ReasonInterrupted || rows[0].Status != "parked" || c.count() != 1 {
		t.Errorf("%+v, %v, the tool ran %d times", rows, err, c.count())
	}
	if _, err := at.eng.Cancel(t.Context(), l, "run_1"); err != nil || c.count() != 1 {
		t.Errorf("a while later: %v, the tool ran %d times", err, c.count())
	}
}

// F6: a run that cannot be resumed, and whose end is lost, is ended again. It does not stay under way for ever.
func TestF6_LostEndIsWrittenAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept := store.NewMemory(nil)
		h := newHost(t, kept, newLoop(t, model{pieces: 1}, &counter{}))
		time.Sleep(time.Second)
		halfway(t, kept, "run_1", time.Now(), "")
		h.losses <- []string{"run_1"}
		synctest.Wait()
		wantAbandoned(t, kept, "run_1")
	})
}

// F6: after a failover no run is ended as abandoned while another node may have later events of it.
func TestF6_NoRunIsEndedAfterAFailover(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept := store.NewMemory(nil)
		h := newHost(t, kept, newLoop(t, model{pieces: 1}, &counter{}))
		time.Sleep(55*time.Second + time.Second/2) // they are looked for each minute
		halfway(t, kept, "run_1", time.Now().Add(-time.Hour), "")
		h.losses <- nil
		time.Sleep(8 * time.Second)
		if got := status(t, kept, "run_1"); got != "running" {
			t.Errorf("it is %s at once", got)
		}
		time.Sleep(2 * time.Minute)
		wantAbandoned(t, kept, "run_1")
	})
}

// A run that is not there may have been deleted by another process: that is no alarm.
func TestLossOfAWholeRunMayBeADeletion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		h := newHost(t, store.NewMemory(nil), newLoop(t, model{pieces: 1}), func(o *engine.Options) { o.Log = slog.New(slog.NewTextHandler(&logged, nil)) })
		h.losses <- []string{"run_1"}
		synctest.Wait()
		h.leave()
		lines := slices.Collect(strings.Lines(logged.String()))
		if len(lines) != 1 || !strings.Contains(lines[0], "level=WARN") || !strings.Contains(lines[0], "or it was deleted") || !strings.Contains(lines[0], "run_id=run_1") {
			t.Errorf("%q", lines)
		}
	})
}
