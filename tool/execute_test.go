package tool_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

// obeys returns when its context is done.
func obeys(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestToolTimeout(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		runner  time.Duration
		own     time.Duration
		takes   time.Duration
		want    lathe.Code
		elapsed time.Duration
	}{
		{"just in time", 10 * time.Second, 0, 10*time.Second - 1, "", 10*time.Second - 1},
		{"too late", 10 * time.Second, 0, 10*time.Second + 1, lathe.CodeTimeout, 10 * time.Second},
		{"the default", 0, 0, time.Hour, lathe.CodeTimeout, 30 * time.Second},
		{"its own, shorter", 10 * time.Second, time.Second, time.Hour, lathe.CodeTimeout, time.Second},
		{"its own, longer", time.Second, time.Minute, 59 * time.Second, "", 59 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := reader("t", func(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
					if d, ok := ctx.Deadline(); !ok || d.After(time.Now().Add(time.Hour)) {
						t.Errorf("deadline %v %v", d, ok)
					}
					select {
					case <-time.After(tt.takes):
						return &lathe.Output{Data: json.RawMessage(`1`)}, nil
					case <-ctx.Done():
						if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
							t.Errorf("context ends with %v", ctx.Err())
						}
						return nil, ctx.Err()
					}
				})
				f.spec.Timeout = tt.own
				r := newRunner(t, limits(lathe.Limits{ToolTimeout: tt.runner}), f)
				start := time.Now()
				res, rec, _ := one(t, r.Begin(nil, nil), call("t", ""))
				if res.Code != tt.want {
					t.Errorf("code %q, want %q", res.Code, tt.want)
				}
				if got := time.Since(start); got != tt.elapsed {
					t.Errorf("took %v, want %v", got, tt.elapsed)
				}
				ex, result := find[*event.ToolCallExecuted](t, rec), find[*event.ToolCallResult](t, rec)
				if ex.LatencyMS != tt.elapsed.Milliseconds() || result.LatencyMS != ex.LatencyMS {
					t.Errorf("latency %d and %d", ex.LatencyMS, result.LatencyMS)
				}
				if tt.want != "" && result.Limit != "tool_timeout" {
					t.Errorf("limit %q", result.Limit)
				}
				if r.Abandoned() != 0 {
					t.Errorf("%d calls abandoned", r.Abandoned())
				}
			})
		})
	}
}

// A tool that does not look at its context is left behind, counted, and keeps its place until it is back.
func TestToolIsAbandoned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		stuck := true
		f := reader("t", func(context.Context, json.RawMessage) (*lathe.Output, error) {
			if stuck {
				stuck = false
				<-free
			}
			return &lathe.Output{Data: json.RawMessage(`1`)}, nil
		})
		f.spec.Concurrency, f.spec.Timeout = 1, time.Second
		r := newRunner(t, nil, f)
		w := r.Begin(nil, nil)
		if res, _, _ := one(t, w, call("t", "")); res.Code != lathe.CodeTimeout || r.Abandoned() != 1 {
			t.Errorf("code %q, %d abandoned", res.Code, r.Abandoned())
		}
		if res, rec, _ := one(t, w, call("t", "")); res.Code != lathe.CodeRateLimited || find[*event.ToolCallResult](t, rec).Limit != "concurrency" {
			t.Errorf("code %q while its place is taken", res.Code)
		}
		close(free)
		synctest.Wait()
		if res, _, _ := one(t, w, call("t", "")); res.Code != "" || r.Abandoned() != 1 {
			t.Errorf("code %q, %d abandoned, once it is back", res.Code, r.Abandoned())
		}
	})
}

func TestCancelledCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		f := reader("t", func(ctx context.Context, args json.RawMessage) (*lathe.Output, error) {
			cancel()
			return obeys(ctx, args)
		})
		r := newRunner(t, nil, f)
		rec := &recorder{}
		out := r.Begin(nil, nil).Execute(ctx, 1, []tool.Call{call("t", ""), call("t", ""), call("nope", "")}, rec.emit)
		if got, want := codes(t, out), "cancelled cancelled cancelled"; got != want {
			t.Errorf("codes %q, want %q", got, want)
		}
		if got, want := rec.types(), "Proposed Planned Executed Result Proposed Planned Result Proposed Planned Result"; got != want {
			t.Errorf("events %q", got)
		}
		if r.Abandoned() != 0 {
			t.Error("a tool that obeys was abandoned")
		}
	})
}

// The result of a tool that finished in spite of the cancel is what happened: it counts.
func TestResultAfterCancelCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		f := reader("t", func(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
			cancel()
			<-ctx.Done()
			return &lathe.Output{Data: json.RawMessage(`"done"`)}, nil
		})
		out := open(t, nil, f).Execute(ctx, 1, []tool.Call{call("t", "")}, func(event.Data) {})
		if res := result(t, out.Messages[0]); res.Content != "done" {
			t.Errorf("answer %+v", res)
		}
	})
}

func TestConcurrencyWaits(t *testing.T) {
	t.Parallel()
	for _, backend := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			body := func(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
				select {
				case <-time.After(time.Second):
					return &lathe.Output{Data: json.RawMessage(`1`)}, nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
			a, b := reader("a", body), reader("b", body)
			for _, f := range []*fake{a, b} {
				f.spec.Timeout = 2500 * time.Millisecond
				if backend {
					f.spec.Backend, f.spec.BackendConcurrency = "x", 1
				} else {
					f.spec.Concurrency = 1
				}
			}
			opts := limits(lathe.Limits{MaxRepeatedCalls: 100})
			opts.Settings.MaxParallel = 8
			w := open(t, opts, a, b)
			start := time.Now()
			out := w.Execute(t.Context(), 1, []tool.Call{call("a", ""), call("b", ""), call("a", ""), call("b", "")}, func(event.Data) {})
			ok := 0
			for _, m := range out.Messages {
				switch result(t, m).Code {
				case "":
					ok++
				case lathe.CodeRateLimited, lathe.CodeTimeout:
				default:
					t.Errorf("code %q", result(t, m).Code)
				}
			}
			want, wantOK := 2*time.Second, 4 // two tools at once, two calls each
			if backend {
				want, wantOK = 2600*time.Millisecond, 2 // one at a time; the third is cut off, the fourth waited in vain
			}
			if got := time.Since(start); got > want || ok < wantOK {
				t.Errorf("backend %v: %d answered after %v, want %d after %v", backend, ok, got, wantOK, want)
			}
		})
	}
}

// The run's own deadline is the tool's where it is earlier, and then cancels the call.
func TestEarlierDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		want, _ := ctx.Deadline()
		f := reader("t", func(ctx context.Context, args json.RawMessage) (*lathe.Output, error) {
			if got, ok := ctx.Deadline(); !ok || !got.Equal(want) {
				t.Errorf("deadline %v, want %v", got, want)
			}
			return obeys(ctx, args)
		})
		out := open(t, nil, f).Execute(ctx, 1, []tool.Call{call("t", "")}, func(event.Data) {})
		if got := codes(t, out); got != "cancelled" {
			t.Errorf("code %q", got)
		}
	})
}

