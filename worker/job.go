package worker

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire/fleet"
	"github.com/lathe-run/lathe/tool"
)

// principal is who makes the calls, as policies are told.
const principal = "gateway"

// A job is a call that the worker holds: it runs, or its result has not been taken yet.
type job struct {
	cancel context.CancelFunc
	result *fleet.Frame // nil while it runs
}

// start begins a call, and reports whether it did. A call that is held already goes on as it does.
func (w *Worker) start(ctx context.Context, f *fleet.Frame, left time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held[f.Ref] != nil {
		return true
	}
	if w.draining || len(w.held) >= w.opts.Concurrency {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, left)
	j := &job{cancel: cancel}
	w.held[f.Ref] = j
	w.jobs.Go(func() {
		defer cancel()
		began := time.Now()
		result := w.execute(ctx, f)
		if _, err := fleet.Encode(result); err != nil { // it is too large
			result = &fleet.Frame{Type: fleet.Error, Ref: f.Ref, Code: lathe.CodeOutputTooLarge}
		}
		w.mu.Lock()
		j.result = result
		now := w.now
		w.mu.Unlock()
		if now != nil {
			now.write(result)
		}
		w.tellCall(f.Invoke.Tool, result, time.Since(began))
	})
	return true
}

func (w *Worker) tellCall(name string, result *fleet.Frame, took time.Duration) {
	code := result.Code
	if result.Output != nil {
		code = result.Output.Code
	}
	w.telling.Lock()
	defer w.telling.Unlock()
	w.opts.Log.Info("call", "tool_name", name, "code", string(code), "duration_ms", took.Milliseconds())
	if w.opts.OnCall != nil {
		w.opts.OnCall(name, code, took)
	}
}

// refs names what is held.
func (w *Worker) refs() []fleet.Ref {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]fleet.Ref, 0, len(w.held))
	for r := range w.held {
		out = append(out, r)
	}
	return out
}

// cancel ends a call that nobody waits for. Its result is told all the same.
func (w *Worker) cancel(ref fleet.Ref) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if j := w.held[ref]; j != nil {
		j.cancel()
	}
}

// let lets go of a call whose result was taken. One that runs still is held: a gateway that has no more
// use for it cancels it.
func (w *Worker) let(ref fleet.Ref, taken bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	j := w.held[ref]
	if j == nil || j.result == nil {
		return
	}
	w.settled(j.result, taken)
	delete(w.held, ref)
	if len(w.held) == 0 {
		select {
		case w.empty <- struct{}{}:
		default: // it is told already
		}
	}
}

// execute has the runner make the call. Run and call id are those of the gateway's run, so that the
// idempotency key is, too.
func (w *Worker) execute(ctx context.Context, f *fleet.Frame) *fleet.Frame {
	in := f.Invoke
	settings, limits := w.runner.Settings(), w.runner.Limits()
	settings.ResultFormat, settings.OversizeOutput = lathe.ResultPlain, lathe.OversizeError
	limits.MaxToolCalls = 1
	work := w.runner.Begin(&lathe.RunInfo{RunID: in.RunID, RequestID: in.RequestID, SessionID: in.SessionID, Depth: in.Depth, Principal: principal},
		&tool.RunOptions{Settings: &settings, Limits: &limits, Allow: w.opts.Tools})
	defer work.Close()
	ctx = lathe.WithRemoteTrace(ctx, lathe.TraceContext{Parent: in.Traceparent, State: in.Tracestate})
	ctx = lathe.WithTracer(ctx, in.RunID, w.opts.Sinks)
	call := tool.Call{ToolCall: lathe.ToolCall{ID: in.CallID, Name: in.Tool, Arguments: string(in.Arguments)}}
	out := work.Execute(ctx, 1, []tool.Call{call}, func(d lathe.EventData) { w.tell(ctx, in, d) })
	for _, m := range out.Messages {
		for _, p := range m.Parts {
			if r, ok := p.(lathe.ToolResult); ok {
				return frameOf(f.Ref, &r, errors.Is(ctx.Err(), context.DeadlineExceeded))
			}
		}
	}
	return &fleet.Frame{Type: fleet.Error, Ref: f.Ref, Code: lathe.CodePolicyDenied} // somebody would have to be asked
}

// tell tells the sinks what happens to a call.
func (w *Worker) tell(ctx context.Context, in *fleet.Invoke, d lathe.EventData) {
	w.telling.Lock()
	defer w.telling.Unlock()
	for _, s := range w.opts.Sinks {
		s.Emit(ctx, lathe.Event{Time: time.Now(), RunID: in.RunID, RequestID: in.RequestID, SessionID: in.SessionID, Turn: 1, Data: d})
	}
}

// frameOf is what the gateway is told of a result. A text that is JSON stands as what it is: that is also
// how a model sees it.
func frameOf(ref fleet.Ref, r *lathe.ToolResult, late bool) *fleet.Frame {
	if !r.IsError {
		data := json.RawMessage(r.Content)
		if rawjson.Check(data, rawjson.Limits{}) != nil {
			data = rawjson.AppendQuote(nil, r.Content)
		}
		return &fleet.Frame{Type: fleet.Result, Ref: ref, Output: &lathe.CallResult{Data: data, Blobs: r.Blobs}}
	}
	code := r.Code
	if code == lathe.CodeCancelled && late {
		code = lathe.CodeTimeout
	}
	var said struct {
		Error struct {
			Detail string `json:"detail"`
		} `json:"error"`
		Data json.RawMessage `json:"data"`
	}
	_ = json.Unmarshal([]byte(r.Content), &said) // what it does not hold is not told
	if said.Data != nil {
		return &fleet.Frame{Type: fleet.Result, Ref: ref, Output: &lathe.CallResult{IsError: true, Code: code, Data: said.Data, Blobs: r.Blobs}}
	}
	return &fleet.Frame{Type: fleet.Error, Ref: ref, Code: code, Detail: said.Error.Detail}
}
