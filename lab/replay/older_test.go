package replay_test

import (
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// A record of a version that did not give the cause of a blank answer replays without differences.
func TestRecordWithoutTheCauseOfABlankAnswer(t *testing.T) {
	t.Parallel()
	r := record(t, lathe.Settings{})
	res := play(t, r, lathe.Settings{})
	end, ok := res.Events[len(res.Events)-1].Data.(*event.RunFinished)
	if !ok {
		t.Fatal("the run did not end")
	}
	end.Blank = lathe.BlankEmpty
	if differences, err := r.Compare(res, true); err != nil || len(differences) != 0 {
		t.Errorf("%+v, %v", differences, err)
	}
}
