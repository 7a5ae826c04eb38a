package startgc

import (
	"flag"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// percentage returns that in force.
func percentage() int {
	p := debug.SetGCPercent(100)
	debug.SetGCPercent(p)
	return p
}

func TestAllocationsAreNotSampled(t *testing.T) {
	if f := flag.Lookup("test.memprofilerate"); f != nil && f.Value.String() != "0" {
		t.Skip("go test -memprofilerate sets the rate")
	}
	if rate := runtime.MemProfileRate; rate != 0 && os.Getenv("GODEBUG") == "" {
		t.Errorf("one sample for %d bytes", rate)
	}
}

func TestCollectionsArePostponedUntilResume(t *testing.T) {
	t.Setenv("GOGC", "")
	before := percentage()
	defer debug.SetGCPercent(before)
	debug.SetGCPercent(70)
	restore := postpone()
	if p := percentage(); p != percent {
		t.Errorf("during the start: %d, want %d", p, percent)
	}
	restore()
	if p := percentage(); p != 70 {
		t.Errorf("after the start: %d, want 70", p)
	}
}

func TestGOGCOfTheEnvironmentStaysInForce(t *testing.T) {
	t.Setenv("GOGC", "50")
	before := percentage()
	defer debug.SetGCPercent(before)
	debug.SetGCPercent(50)
	restore := postpone()
	if p := percentage(); p != 50 {
		t.Errorf("during the start: %d, want 50", p)
	}
	restore()
	if p := percentage(); p != 50 {
		t.Errorf("after the start: %d, want 50", p)
	}
}

func TestStartEndsAtTheFirstCollection(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // no collection but those of this test
	runtime.GC()                                     // ends one that has begun
	called := make(chan struct{})
	atCollection(func() { close(called) })
	select {
	case <-called:
		t.Fatal("called without a collection")
	default:
	}
	runtime.GC()
	select {
	case <-called:
	case <-time.After(time.Minute):
		t.Fatal("not called after a collection")
	}
}
