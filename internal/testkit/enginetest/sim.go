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
	"github.com/lathe-run/lathe/store"
)

// An Outcome is what happens to a goroutine at a stop: it continues, its step fails, or its process is killed.
type Outcome uint8

// The outcomes.
const (
	Go         Outcome = iota // the step is done and succeeds
	Fail                      // the step is not done, and its caller gets an error
	Lose                      // the step is done, but its caller gets an error
	KillBefore                // the process is killed before the step
	KillAfter                 // the process is killed after the step
)

// String returns the text of the outcome in a trace.
func (f Outcome) String() string {
	return [...]string{"continues", "fails", "is done, and fails", "is killed", "is done, and is killed"}[f]
}

var (
	errDead     = errors.New("enginetest: the process is dead")
	errNoAnswer = errors.New("enginetest: the connection broke off")
)

// A Stop is a point at which a goroutine blocks until the simulation chooses its [Outcome].
type Stop struct {
	Point Point
	RunID string
	What  string // the process and the step, as a trace shows them
	N     int    // the number of this stop in the history, from 1

	proc    *Process // nil: not of a process that can be killed
	outcome chan Outcome
}

// Options configure a simulation.
type Options struct {
	Seed uint64
	// Store stores the runs. The caller must create it within the synctest bubble of the simulation.
	Store store.RunIndex
	// Own, when set, are the stores that processes use in place of Store, such as several connections to one database. Each
	// new process gets the next of them, in rotation.
	Own []store.RunIndex
	// Clock, when set, is called with the current time before each step. It sets the clock of a store that does not use the
	// clock of the bubble.
	Clock func(now time.Time)
	// Scripts has one script for each run; nil: 1 to 3 random scripts made from Seed, or no run if Outcome is set.
	Scripts []Script
	// Alone hides that the store is a [store.Shared]: no run is claimed, and only conflicts of appends to a log keep two
	// processes from executing the same run.
	Alone bool
	// Prefix is a prefix of the numbers in run ids: run_PREFIX1.
	Prefix string
	// Outcome chooses the outcome of each stop; nil: chosen at random from Seed. With it the simulation is orderly: nothing
	// is random.
	Outcome func(*Stop) Outcome
	// Delivery is how published events reach watchers and how notifications of the store reach processes.
	Delivery Delivery
	// Answer decides requests for approval in an orderly simulation; nil: they are approved.
	Answer func(callID string) lathe.Approval
	// At, when set, is called at each stop of an orderly simulation, before Outcome.
	At func(*Sim, *Stop)
}

// Delivery is how often published events and notifications of the store arrive.
type Delivery uint8

// The ways in which events and notifications arrive.
const (
	Delivered Delivery = iota // each arrives
	Dropped                   // none arrives
	Doubled                   // each arrives twice
)

// A Sim is one simulation under way. Functions in [Options] may call its exported methods.
//
// The goroutine of Simulate makes the moves: it starts processes and actions and releases stops, and is the only one that changes the fields
// up to actors. All other goroutines belong to processes, clients and watchers, and wait at stops. The fields below mu are shared with them.
type Sim struct {
	opts     Options
	rng      *rand.Rand // nil: orderly
	world    *World
	procs    []*Process // those that were not killed
	started  int        // number of processes started so far
	kills    int
	calm     bool // no more random faults
	faults   int  // number of random faults so far
	runs     []*Run
	tails    []*watcher
	released int // number of stops released so far
	trace    []string
	actors   sync.WaitGroup // goroutines of clients and supervisors

	clock sync.Mutex // held while Clock is called

	mu      sync.Mutex
	stops   []*Stop          // at which goroutines wait
	acting  int              // number of actions of [Sim.do] that have not returned
	appends []Append         // those that succeeded
	epochs  map[string]int64 // of the last claim of each run
	found   []Violation      // found while the simulation runs
}

// A Run is a run that a client requests.
type Run struct {
	ID    string
	Acked bool // a client received its first event
	tried bool // a client has requested it
}

// Simulate runs a simulation to its end and returns its history. It must be called within a synctest bubble.
// [History.Check] reports a run that does not end as a violation of C1.
func Simulate(t testing.TB, opts *Options) *History {
	t.Helper()
	s := &Sim{opts: *opts, world: newWorld(), epochs: map[string]int64{}}
	if s.opts.Outcome == nil {
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
		s.tails = append(s.tails, &watcher{Tail: Tail{RunID: id}})
	}
	if s.rng != nil {
		s.randomSteps(60 + s.rng.IntN(140))
	}
	s.drain()
	s.end()
	return s.history(t)
}

// halt blocks at a stop and returns an error if its outcome is not Go. It is for steps without an effect of their own.
func (s *Sim) halt(ctx context.Context, p *Process, at Point, runID, what string) error {
	return s.act(ctx, p, at, runID, what, nil)
}

