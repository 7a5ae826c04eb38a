package enginetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/loop"
)

// The bounds of one simulation.
const (
	maxProcesses = 3
	maxFaults    = 10
	maxSettling  = 50_000 // steps until a history that has not ended is given up
)

// fate is what befalls who is at a stop.
func (s *Sim) fate(st *Stop) Fate {
	switch {
	case s.opts.Fate != nil:
		return s.opts.Fate(st)
	case s.rng == nil || s.calm || s.faults >= maxFaults || s.rng.IntN(25) != 0, st.Point == PointModel && s.rng.IntN(4) != 0:
		return Go
	}
	s.faults++
	return []Fate{Fail, Lose, KillBefore, KillAfter}[s.rng.IntN(4)]
}

// storm has things happen by chance.
func (s *Sim) storm(steps int) {
	for range steps {
		stops := s.waiting()
		if len(stops) > 0 && s.rng.IntN(10) < 7 {
			s.release(stops[s.rng.IntN(len(stops))])
			continue
		}
		s.chance()
	}
	s.calm = true
}

// chance makes one move of the seed's.
func (s *Sim) chance() {
	if len(s.procs) == 0 {
		s.comeUp()
		return
	}
	p := s.procs[s.rng.IntN(len(s.procs))]
	r := s.runs[s.rng.IntN(len(s.runs))]
	tail := s.tails[s.rng.IntN(len(s.tails))]
	n := s.rng.IntN(100)
	switch {
	case n < 20:
		if !r.tried || !r.Acked && n < 5 {
			r.tried = true
			s.do(p.name+" is asked for "+r.ID, func() { p.begin(r) })
		}
	case n < 40:
		s.somebodyDecides(p)
	case n < 55:
		s.do(p.name+" goes on with "+r.ID, func() { p.resume(r.ID, nil) })
	case n < 65:
		p.results(r.ID, s.clientAnswers(r.ID))
	case n < 67:
		s.do(p.name+" cancels "+r.ID, func() { p.cancel(r.ID) })
	case n < 70:
		if s.faults < maxFaults {
			s.faults++
			s.say("%s is killed", p.name)
			p.dead.Store(true)
			s.bury()
		}
	case n < 71:
		if !p.alone {
			p.paused.Store(!p.paused.Load())
			s.say("%s stands still: %v", p.name, p.paused.Load())
		}
	case n < 73:
		if len(s.procs) < maxProcesses {
			s.comeUp()
		}
	case n < 76:
		p.skew.Store(int64(time.Duration(s.rng.IntN(3)-1) * time.Hour))
		s.say("the clock of %s is off by %v", p.name, time.Duration(p.skew.Load()))
	case n < 80:
		pass := time.Duration(s.rng.IntN(10_000)) * time.Millisecond
		if s.rng.IntN(12) == 0 {
			pass = 2 * time.Hour
		}
		s.say("%v pass", pass)
		time.Sleep(pass)
	default:
		if tail.at != nil && s.rng.IntN(2) == 0 {
			tail.leave()
		} else if tail.at == nil {
			s.attach(tail, p)
		}
	}
}

// comeUp starts a process, which goes on with what others have left, or are still at.
func (s *Sim) comeUp() {
	p := s.start()
	s.say("%s comes up", p.name)
	p.serve()
}

