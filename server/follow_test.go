package server

import (
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// A request that follows a run gets the deltas of a model call up to the first one that is missing, whether it subscribed late,
// the process that owns the run was reached late, or some were dropped on the way; what was written is then a beginning of the
// text in the next stored event, which has the rest.
func TestFollowerTakesTheBeginningOfATurn(t *testing.T) {
	t.Parallel()
	pieces := []string{"The ", "tools ", "said: ", "42"}
	for name, c := range map[string]struct {
		got  []int64 // the deltas that arrive
		want string
	}{
		"all":                {[]int64{1, 2, 3, 4}, "The tools said: 42"},
		"from the middle":    {[]int64{3, 4}, ""},
		"without the second": {[]int64{1, 3, 4}, "The "},
		"without the last":   {[]int64{1, 2, 3}, "The tools said: "},
		"twice":              {[]int64{1, 2, 1, 2, 3}, "The tools said: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			x := &watch{sink: func(e *event.Event) {
				if d, ok := e.Data.(*event.TextDelta); ok {
					got += d.Text
				}
			}}
			live := func(e event.Event) {
				if err := x.onLive(t.Context(), &e); err != nil {
					t.Fatal(err)
				}
			}
			for turn := range 2 { // the second one begins anew
				first := int64(2*turn + 1)
				got = ""
				live(event.Event{ID: first, Turn: turn + 1, Data: &event.ModelCallStarted{}})
				for _, n := range c.got {
					live(event.Event{After: first, N: n, Turn: turn + 1, Data: &event.TextDelta{Text: pieces[n-1]}})
				}
				if got != c.want {
					t.Errorf("turn %d: %q, want %q", turn+1, got, c.want)
				}
				m := lathe.Assistant("The tools said: 42")
				live(event.Event{ID: first + 1, Turn: turn + 1, Data: &event.ModelCallFinished{Message: &m}})
			}
		})
	}
}