// act blocks at a stop and then calls do, unless the outcome of the stop forbids it. Its error is that of the outcome.
func (s *Sim) act(ctx context.Context, p *Process, at Point, runID, what string, do func()) error {
	f, err := s.wait(ctx, p, at, runID, what)
	if err != nil {
		return errors.Join(err, failure(Fail))
	}
	if f == Fail {
		return failure(f)
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

// failure returns the error that the caller of a step gets.
func failure(f Outcome) error {
	if f == Fail || f == Lose {
		return lathe.CodeUnavailable.Wrap("enginetest", errNoAnswer)
	}
	return nil
}

// wait blocks at a stop until the simulation releases it. It returns an error if the process is dead, or if ctx ends while
// the process is not paused.
func (s *Sim) wait(ctx context.Context, p *Process, at Point, runID, what string) (Outcome, error) {
	if p != nil && p.dead.Load() {
		return Fail, errDead
	}
	if err := ctx.Err(); err != nil {
		return Fail, err
	}
	st := &Stop{Point: at, RunID: runID, What: what, proc: p, outcome: make(chan Outcome, 1)}
	if p != nil {
		st.What = p.name + ": " + what
	}
	s.mu.Lock()
	s.stops = append(s.stops, st)
	s.mu.Unlock()
	select {
	case f := <-st.outcome:
		return afterStop(f)
	case <-ctx.Done():
	}
	if p != nil && p.paused.Load() { // a paused process does not notice that ctx has ended: it continues once it is released
		return afterStop(<-st.outcome)
	}
	s.removeStop(st)
	return Fail, ctx.Err()
}

// afterStop returns the outcome of a step, or an error if its process was killed.
func afterStop(f Outcome) (Outcome, error) {
	if f == KillBefore {
		return Fail, errDead
	}
	return f, nil
}

// removeStop removes a stop, and reports whether a goroutine was waiting at it.
func (s *Sim) removeStop(st *Stop) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.stops, st)
	if i >= 0 {
		s.stops = slices.Delete(s.stops, i, i+1)
	}
	return i >= 0
}

// waiting blocks until all other goroutines are blocked and returns the stops at which they wait, in an order that does not
// depend on chance. It leaves out the stops of processes that are paused.
func (s *Sim) waiting() []*Stop {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortStableFunc(s.stops, func(a, b *Stop) int { return strings.Compare(a.What+a.RunID, b.What+b.RunID) })
	return slices.DeleteFunc(slices.Clone(s.stops), func(st *Stop) bool { return st.proc != nil && st.proc.paused.Load() && !st.proc.dead.Load() })
}

// release unblocks a stop.
func (s *Sim) release(st *Stop) {
	s.mu.Lock()
	isOpen := slices.Contains(s.stops, st)
	s.mu.Unlock()
	if !isOpen {
		return
	}
	s.released++
	st.N = s.released
	if s.opts.At != nil {
		s.opts.At(s, st)
	}
	if !s.removeStop(st) { // At has ended it
		return
	}
	f := s.chooseOutcome(st)
	if st.proc == nil && (f == KillBefore || f == KillAfter) {
		f = Go
	}
	s.tracef("%d: %s %s %s", st.N, st.What, st.RunID, f)
	if f == KillBefore {
		st.proc.dead.Store(true)
	}
	st.outcome <- f
	synctest.Wait()
	s.removeDead()
}

// removeDead removes the killed processes.
func (s *Sim) removeDead() {
	for _, p := range slices.Clone(s.procs) {
		if p.dead.Load() {
			s.remove(p)
		}
	}
}

// remove removes a killed process and ends its stops.
func (s *Sim) remove(p *Process) {
	s.procs = slices.DeleteFunc(s.procs, func(other *Process) bool { return other == p })
	s.kills++
	s.tracef("%s is dead", p.name)
	p.end()
	s.mu.Lock()
	var stops []*Stop
	s.stops = slices.DeleteFunc(s.stops, func(st *Stop) bool {
		isOwn := st.proc == p
		if isOwn {
			stops = append(stops, st)
		}
		return isOwn
	})
	s.mu.Unlock()
	for _, st := range stops {
		st.outcome <- KillBefore
	}
	synctest.Wait()
}

// do calls f in a goroutine, which may block at stops, and returns once all goroutines are blocked.
func (s *Sim) do(what string, f func()) {
	s.tracef("%s", what)
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

func (s *Sim) tracef(format string, args ...any) {
	s.trace = append(s.trace, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// end kills all processes and lets every goroutine return.
func (s *Sim) end() {
	for _, p := range s.procs {
		p.paused.Store(false)
		p.dead.Store(true)
	}
	s.removeDead()
	for _, tail := range s.tails {
		tail.leave()
	}
	for stops := s.waiting(); len(stops) > 0; stops = s.waiting() {
		s.mu.Lock()
		s.stops = nil
		s.mu.Unlock()
		for _, st := range stops {
			st.outcome <- Fail
		}
	}
	s.actors.Wait()
}
