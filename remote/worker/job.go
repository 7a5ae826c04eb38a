package worker

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire/workers"
	"github.com/lathe-run/lathe/remote"
	"github.com/lathe-run/lathe/tool"
)

// principal is the principal of all calls in the policies of the worker.
const principal = "gateway"

// A job is a call of the worker: it is being executed, or the gateway has not acknowledged its result.
type job struct {
	cancel context.CancelFunc
	result *workers.Frame // nil while the call is being executed
}

// start starts a call in a goroutine. It returns false if the worker is draining or has Concurrency calls. For a call that the worker
// already has, it does nothing and returns true.
func (w *Worker) start(ctx context.Context, f *workers.Frame, left time.Duration) bool {
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
		if _, err := workers.Encode(result); err != nil { // the result is too large for a frame
			result = &workers.Frame{Type: workers.Error, Ref: f.Ref, Code: lathe.CodeOutputTooLarge}
		}
		w.mu.Lock()
		j.result = result
		s := w.session
		w.mu.Unlock()
		if s != nil {
			s.write(result)
		}
		w.reportCall(f.Invoke.Tool, result, time.Since(began))
	})
	return true
}

func (w *Worker) reportCall(name string, result *workers.Frame, took time.Duration) {
	code := result.Code
	if result.Output != nil {
		code = result.Output.Code
	}
	w.reporting.Lock()
	defer w.reporting.Unlock()
	w.opts.Log.Info("call", "tool_name", name, "code", string(code), "duration_ms", took.Milliseconds())
	if w.opts.OnCall != nil {
		w.opts.OnCall(name, code, took)
	}
}

// refs returns the references of the worker's calls.
func (w *Worker) refs() []workers.Ref {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.held))
}

// cancel cancels the context of a call whose run no longer waits for it. The worker still sends its result.
func (w *Worker) cancel(ref workers.Ref) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if j := w.held[ref]; j != nil {
		j.cancel()
	}
}

// finish removes a call whose result the gateway has acknowledged. It does nothing if the call is still being executed: a gateway that no
// longer needs the call cancels it.
func (w *Worker) finish(ref workers.Ref, accepted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	j := w.held[ref]
	if j == nil || j.result == nil {
		return
	}
	w.countResult(j.result, accepted)
	delete(w.held, ref)
	if len(w.held) == 0 {
		select {
		case w.empty <- struct{}{}:
		default: // a notification is pending already
		}
	}
}

// execute executes the call with the runner. The run id and the call id are those of the gateway's run, so that the idempotency key is the
// same as in the gateway.
func (w *Worker) execute(ctx context.Context, f *workers.Frame) *workers.Frame {
	in := f.Invoke
	settings, limits := w.runner.Settings(), w.runner.Limits()
	settings.ResultFormat, settings.OversizeOutput = lathe.ResultPlain, lathe.OversizeError
	limits.MaxToolCalls = 1
	work := w.runner.Begin(&lathe.RunInfo{RunID: in.RunID, RequestID: in.RequestID, SessionID: in.SessionID, Depth: in.Depth, Principal: principal},
		&tool.RunOptions{Settings: &settings, Limits: &limits, Allow: w.opts.Tools})
	ctx = event.WithRemoteTrace(ctx, event.TraceContext{Parent: in.Traceparent, State: in.Tracestate})
	ctx = event.WithTracer(ctx, in.RunID, w.opts.Sinks)
	call := tool.Call{ToolCall: lathe.ToolCall{ID: in.CallID, Name: in.Tool, Arguments: string(in.Arguments)}}
	out := work.Execute(ctx, 1, []tool.Call{call}, func(d event.Data) { w.emit(ctx, in, d) })
	if r, ok := out.Result(); ok {
		return frameOf(f.Ref, &r, errors.Is(ctx.Err(), context.DeadlineExceeded))
	}
	return &workers.Frame{Type: workers.Error, Ref: f.Ref, Code: lathe.CodePolicyDenied} // the policy requires an approval and the worker has no approver
}

// emit sends an event of a call to the sinks.
func (w *Worker) emit(ctx context.Context, in *workers.Invoke, d event.Data) {
	w.reporting.Lock()
	defer w.reporting.Unlock()
	for _, s := range w.opts.Sinks {
		s.Emit(ctx, event.Event{Time: time.Now(), RunID: in.RunID, RequestID: in.RequestID, SessionID: in.SessionID, Turn: 1, Data: d})
	}
}

// frameOf returns the frame that reports a result to the gateway. Content that is valid JSON is sent
// unchanged, as the model would see it; other text is sent as a JSON string.
func frameOf(ref workers.Ref, r *lathe.ToolResult, late bool) *workers.Frame {
	if !r.IsError {
		data := json.RawMessage(r.Content)
		if rawjson.Check(data, rawjson.Limits{}) != nil {
			data = rawjson.AppendQuote(nil, r.Content)
		}
		return &workers.Frame{Type: workers.Result, Ref: ref, Output: &remote.Result{Data: data, Blobs: r.Blobs}}
	}
	code := r.Code
	if code == lathe.CodeCancelled && late {
		code = lathe.CodeTimeout
	}
	var content struct {
		Error struct {
			Detail string `json:"detail"`
		} `json:"error"`
		Data json.RawMessage `json:"data"`
	}
	_ = json.Unmarshal([]byte(r.Content), &content) // members that are missing or not valid stay empty in the frame
	if content.Data != nil {
		return &workers.Frame{Type: workers.Result, Ref: ref, Output: &remote.Result{IsError: true, Code: code, Data: content.Data, Blobs: r.Blobs}}
	}
	return &workers.Frame{Type: workers.Error, Ref: ref, Code: code, Detail: content.Error.Detail}
}
