package enginetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
)

// The bounds of one simulation.
const (
	maxProcesses  = 3
	maxFaults     = 10
	maxDrainSteps = 50_000 // steps until a history that has not ended is given up
)

// chooseOutcome chooses the outcome of a stop.
func (s *Sim) chooseOutcome(st *Stop) Outcome {
	if s.opts.Outcome != nil {
		return s.opts.Outcome(st)
	}
	if s.rng == nil || s.calm || s.faults >= maxFaults || s.rng.IntN(25) != 0 {
		return Go
	}
	if st.Point == PointModel && s.rng.IntN(4) != 0 { // a model call fails less often
		return Go
	}
	s.faults++
	return []Outcome{Fail, Lose, KillBefore, KillAfter}[s.rng.IntN(4)]
}

// randomSteps releases stops and makes moves at random.
func (s *Sim) randomSteps(steps int) {
	for range steps {
		stops := s.waiting()
		if len(stops) > 0 && s.rng.IntN(10) < 7 {
			s.release(stops[s.rng.IntN(len(stops))])
			continue
		}
		s.randomMove()
	}
	s.calm = true
}

// randomMove makes one random move: a request of a client, a decision, a fault, or the passing of time. The cases divide a hundred numbers by
// how often each is wanted.
func (s *Sim) randomMove() {
	if len(s.procs) == 0 {
		s.addProcess()
		return
	}
	p := s.procs[s.rng.IntN(len(s.procs))]
	r := s.runs[s.rng.IntN(len(s.runs))]
	tail := s.tails[s.rng.IntN(len(s.tails))]
	n := s.rng.IntN(100)
	switch {
	case n < 20:
		repeats := !r.Acked && n < 5 // a client that got no response, in a quarter of the cases
		if !r.tried || repeats {
			r.tried = true
			s.do(p.name+" is asked for "+r.ID, func() { p.begin(r) })
		}
	case n < 40:
		s.decideAtRandom(p)
	case n < 55:
		s.do(p.name+" resumes "+r.ID, func() { p.resume(r.ID, nil) })
	case n < 65:
		p.results(r.ID, s.clientAnswers(r.ID))
	case n < 67:
		s.do(p.name+" cancels "+r.ID, func() { p.cancel(r.ID) })
	case n < 76:
		s.disturb(p, n)
	case n < 80:
		pass := time.Duration(s.rng.IntN(10_000)) * time.Millisecond
		if s.rng.IntN(12) == 0 {
			pass = 2 * time.Hour
		}
		s.Pass(pass)
	case tail.at.Load() == nil:
		s.attach(tail, p)
	case s.rng.IntN(2) == 0:
		tail.leave()
	}
}

// disturb kills a process, pauses or continues it, starts another one, or sets its clock. n is a random number from 67 to 75.
func (s *Sim) disturb(p *Process, n int) {
	switch {
	case n < 70:
		if s.faults < maxFaults {
			s.faults++
			s.tracef("%s is killed", p.name)
			p.dead.Store(true)
			s.removeDead()
		}
	case n < 71:
		if !p.alone {
			p.paused.Store(!p.paused.Load())
			s.tracef("%s stands still: %v", p.name, p.paused.Load())
		}
	case n < 73:
		if len(s.procs) < maxProcesses {
			s.addProcess()
		}
	default:
		p.skew.Store(int64(time.Duration(s.rng.IntN(3)-1) * time.Hour))
		s.tracef("the clock of %s is off by %v", p.name, time.Duration(p.skew.Load()))
	}
}

// addProcess starts a process, which acquires the runs that others have released.
func (s *Sim) addProcess() {
	p := s.start()
	s.tracef("%s comes up", p.name)
	p.serve()
}

// decideAtRandom has an approver answer one of the requests for approval, which may have an answer already.
func (s *Sim) decideAtRandom(p *Process) {
	s.world.mu.Lock()
	all := s.world.requests
	s.world.mu.Unlock()
	if len(all) == 0 {
		return
	}
	q := all[s.rng.IntN(len(all))]
	a := lathe.Approval{Approved: true, By: fmt.Sprintf("approver %d", s.rng.IntN(2))}
	switch s.rng.IntN(6) {
	case 0:
		a.Approved, a.ReasonCode = false, "denied_by_user"
	case 1:
		a.Arguments = json.RawMessage(fmt.Sprintf(`{"n":%d}`, 1000+s.rng.IntN(9)))
	case 2:
		a.Result = json.RawMessage(`"by hand"`)
	}
	p.decide(q, a)
}

// clientAnswers returns a result for each call of the client's tool in the script of a run.
func (s *Sim) clientAnswers(runID string) map[string]lathe.Output {
	out := map[string]lathe.Output{}
	for _, turn := range s.world.script(runID).Turns {
		for _, c := range turn.Calls {
			if c.Name == Mine {
				out[c.ID] = lathe.Output{Data: json.RawMessage(`"theirs"`)}
			}
		}
	}
	return out
}