// somebodyDecides answers a question, or answers one again that has an answer.
func (s *Sim) somebodyDecides(p *Process) {
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

// clientAnswers are the results of the client's calls that the run has, answered or not.
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

// settle goes on, orderly and without chance, until every run has ended and every watcher knows.
func (s *Sim) settle() {
	for _, p := range s.procs {
		p.paused.Store(false)
		p.skew.Store(0)
	}
	for range maxSettling {
		if stops := s.waiting(); len(stops) > 0 {
			s.release(stops[0])
			continue
		}
		if s.nudge() && len(s.waiting()) > 0 {
			continue
		}
		if s.over() {
			return
		}
		time.Sleep(time.Second)
	}
	s.bad = append(s.bad, Violation{Check: "C1", Text: "the history does not end"})
}

// nudge makes one move that brings a run on, and reports whether there was one.
func (s *Sim) nudge() bool {
	s.mu.Lock()
	busy := s.acting > 0
	s.mu.Unlock()
	if busy {
		return false
	}
	if len(s.procs) == 0 {
		s.comeUp()
		return true
	}
	p := s.procs[0]
	for _, r := range s.runs {
		if s.carrier(r.ID) != nil {
			continue
		}
		events := s.log(r.ID)
		if len(events) == 0 {
			s.do(p.name+" is asked for "+r.ID, func() { p.begin(r) })
			return true
		}
		state, err := loop.Fold(events)
		switch {
		case err != nil, state.Finished != nil: // the checks say so
		case state.Paused != "" && s.answers(p, state):
			return true
		case state.Paused != "" && p.alone:
			answers := s.clientAnswers(r.ID)
			s.do(p.name+" goes on with "+r.ID, func() { p.resume(r.ID, answers) })
			return true
		case state.Paused == lathe.ReasonInterrupted: // somebody has looked at it
			s.do(p.name+" goes on with "+r.ID, func() { p.resume(r.ID, nil) })
			return true
		case state.Paused == "" && p.alone:
			s.do(p.name+" looks for what was left", p.recover)
			return true
		}
	}
	for _, tail := range s.tails {
		if tail.at == nil && !tail.over && len(s.log(tail.RunID)) > 0 {
			s.attach(tail, p)
			return true
		}
	}
	return false
}

// answers answers what a run waits for, and reports whether anything of it was not answered yet.
func (s *Sim) answers(p *Process, state *loop.State) (some bool) {
	id := state.Run.RunID
	for _, q := range s.world.open() {
		if q.runID == id && !s.has(id, lathe.FactApproval, q.callID) && slices.ContainsFunc(state.Open, func(o loop.OpenCall) bool { return o.Digest == q.digest }) {
			p.decide(q, s.answer(q))
			some = true
		}
	}
	if p.alone {
		return false
	}
	answers := s.clientAnswers(id)
	maps.DeleteFunc(answers, func(call string, _ lathe.Output) bool { return s.has(id, lathe.FactResult, call) })
	p.results(id, answers)
	return some || len(answers) > 0
}

func (s *Sim) answer(q *question) lathe.Approval {
	if s.opts.Answer == nil {
		return lathe.Approval{Approved: true, By: "somebody"}
	}
	return s.opts.Answer(q.callID)
}

func (s *Sim) over() bool {
	for _, r := range s.runs {
		events := s.log(r.ID)
		if len(events) == 0 || s.carrier(r.ID) != nil {
			return false
		}
		if _, ended := events[len(events)-1].Data.(*lathe.RunFinished); !ended {
			return false
		}
	}
	for _, tail := range s.tails {
		if !tail.over {
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
		s.say("the clock of %s jumps by %v", st.proc.name, by)
	}
}

// Decide answers the request for approval of a call, as long as it has no answer.
func (s *Sim) Decide(call string, a lathe.Approval) {
	for _, q := range s.world.open() {
		if q.callID == call && len(s.procs) > 0 {
			s.procs[0].decide(q, a)
			return
		}
	}
}

// Cancel asks a process to cancel the run, the one that carries it where there is one.
func (s *Sim) Cancel() {
	id := s.runs[0].ID
	p := s.carrier(id)
	if p == nil && len(s.procs) > 0 {
		p = s.procs[0]
	}
	if p != nil {
		s.do(p.name+" cancels "+id, func() { p.cancel(id) })
	}
}

// Results tells a process what clients say came of calls.
func (s *Sim) Results(answers map[string]lathe.Output) {
	if len(s.procs) == 0 {
		return
	}
	s.procs[0].results(s.runs[0].ID, answers)
}

// Deeds is how often a tool was executed so far.
func (s *Sim) Deeds() int {
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	return len(s.world.deeds)
}

// Pass has time pass while everybody stands where they are.
func (s *Sim) Pass(d time.Duration) {
	s.say("%v pass", d)
	time.Sleep(d)
}
