package enginetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe"
)

// A Fate is what befalls a goroutine at its next point.
type Fate uint8

// The fates.
const (
	Go         Fate = iota
	Fail            // nothing is done, and there is an error
	Lose            // it is done, and there is an error all the same
	KillBefore      // the process ends, and nothing is done
	KillAfter       // it is done, and the process ends
)

// String returns what the fate is called in a trace.
func (f Fate) String() string {
	return [...]string{"goes on", "fails", "is done, and fails", "is killed", "is done, and is killed"}[f]
}

var (
	errDead     = errors.New("enginetest: the process is dead")
	errNoAnswer = errors.New("enginetest: the connection broke off")
)

// A Stop is a goroutine that waits for its fate.
type Stop struct {
	Point Point
	RunID string
	What  string // of the process: its place in the history
	N     int    // from 1: how many stops there were, this one included

	proc *Process // nil: of nobody who can be killed
	fate chan Fate
}

// Options say what a simulation is like.
type Options struct {
	Seed uint64
	// Store keeps the runs; it must be made within the bubble of the simulation.
	Store lathe.RunIndex
	// Own are what processes have of the store, one after the other and then from the first again, where
	// not all of them have Store itself.
	Own []lathe.RunIndex
	// Clock is told the time before each step of a store whose clock is not that of the bubble.
	Clock func(now time.Time)
	// Scripts are what the runs are like, one each; nil: some of the seed's.
	Scripts []Script
	// Alone hides that the store may be shared: nobody claims runs, and only their logs keep processes apart.
	Alone bool
	// Prefix stands before the names of the runs.
	Prefix string
	// Fate decides what befalls who is at a stop; nil: the seed does. With it, the simulation is
	// orderly: nothing happens by chance.
	Fate func(*Stop) Fate
	// Hints says what becomes of what processes tell watchers.
	Hints Hints
	// Answer says what is answered to requests for approval in an orderly simulation; zero: they are approved.
	Answer func(callID string) lathe.Approval
	// At, when set, is called at each stop of an orderly simulation, before its fate is asked for.
	At func(*Sim, *Stop)
}

// Hints is what becomes of what a process tells its watchers.
type Hints uint8

// The hints.
const (
	Told    Hints = iota
	Dropped       // none arrives
	Doubled       // each arrives twice
)

// A Sim is one simulation.
type Sim struct {
	opts   Options
	rng    *rand.Rand // nil: orderly
	world  *World
	procs  []*Process // those that live
	born   int
	kills  int
	calm   bool // nothing befalls anybody any more
	faults int
	runs   []*Run
	tails  []*Tail
	notes  []Append
	epochs map[string]int64 // of the last claim of each run
	bad    []Violation      // what actors saw

	clock  sync.Mutex // held while the store is told the time
	mu     sync.Mutex
	stops  []*Stop
	made   int
	trace  []string
	actors sync.WaitGroup
	acting int
}

// A Run is one that a client wants.
type Run struct {
	ID    string
	Acked bool // somebody was told that it has begun
	tried bool
	hit   int // faults that befell it
}

// Simulate runs a history to its end, and returns it. It must be called within a synctest bubble.
// A history that does not end is reported as a violation of C1.
func Simulate(t testing.TB, opts *Options) *History {
	t.Helper()
	s := &Sim{opts: *opts, world: newWorld(), epochs: map[string]int64{}}
	if s.opts.Fate == nil {
		s.rng = rand.New(rand.NewPCG(opts.Seed, 1))
		if s.opts.Scripts == nil {
			for i := range 1 + s.rng.IntN(3) {
				s.opts.Scripts = append(s.opts.Scripts, randomScript(s.rng, fmt.Sprintf("random %d", i)))
			}
		}
	}
	for i, script := range s.opts.Scripts {
		id := fmt.Sprintf("run_%s%d", s.opts.Prefix, i+1)
		s.world.scripts[id] = script
		s.runs = append(s.runs, &Run{ID: id})
		s.tails = append(s.tails, &Tail{RunID: id})
	}
	if s.rng != nil {
		s.storm(60 + s.rng.IntN(140))
	}
	s.settle()
	s.end()
	return s.history(t)
}

// halt waits for the fate of the caller, and returns an error when it is a bad one. It is for what
// has no effect of its own.
func (s *Sim) halt(ctx context.Context, p *Process, at Point, runID, what string) error {
	return s.act(ctx, p, runID, what, nil, at)
}

// act does something at a point, as its fate allows.
func (s *Sim) act(ctx context.Context, p *Process, runID, what string, do func(), at ...Point) error {
	point := PointEffect
	if len(at) > 0 {
		point = at[0]
	}
	f, err := s.wait(ctx, p, point, runID, what)
	if err != nil || f == Fail {
		return errors.Join(err, failure(f))
	}
	if s.opts.Clock != nil {
		s.clock.Lock()
		s.opts.Clock(time.Now())
		s.clock.Unlock()
	}
	if do != nil {
		do()
	}
	if f == KillAfter {
		p.dead.Store(true)
		return errDead
	}
	return failure(f)
}