// A call that waits in vain for its backend releases the place that it has among its own tool's.
func TestPlacesAreGivenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		over := make(chan struct{})
		busy := reader("busy", func(context.Context, json.RawMessage) (*lathe.Output, error) {
			<-over
			return &lathe.Output{Data: json.RawMessage(`1`)}, nil
		})
		f := reader("t", returns("1"))
		busy.spec.Backend, busy.spec.BackendConcurrency = "x", 1
		f.spec.Backend, f.spec.Concurrency, f.spec.Timeout = "x", 1, time.Second
		r := newRunner(t, nil, busy, f)
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.Begin(nil, nil).Execute(t.Context(), 1, []tool.Call{call("busy", "")}, func(event.Data) {})
		}()
		synctest.Wait()
		w := r.Begin(nil, nil)
		for range 2 {
			res, rec, _ := one(t, w, call("t", ""))
			if limit := find[*event.ToolCallResult](t, rec).Limit; res.Code != lathe.CodeRateLimited || limit != "backend_concurrency" {
				t.Errorf("code %q, limit %q", res.Code, limit)
			}
		}
		close(over)
		<-done
		if res, _, _ := one(t, w, call("t", "")); res.Code != "" {
			t.Errorf("code %q once the backend is free", res.Code)
		}
	})
}

func TestCallMeta(t *testing.T) {
	t.Parallel()
	var metas []lathe.CallMeta
	type key struct{}
	f := reader("t", func(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
		metas = append(metas, *lathe.CallMetaFrom(ctx))
		if ctx.Value(key{}) != "v" {
			t.Error("the caller's values are lost")
		}
		child, cancel := context.WithCancel(ctx)
		defer cancel()
		return &lathe.Output{Data: json.RawMessage(`1`)}, child.Err()
	})
	r := newRunner(t, nil, f)
	ctx := context.WithValue(t.Context(), key{}, "v")
	for _, id := range []string{"a", "b", "a"} {
		w := r.Begin(&lathe.RunInfo{RunID: "run_9", RequestID: "req", SessionID: "ses", Depth: 2}, nil)
		w.Execute(ctx, 1, []tool.Call{{ToolCall: lathe.ToolCall{ID: id, Name: "t"}}}, func(event.Data) {})
	}
	if len(metas) != 3 {
		t.Fatalf("%d calls", len(metas))
	}
	want := lathe.CallMeta{RunID: "run_9", RequestID: "req", SessionID: "ses", CallID: "a", Tool: "t", Depth: 2, IdempotencyKey: metas[0].IdempotencyKey}
	if metas[0] != want || len(want.IdempotencyKey) != 32 {
		t.Errorf("meta %+v", metas[0])
	}
	if metas[1].IdempotencyKey == want.IdempotencyKey || metas[2] != want {
		t.Errorf("keys %q %q %q: want one for each call, the same each time", want.IdempotencyKey, metas[1].IdempotencyKey, metas[2].IdempotencyKey)
	}
}

// Contexts derived from a call's end with it, and cost no goroutine that stays.
func TestDerivedContextsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var derived, stopped, late context.Context
		var kept context.Context
		f := reader("t", func(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
			kept = ctx
			var cancel context.CancelFunc
			derived, cancel = context.WithTimeout(ctx, time.Hour)
			t.Cleanup(cancel) // after the call has ended it
			stopped, cancel = context.WithCancel(ctx)
			cancel()
			if ctx.Err() != nil || derived.Err() != nil {
				t.Errorf("ended early: %v %v", ctx.Err(), derived.Err())
			}
			return &lathe.Output{Data: json.RawMessage(`1`)}, nil
		})
		one(t, open(t, nil, f), call("t", ""))
		synctest.Wait()
		late, cancel := context.WithCancel(kept)
		defer cancel()
		synctest.Wait()
		for name, ctx := range map[string]context.Context{"kept": kept, "derived": derived, "stopped": stopped, "late": late} {
			if !errors.Is(ctx.Err(), context.Canceled) || context.Cause(ctx) == nil {
				t.Errorf("%s: %v", name, ctx.Err())
			}
			select {
			case <-ctx.Done():
			default:
				t.Errorf("%s is not done", name)
			}
		}
	})
}

