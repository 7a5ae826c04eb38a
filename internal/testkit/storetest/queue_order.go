package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/remote"
)

// This file tests one call and two workers, a and b, in every order in which the workers can claim, start, run, finish,
// return and lose the call, and in which other processes cancel, decide and expire it. With a bounded number of attempts the
// call has few states: [scenarios] visits each of them, and takes every step from it. [place.apply] is a model of the queue.
// The model must keep the guarantees of [place.broken], and the queue must do what the model does.

// attempts is the highest number of attempts of a call.
const attempts = 2

// An attempt is one claim of the call by a worker.
type attempt struct {
	worker   byte
	sent     bool // the call has been started, and may be on its way
	ran      bool // the worker has run it
	answered bool // the worker has returned it, or sent its result
}

// A place is a state of the call that [scenarios] can reach. It is comparable.
type place struct {
	state     remote.State
	n         int // number of attempts
	had       [attempts]attempt
	owner     byte // the worker of the last claim; 0: none
	lapsed    bool // the lease has ended
	cancelled bool
	decided   bool
	result    int // the attempt whose result is stored, from 1; 0: no result
}

// A step is one action of a process, such as {what: "claim", worker: 'a'}, {what: "start", attempt: 1} or {what: "expire"}.
type step struct {
	what    string
	worker  byte // of a claim
	attempt int  // from 1, of start, run, finish, return, lapse and renew
}

// steps returns the steps that processes can take from a place.
func (p *place) steps() []step {
	out := []step{{what: "expire"}, {what: "cancel"}, {what: "decide"}}
	if p.n < attempts {
		out = append(out, step{what: "claim", worker: 'a'})
	}
	if p.n > 0 && p.n < attempts { // the first claim is always that of a: the workers differ in nothing else
		out = append(out, step{what: "claim", worker: 'b'})
	}
	for i := 1; i <= p.n; i++ {
		h := p.had[i-1]
		out = append(out, step{what: "start", attempt: i}, step{what: "lapse", attempt: i}, step{what: "renew", attempt: i})
		switch {
		case h.ran:
			out = append(out, step{what: "finish", attempt: i})
		case h.answered: // it neither runs nor answers any more
		case h.sent:
			out = append(out, step{what: "run", attempt: i}, step{what: "return", attempt: i})
		default:
			out = append(out, step{what: "return", attempt: i})
		}
	}
	return out
}

// apply returns the place after a step, and whether the queue accepts the step.
func (p place) apply(s step, effect lathe.Effect) (next place, ok bool) {
	if s.attempt > 0 {
		return p.applyAttempt(s.what, s.attempt)
	}
	switch s.what {
	case "claim":
		if p.state != remote.Queued {
			return p, false
		}
		p.had[p.n] = attempt{worker: s.worker}
		p.state, p.owner, p.lapsed = remote.Claimed, s.worker, false
		p.n++
	case "cancel":
		switch p.state {
		case remote.Queued, remote.Claimed:
			p.state, p.cancelled = remote.Cancelled, true
		case remote.Started:
			p.cancelled = true
		default:
		}
	case "decide":
		p.decided = p.decided || p.state == remote.Unknown
	case "expire":
		if p.lapsed {
			p.expire(effect)
		}
	}
	return p, true
}

// applyAttempt is apply for a step of an attempt.
func (p place) applyAttempt(what string, number int) (next place, ok bool) {
	a := &p.had[number-1]
	isCurrent := number == p.n && p.owner == a.worker
	isHeld := isCurrent && (p.state == remote.Claimed || p.state == remote.Started)
	switch what {
	case "start":
		if !isCurrent || p.state != remote.Claimed || p.lapsed {
			return p, false
		}
		p.state, a.sent = remote.Started, true
	case "run":
		a.ran = true
	case "lapse", "renew":
		if !isHeld {
			return p, false
		}
		p.lapsed = what == "lapse"
	case "finish":
		a.answered = true
		if isCurrent && p.state == remote.Done {
			return p, true // the first result stays
		}
		mayFinish := p.state == remote.Started || p.state == remote.Queued || p.state == remote.Unknown && !p.decided
		if !isCurrent || !mayFinish {
			return p, false
		}
		p.state, p.result = remote.Done, number
	case "return":
		a.answered = true
		if !isHeld {
			return p, false
		}
		p.owner = 0
		p.requeue()
	}
	return p, true
}

