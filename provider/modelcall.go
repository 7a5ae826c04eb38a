package provider

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"net/url"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/reconnect"
	"github.com/lathe-run/lathe/internal/wire"
)

// drainBytes and drainTime limit what is read after the end of an answer so that the connection can be used again.
const (
	drainBytes = 4 << 10
	drainTime  = 50 * time.Millisecond
)

// endTime limits the silence of a server between the finish reason and the end mark of an answer. Some servers send no end mark and keep the
// connection open.
const endTime = 10 * time.Second

// A modelCall is one call of Generate: its request, its state and its deadline.
type modelCall struct {
	chat *Chat

	// The request of the next attempt; set by encodeRequest:
	url     *url.URL // of the request
	request *payload // the body of the request
	encode  wire.EncodeOptions
	dropped []string      // paths of what the request omits
	scratch lathe.Request // the request that is encoded
	short   bool          // the request has short ids of calls
	raw     bool          // the request is the client's own bytes: no message was encoded
	betas   []string      // beta features of the request

	without  []string  // features that the server refused during this call
	deadline time.Time // of the first delta; zero if none exists
}

// startClock sets the deadline of the first delta (client_timeout).
func (v *modelCall) startClock() {
	if d := v.chat.opts.Timeouts.Client; d > 0 {
		v.deadline = time.Now().Add(d)
	}
}

// generate makes a model call, with its retries, and yields its deltas.
func (v *modelCall) generate(ctx context.Context, req *lathe.Request, yield func(lathe.Delta, error) bool) {
	if ctx.Err() != nil {
		yield(lathe.Delta{}, v.chat.cancelled(ctx))
		return
	}
	if req.Relay != nil && req.Relay.Wire != v.chat.wire.Wire() {
		own := *req
		own.Relay, req = nil, &own
	}
	if err := v.prepare(req); err != nil {
		yield(lathe.Delta{}, err)
		return
	}
	v.startClock()
	var load loading
	turn := pausedTurn{relayed: req.Relay != nil}
	for n := 1; ; n++ {
		continues := turn.whole != nil
		a := attempt{call: v, answer: v.chat.wire.NewAssembler(&v.chat.assemble), lead: v.lead(req), yield: yield, relay: req.Relay,
			visible: continues, continues: continues, yielded: turn.delta}
		err := a.run(ctx)
		v.chat.log(ctx, n, &a, err)
		if a.stopped {
			return
		}
		if err == nil {
			if v.endAnswer(req, &a, &turn) {
				continue
			}
			return
		}
		how, wait := v.repeat(req, &a, n, &load, err)
		if how == notRepeated {
			yield(lathe.Delta{}, turn.failed(err))
			return
		}
		isPoll := how == whileLoading && load.polls > 1 // one DeltaRetry for all requests of the wait
		if !isPoll && !yield(lathe.Delta{Kind: lathe.DeltaRetry, Retry: &lathe.Retry{Attempt: n, Err: err, Wait: wait}}, nil) {
			return
		}
		switch { // what does not count as an attempt
		case how == withChangedRequest:
			n--
			continue
		case isPoll:
			n--
		}
		if reconnect.Wait(ctx, wait) != nil {
			yield(lathe.Delta{}, v.chat.cancelled(ctx))
			return
		}
		if how == whileLoading {
			v.startClock() // loading the model does not count
		}
	}
}

// A repetition is how a call is repeated after a failed attempt.
type repetition uint8

const (
	notRepeated        repetition = iota
	withChangedRequest            // at once: the server would refuse the same request each time
	whileLoading                  // after a pause, because the server loads the model
	afterPause                    // as Retry says
)

// repeat returns how the call is repeated after attempt n failed with err, and the pause before the next attempt.
func (v *modelCall) repeat(req *lathe.Request, a *attempt, n int, load *loading, err *lathe.Error) (repetition, time.Duration) {
	if v.shortenIDs(req, a, err) || v.retryWithoutFeature(req, a) {
		return withChangedRequest, 0
	}
	var up *lathe.UpstreamError
	if a.visible || !errors.As(err, &up) {
		return notRepeated, 0
	}
	if wait, loads := load.wait(v.chat.opts.Timeouts.Loading, up); loads {
		return whileLoading, wait
	}
	if wait, again := v.retry(n-load.attempts(), up); again {
		return afterPause, wait
	}
	return notRepeated, 0
}