func TestJournalComesFirst(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		journal func() error
		want    lathe.Code
		ran     bool
	}{
		"kept":   {func() error { return nil }, "", true},
		"failed": {func() error { return errBoom }, lathe.CodeUnavailable, false},
		"panics": {func() error { panic("secret") }, lathe.CodeUnavailable, false},
	} {
		ran, kept := false, false
		f := reader("t", func(context.Context, json.RawMessage) (*lathe.Output, error) {
			if !kept {
				t.Errorf("%s: it ran before its intent was kept", name)
			}
			ran = true
			return &lathe.Output{Data: json.RawMessage(`1`)}, nil
		})
		f.spec.Concurrency = 1
		opts := &tool.Options{Policy: policy.AllowAll(), Journal: func(_ context.Context, c *lathe.CallInfo, _ lathe.Verdict) error {
			kept = c.Call.ID != "" && c.Tool.Name == "t" && string(c.Args) == "{}"
			return tt.journal()
		}}
		w := open(t, opts, f)
		for range 2 { // the place is released
			if res, _, _ := one(t, w, call("t", "")); res.Code != tt.want || ran != tt.ran {
				t.Errorf("%s: code %q, ran %v", name, res.Code, ran)
			}
		}
	}
}

// A panic in OnError changes neither the result of the call nor the calls that run beside it.
func TestOnErrorMayPanic(t *testing.T) {
	t.Parallel()
	opts := &tool.Options{Policy: policy.AllowAll(), Settings: lathe.Settings{MaxParallel: 2},
		OnError: func(context.Context, *lathe.CallInfo, error) { panic("secret") }}
	w := open(t, opts, reader("t", func(context.Context, json.RawMessage) (*lathe.Output, error) { return nil, errBoom }))
	out := w.Execute(t.Context(), 1, []tool.Call{call("t", ""), call("t", "")}, func(event.Data) {})
	if got, want := codes(t, out), "execution_failed execution_failed"; got != want {
		t.Errorf("codes %q, want %q", got, want)
	}
}

func TestPanicsAndGoexit(t *testing.T) {
	t.Parallel()
	var errs []error
	var logs bytes.Buffer
	opts := &tool.Options{Policy: policy.AllowAll(), Log: slog.New(slog.NewTextHandler(&logs, nil)),
		OnError: func(_ context.Context, _ *lathe.CallInfo, err error) { errs = append(errs, err) }}
	w := open(t, opts,
		reader("panics", func(context.Context, json.RawMessage) (*lathe.Output, error) { panic(errBoom) }),
		reader("exits", func(context.Context, json.RawMessage) (*lathe.Output, error) { runtime.Goexit(); return nil, nil }),
		reader("fails", func(context.Context, json.RawMessage) (*lathe.Output, error) { return nil, errBoom }))
	for _, name := range []string{"panics", "exits", "fails"} {
		if res, _, _ := one(t, w, call(name, "")); res.Code != lathe.CodeExecutionFailed {
			t.Errorf("%s: code %q", name, res.Code)
		}
	}
	var pe *tool.PanicError
	if len(errs) != 3 || !errors.As(errs[0], &pe) || !errors.Is(errs[2], errBoom) {
		t.Fatalf("reported %v", errs)
	}
	if !strings.Contains(pe.Stack, "TestPanicsAndGoexit") || strings.Contains(pe.Stack+pe.Error()+logs.String(), "boom") {
		t.Errorf("stack %q, log %s", pe.Stack, logs.String())
	}
	if n := strings.Count(logs.String(), "tool panicked"); n != 2 {
		t.Errorf("%d warnings, want 2", n)
	}
}

func TestGuestFaultEndsTheRun(t *testing.T) {
	t.Parallel()
	w := open(t, nil, reader("t", func(context.Context, json.RawMessage) (*lathe.Output, error) {
		return &lathe.Output{RC: -14}, fmt.Errorf("x: %w", tool.ErrGuestFault)
	}))
	rec := &recorder{}
	out := w.Execute(t.Context(), 1, []tool.Call{call("t", ""), call("t", "")}, rec.emit)
	if got, want := codes(t, out), "execution_failed cancelled"; got != want || out.Reason != lathe.ReasonGuestFault {
		t.Errorf("codes %q reason %q", got, out.Reason)
	}
	if rc := find[*event.ToolCallExecuted](t, rec).RC; rc == nil || *rc != -14 {
		t.Errorf("rc %v", rc)
	}
}