// requeue queues the call again, unless it was cancelled.
func (p *place) requeue() {
	p.state = remote.Queued
	if p.cancelled {
		p.state = remote.Cancelled
	}
}

// expire changes a call whose lease has ended.
func (p *place) expire(effect lathe.Effect) {
	mayRepeat := effect == lathe.ReadOnly || effect == lathe.Idempotent
	switch {
	case p.state == remote.Claimed:
		p.owner = 0
		p.requeue()
	case p.state == remote.Started && mayRepeat:
		p.requeue()
	case p.state == remote.Started:
		p.state = remote.Unknown
	}
}

// broken returns the guarantee that does not hold at the place, which a step has reached from was.
func (p *place) broken(effect lathe.Effect, was *place) string {
	ran := 0
	for _, h := range p.had {
		if h.ran {
			ran++
		}
	}
	switch {
	case effect == lathe.Writes && ran > 1:
		return "what writes ran twice"
	case p.state == remote.Unknown && (effect != lathe.Writes || p.result != 0):
		return "unknown is for calls that write and have no result"
	case p.state == remote.Unknown && !p.had[p.n-1].sent:
		return "unknown, and it was not sent"
	case p.result != 0 && !p.had[p.result-1].ran:
		return "a result of what did not run"
	case was.result != 0 && p.result != was.result:
		return "a result was changed"
	case was.state == remote.Cancelled && p.state != remote.Cancelled:
		return "a call that was cancelled came back"
	case was.decided && p.state != remote.Unknown:
		return "a call that was decided changed"
	}
	return ""
}

// A scenario takes the steps of a path with a new call, and then tries steps that must not change the call.
type scenario struct {
	path      []step
	to        place // the place at the end of the path
	unchanged []try // the steps that change nothing there
}

// A try is a step, and whether the queue accepts it.
type try struct {
	step
	ok bool
}

// scenarios returns scenarios that take every step from every place of the model, the shortest paths first.
func scenarios(effect lathe.Effect) (all []scenario, err error) {
	start := place{state: remote.Queued}
	known := map[place]bool{start: true}
	open := []scenario{{to: start}}
	for len(open) > 0 {
		v := open[0]
		open = open[1:]
		for _, s := range v.to.steps() {
			next, ok := v.to.apply(s, effect)
			if why := next.broken(effect, &v.to); why != "" {
				return nil, fmt.Errorf("%s: after %v and %v", why, v.path, s)
			}
			if next == v.to {
				v.unchanged = append(v.unchanged, try{s, ok})
				continue
			}
			to := scenario{path: append(slices.Clone(v.path), s), to: next}
			if known[next] {
				all = append(all, to) // one more way there
				continue
			}
			known[next] = true
			open = append(open, to)
		}
		all = append(all, v)
	}
	return all, nil
}

