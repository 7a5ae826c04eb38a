package main

import (
	"net/http"
	"runtime"
	"testing"
	"time"
)

func inProcessClient(v variant) *http.Client {
	return &http.Client{Transport: &inProcess{replies: newReplies(v), scratch: make([]byte, 64<<10)}}
}

// Every contender of a table does the whole task: there is none that cannot.
func TestContendersAnswer(t *testing.T) {
	for _, v := range variants {
		for _, c := range contenders {
			t.Run(v.name+"/"+c.name, func(t *testing.T) {
				op, err := c.make(v, inProcessClient(v), nowhere)
				for range 3 { // what is kept from run to run must not change the answer
					if err == nil {
						err = op()
					}
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func TestContendersAnswerOverLoopback(t *testing.T) {
	v := variants[4]
	for _, c := range contenders {
		t.Run(c.name, func(t *testing.T) {
			base, stop, err := serve(newReplies(v))
			if err != nil {
				t.Fatal(err)
			}
			defer stop()
			tr := &http.Transport{}
			defer tr.CloseIdleConnections()
			op, err := c.make(v, &http.Client{Transport: tr}, base)
			if err == nil {
				err = op()
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAssemblersAgree(t *testing.T) {
	for _, b := range bodies(1 << 10) {
		for _, l := range assemblers(b) {
			t.Run(b.title+"/"+l.name, func(t *testing.T) {
				for range 2 {
					if err := l.op(); err != nil {
						t.Fatal(err)
					}
				}
			})
		}
	}
}

// Every wire and every client reads the whole answer.
func TestWiresAgree(t *testing.T) {
	for i := range wireTables {
		lanes, err := wireLanes(&wireTables[i])
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range lanes {
			for range 2 {
				if err := l.op(); err != nil {
					t.Errorf("%s, %s: %v", wireTables[i].title, l.name, err)
				}
			}
		}
	}
}

func TestDialectsAreRead(t *testing.T) {
	lanes, _, err := dialectLanes()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lanes {
		if err := l.op(); err != nil {
			t.Errorf("%s: %v", l.name, err)
		}
	}
}

func TestDecoders(t *testing.T) {
	_, lanes, _ := decoders()
	for _, l := range lanes {
		if err := l.op(); err != nil {
			t.Errorf("%s: %v", l.name, err)
		}
	}
}

// The ceilings are what was measured and a tenth more. Of a run with one call and streamed answers the
// in-process server makes ten, of one with ten calls and whole answers fifty-five.
func TestRunAllocations(t *testing.T) {
	for name, ceiling := range map[string]float64{"1call stream": 247, "10turn json": 1465} {
		for _, v := range variants {
			if v.name != name {
				continue
			}
			op, err := runLathe(v, inProcessClient(v), nowhere)
			if err != nil {
				t.Fatal(err)
			}
			runtime.GC() // not while it is counted: it empties pools
			got := testing.AllocsPerRun(200, func() {
				if err := op(); err != nil {
					t.Fatal(err)
				}
			})
			if got > ceiling {
				t.Errorf("%s: %v allocations a run, want at most %v", name, got, ceiling)
			}
		}
	}
}

func BenchmarkRun(b *testing.B) {
	for _, v := range variants {
		b.Run(v.name, func(b *testing.B) {
			op, err := runLathe(v, inProcessClient(v), nowhere)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := op(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What the runner makes for a call beside what its tool makes: what was measured and a tenth more.
func TestRunnerShare(t *testing.T) {
	lanes, err := runnerLanes()
	if err != nil {
		t.Fatal(err)
	}
	race(lanes, 1, 10*time.Millisecond)
	for _, l := range lanes {
		if l.err != nil {
			t.Fatalf("%s: %v", l.name, l.err)
		}
	}
	if got := share(lanes).allocs; got > 52 {
		t.Errorf("%.1f allocations a call, want at most 52", got)
	}
}

func BenchmarkRunner(b *testing.B) {
	lanes, err := runnerLanes()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := lanes[0].op(); err != nil {
			b.Fatal(err)
		}
	}
}