// drain continues in a fixed order, without random faults, until every run has ended and every watcher has its end.
func (s *Sim) drain() {
	for _, p := range s.procs {
		p.paused.Store(false)
		p.skew.Store(0)
	}
	for range maxDrainSteps {
		if stops := s.waiting(); len(stops) > 0 {
			s.release(stops[0])
			continue
		}
		if s.advance() && len(s.waiting()) > 0 {
			continue
		}
		if s.over() {
			return
		}
		time.Sleep(time.Second)
	}
	s.found = append(s.found, Violation{Check: "C1", Text: "the history does not end"})
}

// advance makes one move that a run or a watcher needs in order to end, and reports whether there was one.
func (s *Sim) advance() bool {
	s.mu.Lock()
	busy := s.acting > 0
	s.mu.Unlock()
	if busy {
		return false
	}
	if len(s.procs) == 0 {
		s.addProcess()
		return true
	}
	p := s.procs[0]
	for _, r := range s.runs {
		if s.owner(r.ID) == nil && s.advanceRun(p, r) {
			return true
		}
	}
	for _, tail := range s.tails {
		if tail.at.Load() == nil && !tail.over.Load() && len(s.log(tail.RunID)) > 0 {
			s.attach(tail, p)
			return true
		}
	}
	return false
}

// advanceRun makes the move that a run without an owner needs, and reports whether there was one.
func (s *Sim) advanceRun(p *Process, r *Run) bool {
	events := s.log(r.ID)
	if len(events) == 0 {
		s.do(p.name+" is asked for "+r.ID, func() { p.begin(r) })
		return true
	}
	state, err := loop.Fold(events)
	if err != nil || state.Finished != nil { // C2 reports the error
		return false
	}
	isParked := state.Paused != ""
	switch {
	case isParked && s.storeAnswers(p, state):
		return true
	case isParked && p.alone:
		answers := s.clientAnswers(r.ID)
		s.do(p.name+" resumes "+r.ID, func() { p.resume(r.ID, answers) })
		return true
	case state.Paused == lathe.ReasonInterrupted: // a caller has resumed it
		s.do(p.name+" resumes "+r.ID, func() { p.resume(r.ID, nil) })
		return true
	case !isParked && p.alone:
		s.do(p.name+" looks for what was left", p.recover)
		return true
	}
	return false
}

// storeAnswers stores the missing answers that a run waits for, and reports whether there were any.
func (s *Sim) storeAnswers(p *Process, state *loop.State) (some bool) {
	id := state.Run.RunID
	for _, q := range s.world.open() {
		isOpen := slices.ContainsFunc(state.Open, func(o loop.OpenCall) bool { return o.Digest == q.digest })
		if q.runID == id && isOpen && !s.has(id, store.SignalApproval, q.callID) {
			p.decide(q, s.answer(q))
			some = true
		}
	}
	if p.alone { // advanceRun resumes the run with the results of clients
		return false
	}
	answers := s.clientAnswers(id)
	maps.DeleteFunc(answers, func(call string, _ lathe.Output) bool { return s.has(id, store.SignalResult, call) })
	p.results(id, answers)
	return some || len(answers) > 0
}

func (s *Sim) answer(q *question) lathe.Approval {
	if s.opts.Answer == nil {
		return lathe.Approval{Approved: true, By: "an approver"}
	}
	return s.opts.Answer(q.callID)
}

// over reports whether all runs have ended and all watchers have received their end.
func (s *Sim) over() bool {
	for _, r := range s.runs {
		events := s.log(r.ID)
		if len(events) == 0 || s.owner(r.ID) != nil {
			return false
		}
		if _, ended := events[len(events)-1].Data.(*event.RunFinished); !ended {
			return false
		}
	}
	for _, tail := range s.tails {
		if !tail.over.Load() {
			return false
		}
	}
	return true
}

// The methods below are for [Options].At: they make something happen at a stop.

// Jump moves the clock of the process at the stop.
func (s *Sim) Jump(st *Stop, by time.Duration) {
	if st.proc != nil {
		st.proc.skew.Add(int64(by))
		s.tracef("the clock of %s jumps by %v", st.proc.name, by)
	}
}

// Decide answers the request for approval of a call, if it is open.
func (s *Sim) Decide(call string, a lathe.Approval) {
	for _, q := range s.world.open() {
		if q.callID == call && len(s.procs) > 0 {
			s.procs[0].decide(q, a)
			return
		}
	}
}

// Cancel asks a process to cancel the run: the one that owns it, if there is one.
func (s *Sim) Cancel() {
	id := s.runs[0].ID
	p := s.owner(id)
	if p == nil && len(s.procs) > 0 {
		p = s.procs[0]
	}
	if p != nil {
		s.do(p.name+" cancels "+id, func() { p.cancel(id) })
	}
}

// Results sends a process the results of client calls.
func (s *Sim) Results(answers map[string]lathe.Output) {
	if len(s.procs) == 0 {
		return
	}
	s.procs[0].results(s.runs[0].ID, answers)
}

// Deeds returns how often tools were executed so far.
func (s *Sim) Deeds() int {
	return len(s.world.allDeeds())
}

// Pass lets d pass on the clock of the bubble without releasing a stop.
func (s *Sim) Pass(d time.Duration) {
	s.tracef("%v pass", d)
	time.Sleep(d)
}