// everyOrder makes every n-th of the scenarios (every is n), distributed over a few queues. The scenarios of one queue
// follow each other, since an expiry may concern all calls of a queue.
func everyOrder(t *testing.T, every int, open func() remote.Queue) {
	const queues = 4
	var wg sync.WaitGroup
	for _, effect := range []lathe.Effect{lathe.Writes, lathe.ReadOnly} {
		all, err := scenarios(effect)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d scenarios", effect, len(all))
		for i := range queues {
			q := open()
			wg.Go(func() {
				for k := i * every; k < len(all); k += queues * every {
					if err := all[k].make(t.Context(), q, fmt.Sprint("k", k), effect); err != nil {
						t.Errorf("%s, %v: %v", effect, all[k].path, err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
}

// make takes the steps of the scenario in a queue, and compares each answer and the resulting call with the model.
func (v *scenario) make(ctx context.Context, q remote.Queue, key string, effect lathe.Effect) error {
	c := call(key, effect)
	c.Definition = "def " + key
	if _, err := q.PutCall(ctx, c, long); err != nil {
		return err
	}
	var refs []remote.Ref
	p := place{state: remote.Queued}
	for _, s := range v.path {
		var want bool
		p, want = p.apply(s, effect)
		if took, err := walkStep(ctx, q, c, &refs, s); err != nil || took != want {
			return fmt.Errorf("the queue takes the step %v: %t, %w; want %t", s, took, err, want)
		}
	}
	if err := v.to.shown(ctx, q, key); err != nil {
		return err
	}
	for _, s := range v.unchanged {
		if took, err := walkStep(ctx, q, c, &refs, s.step); err != nil || took != s.ok {
			return fmt.Errorf("there the queue takes the step %v: %t, %w; want %t", s.step, took, err, s.ok)
		}
	}
	if err := v.to.shown(ctx, q, key); err != nil {
		return fmt.Errorf("after %v: %w", v.unchanged, err)
	}
	if v.to.state == remote.Queued { // do not leave it queued
		_, err := q.CancelCall(ctx, key)
		return err
	}
	return nil
}

// shown returns an error if the call in the queue differs from the place.
func (p *place) shown(ctx context.Context, q remote.Queue, key string) error {
	row, err := q.FindCall(ctx, key)
	if err != nil {
		return err
	}
	owner := ""
	if p.owner != 0 {
		owner = string(p.owner)
	}
	if row.State != p.state || row.Attempt != p.n || row.Worker != owner || row.Cancelled != p.cancelled || row.Decided != p.decided {
		return fmt.Errorf("the call is %s, attempt %d, of %q, cancelled %t, decided %t; want %+v", row.State, row.Attempt, row.Worker, row.Cancelled, row.Decided, *p)
	}
	want, got := "none", "none"
	if p.result != 0 {
		want = fmt.Sprintf(`"%d"`, p.result)
	}
	if row.Result != nil {
		got = string(row.Result.Data)
	}
	if got != want {
		return fmt.Errorf("the result is %v, want that of attempt %d", row.Result, p.result)
	}
	return nil
}

// walkStep takes a step in a queue, and reports whether the queue accepted it. refs are those of the claims so far.
func walkStep(ctx context.Context, q remote.Queue, c *remote.Call, refs *[]remote.Ref, s step) (took bool, err error) {
	var ref remote.Ref
	if s.attempt > 0 {
		ref = (*refs)[s.attempt-1]
	}
	switch s.what {
	case "claim":
		calls, cerr := q.ClaimCalls(ctx, string(rune(s.worker)), []string{c.Definition}, long, 1)
		for i := range calls {
			*refs = append(*refs, calls[i].Ref())
		}
		return len(calls) == 1, cerr
	case "start":
		err = q.StartCall(ctx, ref, long)
	case "finish":
		err = q.FinishCall(ctx, ref, good(fmt.Sprint(s.attempt)))
	case "return":
		err = q.ReturnCall(ctx, ref)
	case "lapse", "renew":
		lease := long
		if s.what == "lapse" {
			lease = 0
		}
		stop, berr := q.RenewCalls(ctx, ref.Worker, []remote.Ref{ref}, lease)
		row, ferr := q.FindCall(ctx, c.Key)
		if berr != nil || ferr != nil {
			return false, errors.Join(berr, ferr)
		}
		isCancelled := row.Cancelled && row.State == remote.Started && row.Ref() == ref // its lease is renewed, and the worker is to stop
		return len(stop) == 0 || isCancelled, nil
	case "cancel":
		_, err = q.CancelCall(ctx, c.Key)
	case "decide":
		_, err = q.DecideCall(ctx, c.Key)
	case "run": // not an action of the queue
	case "expire":
		_, err = q.ExpireCalls(ctx)
	}
	if errors.Is(err, lathe.ErrConflict) {
		return false, nil
	}
	return err == nil, err
}