func TestErrorOutputs(t *testing.T) {
	t.Parallel()
	isError := func(code lathe.Code, data string) func(context.Context, json.RawMessage) (*lathe.Output, error) {
		return func(context.Context, json.RawMessage) (*lathe.Output, error) {
			return &lathe.Output{IsError: true, Code: code, Data: json.RawMessage(data), RC: -5}, nil
		}
	}
	show := func(f *fake, paths ...string) *fake { f.spec.Allowlist = paths; return f }
	for _, tt := range []struct {
		name string
		tool *fake
		code lathe.Code
		want string // end of the answer
	}{
		{"data under the allowlist", show(reader("t", isError("", `{"why":"x","secret":"y"}`)), "why"), lathe.CodeExecutionFailed, `"data":{"why":"x"}}`},
		{"data that may not be shown is left out", show(reader("t", isError(lathe.CodeUnavailable, `{"secret":"y"}`)), "why"), lathe.CodeUnavailable, `go on without it."}}`},
		{"text", reader("t", isError(lathe.CodeNotFound, `"no \u0022file\u0022"`)), lathe.CodeExecutionFailed, `"data":"no \"file\""}`},
		{"no data", reader("t", isError("", "")), lathe.CodeExecutionFailed, `go on without it."}}`},
		{"bad data", reader("t", isError("", "{")), lathe.CodeInvalidOutput, `}}`},
		{"too much data is left out", reader("t", isError("", `"`+strings.Repeat("x", 70_000)+`"`)), lathe.CodeExecutionFailed, `"max_bytes":65536}}`},
	} {
		res, rec, _ := one(t, open(t, nil, tt.tool), call("t", ""))
		if res.Code != tt.code || !strings.HasSuffix(strings.ToLower(res.Content), strings.ToLower(tt.want)) {
			t.Errorf("%s: %q %s, want %q …%s", tt.name, res.Code, res.Content, tt.code, tt.want)
		}
		errorOf(t, res)
		if ex := find[*event.ToolCallExecuted](t, rec); ex.Success || ex.RC == nil || *ex.RC != -5 {
			t.Errorf("%s: executed %+v", tt.name, ex)
		}
	}
}

// The output schema is of results: what a tool says of its failure need not follow it.
func TestErrorOutputsNeedNoSchema(t *testing.T) {
	t.Parallel()
	for isError, want := range map[bool]lathe.Code{true: lathe.CodeUnavailable, false: lathe.CodeInvalidOutput} {
		f := reader("t", func(context.Context, json.RawMessage) (*lathe.Output, error) {
			return &lathe.Output{IsError: isError, Code: lathe.CodeUnavailable, Data: json.RawMessage(`{"why":"down"}`)}, nil
		})
		f.spec.OutputSchema = json.RawMessage(`{"required":["n"]}`)
		if res, _, _ := one(t, open(t, nil, f), call("t", "")); res.Code != want {
			t.Errorf("is error %v: code %q, want %q", isError, res.Code, want)
		}
	}
}

// An allowlist of fields holds for failures too.
func TestBlobsOfAnErrorAreRedacted(t *testing.T) {
	t.Parallel()
	for _, data := range []string{"", `{"why":"x"}`, `{"other":1}`} {
		f := reader("t", func(context.Context, json.RawMessage) (*lathe.Output, error) {
			return &lathe.Output{IsError: true, Data: json.RawMessage(data), Blobs: []lathe.Blob{{Data: []byte("secret")}}}, nil
		})
		f.spec.Allowlist = []string{"why"}
		if res, _, _ := one(t, open(t, nil, f), call("t", "")); len(res.Blobs) != 0 || res.Code != lathe.CodeExecutionFailed {
			t.Errorf("data %q: %d blobs, code %q, want none and execution_failed", data, len(res.Blobs), res.Code)
		}
	}
}