func failure(f Fate) error {
	if f == Fail || f == Lose {
		return &lathe.Error{Code: lathe.CodeUnavailable, Op: "enginetest", Err: errNoAnswer}
	}
	return nil
}

// wait stands at a stop until the simulation goes on with it. Whoever is dead, or has nobody waiting
// for him any more, gets an error.
func (s *Sim) wait(ctx context.Context, p *Process, at Point, runID, what string) (Fate, error) {
	if p != nil && p.dead.Load() {
		return Fail, errDead
	}
	if err := ctx.Err(); err != nil {
		return Fail, err
	}
	st := &Stop{Point: at, RunID: runID, What: what, proc: p, fate: make(chan Fate, 1)}
	if p != nil {
		st.What = p.name + ": " + what
	}
	s.mu.Lock()
	s.stops = append(s.stops, st)
	s.mu.Unlock()
	select {
	case f := <-st.fate:
		if f == KillBefore {
			return Fail, errDead
		}
		return f, nil
	case <-ctx.Done():
		if p != nil && p.paused.Load() { // it does not notice, and does what it was about to do once it may
			if f := <-st.fate; f != KillBefore {
				return f, nil
			}
			return Fail, errDead
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stops = slices.DeleteFunc(s.stops, func(o *Stop) bool { return o == st })
		return Fail, ctx.Err()
	}
}

// waiting returns who stands at a stop once nobody else moves, in an order that does not depend on chance.
func (s *Sim) waiting() []*Stop {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortStableFunc(s.stops, func(a, b *Stop) int { return strings.Compare(a.What+a.RunID, b.What+b.RunID) })
	return slices.DeleteFunc(slices.Clone(s.stops), func(st *Stop) bool { return st.proc != nil && st.proc.paused.Load() && !st.proc.dead.Load() })
}

// release has a stop go on.
func (s *Sim) release(st *Stop) {
	s.mu.Lock()
	if !slices.Contains(s.stops, st) {
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	s.made++
	st.N = s.made
	if s.opts.At != nil {
		s.opts.At(s, st)
	}
	s.mu.Lock()
	i := slices.Index(s.stops, st)
	if i < 0 { // what happened just now has ended it
		s.mu.Unlock()
		return
	}
	s.stops = slices.Delete(s.stops, i, i+1)
	s.mu.Unlock()
	f := s.fate(st)
	if st.proc == nil && f > Lose {
		f = Go
	}
	if f != Go {
		s.hit(st)
	}
	s.say("%d: %s %s %s", st.N, st.What, st.RunID, f)
	if f == KillBefore {
		st.proc.dead.Store(true)
	}
	st.fate <- f
	synctest.Wait()
	s.bury()
}

func (s *Sim) hit(st *Stop) {
	for _, r := range s.runs {
		if r.ID == st.RunID || st.RunID == "" {
			r.hit++
		}
	}
}

// bury ends what a killed process has left.
func (s *Sim) bury() {
	for i := 0; i < len(s.procs); {
		p := s.procs[i]
		if !p.dead.Load() {
			i++
			continue
		}
		s.procs = slices.Delete(s.procs, i, i+1)
		s.kills++
		s.say("%s is dead", p.name)
		for _, r := range s.runs { // it may have carried any
			r.hit++
		}
		p.end()
		s.mu.Lock()
		var its []*Stop
		s.stops = slices.DeleteFunc(s.stops, func(st *Stop) bool {
			mine := st.proc == p
			if mine {
				its = append(its, st)
			}
			return mine
		})
		s.mu.Unlock()
		for _, st := range its {
			st.fate <- KillBefore
		}
		synctest.Wait()
	}
}

// do has an actor do something that may come to stops.
func (s *Sim) do(what string, f func()) {
	s.say("%s", what)
	s.mu.Lock()
	s.acting++
	s.mu.Unlock()
	s.actors.Go(func() {
		f()
		s.mu.Lock()
		s.acting--
		s.mu.Unlock()
	})
	synctest.Wait()
}

func (s *Sim) say(format string, args ...any) {
	s.trace = append(s.trace, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// end lets everybody go home.
func (s *Sim) end() {
	for _, p := range s.procs {
		p.paused.Store(false)
		p.dead.Store(true)
	}
	s.bury()
	for _, tail := range s.tails {
		tail.leave()
	}
	for {
		stops := s.waiting()
		if len(stops) == 0 {
			break
		}
		s.mu.Lock()
		s.stops = nil
		s.mu.Unlock()
		for _, st := range stops {
			st.fate <- Fail
		}
	}
	s.actors.Wait()
}
