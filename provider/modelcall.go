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
	c *Chat

	url     *url.URL // of the request
	request *payload // the body of the request
	encode  wire.EncodeOptions
	without []string      // features that the server refused during this call
	dropped []string      // paths of what the request omits
	scratch lathe.Request // the request that is encoded
	short   bool          // the request has short ids of calls
	raw     bool          // the request is the client's own bytes: no message was encoded
	betas   []string      // beta features of the request

	deadline time.Time // of the first delta; zero if none exists
}

// startClock sets the deadline of the first delta (client_timeout).
func (v *modelCall) startClock() {
	if d := v.c.opts.Timeouts.Client; d > 0 {
		v.deadline = time.Now().Add(d)
	}
}

// generate makes a model call, with its retries, and yields its deltas.
func (v *modelCall) generate(ctx context.Context, req *lathe.Request, yield func(lathe.Delta, error) bool) {
	if ctx.Err() != nil {
		yield(lathe.Delta{}, v.c.cancelled(ctx))
		return
	}
	if req.Relay != nil && req.Relay.Wire != v.c.wire.Wire() {
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
		a := attempt{v: v, answer: v.c.wire.NewAssembler(&v.c.assemble), lead: v.lead(req), yield: yield, relay: req.Relay, visible: continues, continues: continues, yielded: turn.delta}
		err := a.run(ctx)
		v.c.log(ctx, n, &a, err)
		switch {
		case a.stopped:
			return
		case err == nil && !v.endAnswer(req, &a, &turn):
			return
		case err == nil:
			continue
		}
		if v.shortenIDs(req, &a, err) || v.retryWithoutFeature(req, &a) {
			if !yield(lathe.Delta{Kind: lathe.DeltaRetry, Retry: &lathe.Retry{Attempt: n, Err: err}}, nil) {
				return
			}
			n-- // not one of Retry.Attempts, because the server would refuse the same request each time
			continue
		}
		wait, loads := load.wait(v, &a, err)
		again := loads
		if !loads {
			wait, again = v.retry(n-load.attempts(), &a, err)
		}
		if !again {
			yield(lathe.Delta{}, turn.failed(err))
			return
		}
		if loads && load.polls > 1 { // one DeltaRetry for all requests of the wait
			n--
		} else if !yield(lathe.Delta{Kind: lathe.DeltaRetry, Retry: &lathe.Retry{Attempt: n, Err: err, Wait: wait}}, nil) {
			return
		}
		if reconnect.Wait(ctx, wait) != nil {
			yield(lathe.Delta{}, v.c.cancelled(ctx))
			return
		}
		if loads {
			v.startClock() // loading the model does not count
		}
	}
}

// prepare checks the content of a request, unless it is relayed, and encodes it.
func (v *modelCall) prepare(req *lathe.Request) error {
	if req.Relay == nil || req.Relay.Request == nil {
		row := takes(v.c, cmp.Or(req.Model, v.c.model), v.c.withheld())
		if err := checkContent(v.c, &row, req.Messages); err != nil {
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
	whole, again := turn.join(v.c, a.finish)
	if !again {
		v.finish(req, whole, a.yield)
		return false
	}
	turn.delta = a.yielded
	more, err := turn.next(v.c, req)
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
	if w := v.c.wire.Wire(); m.Wire == "" && w != lathe.WireOpenAIChat {
		m.Wire = w
	}
	if entry := v.c.opts.Entry; entry != "" {
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

// retry reports whether the call is repeated after attempt n failed with err, and after which pause.
func (v *modelCall) retry(n int, a *attempt, err *lathe.Error) (time.Duration, bool) {
	r := &v.c.opts.Retry
	var up *lathe.UpstreamError
	if a.visible || n >= r.Attempts || !errors.As(err, &up) || !up.Retryable {
		return 0, false
	}
	if up.Kind == lathe.UpstreamLoading && v.c.opts.Timeouts.Loading > 0 {
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
