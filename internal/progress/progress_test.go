package progress

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// On a terminal the line appears after a second, is written over every second, and is gone at the end.
func TestLiveLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		l := Start(&out, &Options{Live: true})
		l.Say("starting notes")
		time.Sleep(2500 * time.Millisecond)
		synctest.Wait()
		l.Say("copying")
		l.Count(1, 10)
		time.Sleep(time.Second)
		synctest.Wait()
		l.Stop()
		const over = "\r\x1b[2K"
		if got, want := out.String(), over+"· starting notes, 1 s"+over+"· starting notes, 2 s"+over+"· copying: 1 of 10, 20.0/min, 27 s left"+over; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// Elsewhere there is a line every ten seconds, and none for what is over before.
func TestLinesInAFile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		short := Start(&out, nil)
		short.Say("short")
		time.Sleep(9 * time.Second)
		short.Stop()
		l := Start(&out, nil)
		l.Say("copying runs")
		time.Sleep(50 * time.Millisecond)
		for i := range 250 {
			l.Count(i+1, 3000)
			time.Sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		l.Stop()
		want := "note: copying runs: 100 of 3000, 10/s, 290 s left\n" + "note: copying runs: 200 of 3000, 10/s, 280 s left\n"
		want = strings.NewReplacer("290 s", "4 min", "280 s", "4 min").Replace(want)
		if got := out.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// Work that goes on from the middle is measured by what is done now.
func TestRateOfWorkThatWasTakenUpAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		l := Start(&out, nil)
		l.Say("runs")
		l.Count(1000, 1100)
		time.Sleep(5 * time.Second)
		l.Count(1010, 1100)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		l.Stop()
		if got, want := out.String(), "note: runs: 1010 of 1100, 1.0/s, 90 s left\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestShowWritesAtOnceOnATerminalAlone(t *testing.T) {
	t.Parallel()
	for live, want := range map[bool]string{true: "\r\x1b[2K· runs: 2 of 2, 0 s\r\x1b[2K", false: ""} {
		synctest.Test(t, func(t *testing.T) {
			var out strings.Builder
			l := Start(&out, &Options{Live: live})
			l.Say("runs")
			l.Count(2, 2)
			l.Show()
			l.Stop()
			if out.String() != want {
				t.Errorf("got %q, want %q", out.String(), want)
			}
		})
	}
}

func TestQuiet(t *testing.T) {
	t.Parallel()
	l := Start(nil, &Options{Quiet: true})
	l.Say("x")
	l.Count(1, 2)
	l.Stop()
}

func TestLongLinesAreCut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		l := Start(&out, &Options{Live: true, Width: func() int { return 10 }})
		l.Say("ä long text that does not fit")
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		l.Stop()
		if got, want := out.String(), "\r\x1b[2K· ä long \r\x1b[2K"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestSpans(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{90 * time.Second: "90 s", 3 * time.Minute: "3 min", 5 * time.Hour: "5.0 h"} {
		if got := span(d); got != want {
			t.Errorf("%v: %q", d, got)
		}
	}
}
