package mcptool

import (
	"testing"
	"time"
)

func TestBackoffGrowsAndIsBounded(t *testing.T) {
	t.Parallel()
	b := newBackoff(0, 0)
	b.jitter = func() float64 { return 0 }
	for i, want := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second} {
		if got := b.next(); got != want {
			t.Errorf("pause %d: got %s, want %s", i, got, want)
		}
	}
	for range 1_000 {
		if got := b.next(); got > time.Minute {
			t.Fatalf("got %s", got)
		}
	}
	if got := b.next(); got != time.Minute {
		t.Errorf("after many: got %s", got)
	}
	b.jitter = func() float64 { return 0.999 }
	if got := b.next(); got < 30*time.Second || got > 31*time.Second {
		t.Errorf("with jitter: got %s, want about half", got)
	}
	b.reset()
	if got := b.next(); got > 500*time.Millisecond {
		t.Errorf("after a success: got %s", got)
	}
}

func TestBackoffDoesNotOverflow(t *testing.T) {
	t.Parallel()
	b := newBackoff(20*time.Second, 10*time.Minute)
	b.jitter = func() float64 { return 0 }
	for i := range 100 {
		if got, want := b.next(), min(20*time.Second<<min(i, 10), 10*time.Minute); got != want {
			t.Fatalf("pause %d: got %s, want %s", i, got, want)
		}
	}
}