// An output of which an allowlist of fields shows nothing fails closed, also when what it held are
// blobs alone.
func TestBlobsAloneUnderAnAllowlistOfFields(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		data, show string
		want       lathe.Code
		blobs      int
		content    string
	}{
		{"", "a", lathe.CodeRedactionFailed, 0, ""},
		{"null", "a", lathe.CodeRedactionFailed, 0, ""},
		{" { } ", "a", lathe.CodeRedactionFailed, 0, ""},
		{"[]", "a", lathe.CodeRedactionFailed, 0, ""},
		{`{"b":1}`, "a", lathe.CodeRedactionFailed, 0, ""},
		{`{"a":null}`, "a", "", 0, `{"a":null}`},
		{"", "*", "", 1, "null"},
	} {
		f := reader("t", func(context.Context, json.RawMessage) (*lathe.Output, error) {
			return &lathe.Output{Data: json.RawMessage(tt.data), Blobs: []lathe.Blob{{Data: []byte("secret")}}}, nil
		})
		f.spec.Allowlist = []string{tt.show}
		res, _, _ := one(t, open(t, nil, f), call("t", ""))
		if res.Code != tt.want || len(res.Blobs) != tt.blobs || tt.want == "" && res.Content != tt.content {
			t.Errorf("data %q, allowlist %s: code %q, %d blobs, content %s", tt.data, tt.show, res.Code, len(res.Blobs), res.Content)
		}
	}
}

func TestBlobs(t *testing.T) {
	t.Parallel()
	with := func(n int) func(context.Context, json.RawMessage) (*lathe.Output, error) {
		return func(context.Context, json.RawMessage) (*lathe.Output, error) {
			return &lathe.Output{Data: json.RawMessage(`{"a":1}`), Blobs: []lathe.Blob{{MediaType: "image/png", Data: make([]byte, n)}}}, nil
		}
	}
	named := reader("named", with(10))
	named.spec.Allowlist = []string{"a"}
	w := open(t, nil, reader("all", with(10)), reader("huge", with(8<<20+1)), named)
	if res, _, _ := one(t, w, call("all", "")); len(res.Blobs) != 1 {
		t.Errorf("%d blobs, want 1", len(res.Blobs))
	}
	if res, _, _ := one(t, w, call("named", "")); len(res.Blobs) != 0 || res.Content != `{"a":1}` {
		t.Errorf("an allowlist of fields let %d blobs pass", len(res.Blobs))
	}
	if res, _, _ := one(t, w, call("huge", "")); res.Code != lathe.CodeOutputTooLarge || len(res.Blobs) != 0 {
		t.Errorf("code %q", res.Code)
	}
}

// Many runs on one runner at once.
func TestRunnerIsShared(t *testing.T) {
	t.Parallel()
	f := reader("t", echo)
	f.spec.Concurrency, f.spec.CacheTTL = 3, time.Hour
	r := newRunner(t, &tool.Options{Policy: policy.AllowAll(), Limits: lathe.Limits{MaxRepeatedCalls: 100},
		NewID: func(p string) string { return p + "x" }}, f)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			w := r.Begin(&lathe.RunInfo{RunID: fmt.Sprint(g)}, nil)
			for i := range 20 {
				args := fmt.Sprintf(`{"i":%d}`, i%7)
				out := w.Execute(t.Context(), i, []tool.Call{call("t", args)}, func(event.Data) {})
				if res := out.Messages[0].Parts[0].(lathe.ToolResult); out.Reason == "" && res.Content != args {
					t.Errorf("answer %s, want %s", res.Content, args)
				}
			}
		})
	}
	wg.Wait()
}