// prepare checks the content of a request, unless it is relayed, and encodes it.
func (v *modelCall) prepare(req *lathe.Request) error {
	if req.Relay == nil || req.Relay.Request == nil {
		row := takes(v.chat, cmp.Or(req.Model, v.chat.model), v.chat.withheld())
		if err := checkContent(v.chat, &row, req.Messages); err != nil {
			return err
		}
	}
	return v.encodeRequest(req)
}

// endAnswer handles the answer of an attempt. It returns true if the server has paused the answer: the request that continues it is
// encoded. Otherwise it yields the end of the call, or an error.
func (v *modelCall) endAnswer(req *lathe.Request, a *attempt, turn *pausedTurn) (again bool) {
	v.recordRefusedFeatures()
	v.complete(a.finish)
	whole, again := turn.join(v.chat, a.finish)
	if !again {
		v.finish(req, whole, a.yield)
		return false
	}
	turn.delta = a.yielded
	more, err := turn.next(v.chat, req)
	if err == nil {
		err = v.encodeRequest(more)
	}
	if err != nil {
		a.yield(lathe.Delta{}, err)
		return false
	}
	return true
}

// finish yields the calls in an open thought and the end of the answer.
func (v *modelCall) finish(req *lathe.Request, whole *lathe.Finish, yield func(lathe.Delta, error) bool) {
	for _, d := range v.thoughtCalls(req, whole) {
		if !yield(d, nil) {
			return
		}
	}
	yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: whole}, nil)
}

// complete adds to an answer the fields that its codec does not set.
func (v *modelCall) complete(f *lathe.Finish) {
	m := &f.Message
	if w := v.chat.wire.Wire(); m.Wire == "" && w != lathe.WireOpenAIChat {
		m.Wire = w
	}
	if entry := v.chat.opts.Entry; entry != "" {
		for i, p := range m.Parts {
			if r, ok := p.(lathe.Reasoning); ok {
				r.Entry = entry
				m.Parts[i] = r
			}
		}
	}
	v.noteBindings(m)
	f.Dropped = v.dropped[:min(len(v.dropped), wire.MaxDropped)]
}

// noteBindings records what preceded the thinking of an answer, and which thinking the server did not accept.
func (v *modelCall) noteBindings(m *lathe.Message) {
	b := &v.encode.Bound
	if b.Before == (wire.Prefix{}) {
		return
	}
	for _, p := range m.Parts {
		if r, ok := p.(lathe.Reasoning); ok && r.Data != "" {
			b.Written(r.Data, b.Before)
		}
	}
	for signature, before := range b.Left {
		b.Refused(signature, before)
	}
}

// retry reports whether the call is repeated after attempt n failed with up, and after which pause.
func (v *modelCall) retry(n int, up *lathe.UpstreamError) (time.Duration, bool) {
	r := &v.chat.opts.Retry
	if n >= r.Attempts || !up.Retryable {
		return 0, false
	}
	if up.Kind == lathe.UpstreamLoading && v.chat.opts.Timeouts.Loading > 0 {
		return 0, false // load.wait has handled it
	}
	wait := up.RetryAfter
	if wait == 0 {
		wait = time.Duration(r.Jitter() * min(float64(r.Base)*math.Pow(2, float64(n-1)), float64(r.Max)))
	}
	if wait > r.MaxAfter || !v.deadline.IsZero() && wait >= time.Until(v.deadline) {
		return 0, false
	}
	return wait, true
}

func (c *Chat) log(ctx context.Context, n int, a *attempt, err *lathe.Error) {
	if c.opts.Log == nil || !c.opts.Log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	kind := ""
	var up *lathe.UpstreamError
	switch {
	case a.stopped:
		kind = "stopped"
	case err == nil:
	case errors.As(err, &up):
		kind = string(up.Kind)
	default:
		kind = string(err.Code)
	}
	line := []any{"provider", c.opts.Name, "model", c.model, "attempt", n, "status", a.status, "failure", kind, "upstream_request_id", a.requestID}
	if a.finish != nil && len(a.finish.Faults) > 0 {
		line = append(line, "faults", a.finish.Faults)
	}
	if a.reconnected {
		line = append(line, "reconnected", true)
	}
	c.opts.Log.DebugContext(ctx, "model call attempt", line...)
}
