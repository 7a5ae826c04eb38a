package loop

import (
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// routed returns the loop that executes the next step of a run with this input: that which Route returns for its messages. Calls without a
// result are of the loop whose model made them.
func (l *Loop) routed(in *Input) *Loop {
	messages := in.history()
	if s := in.Resume; s != nil && len(s.Open) > 0 {
		messages = messages[:s.tail-1]
	}
	return l.next(messages)
}

func (l *Loop) next(messages []lathe.Message) *Loop {
	if l.opts.Route != nil {
		if next := l.opts.Route(messages); next != nil {
			return next
		}
	}
	return l
}

// handOver sets the input for the loop that is to make the next model call, and returns true, if that is another loop. That loop continues
// from the same state as after a restart at this point, and with the same events.
func (r *run) handOver() bool {
	if r.loop.next(r.req.Messages) == r.loop {
		return false
	}
	in := *r.in
	in.Run, in.Answers, in.handedOver = r.info, nil, true
	in.extra.Suspended, in.extra.Elapsed = true, r.loop.opts.Now().Sub(r.started)
	in.Resume = &State{Run: r.info, LastID: 1, Target: in.Target, Messages: r.req.Messages, Start: len(in.Messages), TakenOver: len(in.taken()),
		Turn: r.turn, Usage: r.result.Usage, Cost: r.result.Cost, Trace: r.result.Trace, Planned: r.result.ToolCalls, Loaded: r.from.loaded}
	r.from.next = &in
	return true
}

// loads records the definitions that an event says the run has loaded.
func (f *resumption) loads(d event.Data) {
	if d, ok := d.(*event.ToolsLoaded); ok {
		f.loaded = append(f.loaded, d.Tools...)
	}
}
