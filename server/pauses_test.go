package server

import (
	"testing"
	"time"

	"github.com/lathe-run/lathe/event"
)

// A watcher of a run without events reads a shared store less and less often, and its keep-alives come on time.
func TestWatcherReadsASilentRunLessOften(t *testing.T) {
	t.Parallel()
	l := &Limits{Poll: 250 * time.Millisecond, KeepAlive: 15 * time.Second}
	x := &watch{sink: func(*event.Event) {}}
	var reads int
	for x.silent < l.KeepAlive {
		x.silent += x.pause(l)
		x.idle++
		reads++
	}
	if x.silent != l.KeepAlive || reads != 7 { // after 0.25, 0.75, 1.75, 3.75, 7.75, 11.75 and 15 s
		t.Errorf("%d reads in %v", reads, x.silent)
	}
	if err := x.write(&event.Event{}); err != nil || x.pause(l) != l.Poll {
		t.Errorf("after an event the pause is %v, %v", x.pause(l), err)
	}
}

// Surveys take a fiftieth of the time at most, unless one takes longer than six seconds.
func TestSurveysTakeAFiftiethOfTheTime(t *testing.T) {
	t.Parallel()
	for took, want := range map[time.Duration]time.Duration{
		0: 10 * time.Second, 100 * time.Millisecond: 10 * time.Second, time.Second: 50 * time.Second, time.Hour: 5 * time.Minute,
	} {
		if got := surveyPause(10*time.Second, took); got != want {
			t.Errorf("after %v: %v, want %v", took, got, want)
		}
	}
}
