package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

// flaky fails with err until it is nil.
func flaky(name, backend string, err *error, calls *int) *fake {
	f := reader(name, func(context.Context, json.RawMessage) (*lathe.Output, error) {
		*calls++
		if *err != nil {
			return nil, *err
		}
		return &lathe.Output{Data: json.RawMessage(`1`)}, nil
	})
	f.spec.Backend = backend
	return f
}

// Closed, open after so many failures in a row, one probe, closed again. Other backends go on.
func TestT35_CircuitOfABackend(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var failure, none error = &lathe.Error{Code: lathe.CodeUnavailable}, nil
		calls, others := 0, 0
		w := open(t, &tool.Options{Policy: policy.AllowAll(), Circuit: tool.Circuit{Failures: 3, OpenFor: 10 * time.Second}, Limits: lathe.Limits{MaxRepeatedCalls: 100}},
			flaky("a", "down", &failure, &calls), flaky("b", "down", &failure, &calls), flaky("c", "up", &none, &others))
		want := func(name string, code lathe.Code, ran int) {
			t.Helper()
			before := calls + others
			res, rec, _ := one(t, w, call(name, `{}`))
			if res.Code != code || calls+others-before != ran {
				t.Errorf("%s: got %q and %d calls, want %q and %d", name, res.Code, calls+others-before, code, ran)
			}
			if code == lathe.CodeUnavailable && ran == 0 && find[*event.ToolCallResult](t, rec).Limit != "circuit" {
				t.Errorf("the result does not name the circuit")
			}
		}
		want("a", lathe.CodeUnavailable, 1)
		want("b", lathe.CodeUnavailable, 1)
		failure = nil
		want("a", "", 1) // a success starts the count again
		failure = errBoom
		for range 3 {
			want("a", lathe.CodeExecutionFailed, 1)
		}
		want("b", lathe.CodeUnavailable, 0)
		want("c", "", 1)
		time.Sleep(10*time.Second - 1)
		want("a", lathe.CodeUnavailable, 0)
		time.Sleep(time.Nanosecond)
		want("a", lathe.CodeExecutionFailed, 1) // the probe
		want("a", lathe.CodeUnavailable, 0)
		time.Sleep(10 * time.Second)
		failure = nil
		want("b", "", 1)
		failure = tool.Fail(lathe.CodeExecutionFailed, "no such city")
		for range 5 {
			want("a", lathe.CodeExecutionFailed, 1) // the backend is well: it says what is wrong
		}
	})
}

// Only one call probes at a time.
func TestT35_OneProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		down, hold := true, make(chan struct{})
		calls := 0
		slow := reader("a", func(context.Context, json.RawMessage) (*lathe.Output, error) {
			calls++
			if down {
				return nil, errBoom
			}
			<-hold
			return &lathe.Output{}, nil
		})
		slow.spec.Backend = "x"
		r := newRunner(t, &tool.Options{Policy: policy.AllowAll(), Circuit: tool.Circuit{Failures: 1, OpenFor: time.Second}}, slow)
		begin := func() *tool.Work { return r.Begin(&lathe.RunInfo{}, nil) }
		one(t, begin(), call("a", `{}`))
		down = false
		time.Sleep(time.Second)
		done := make(chan lathe.ToolResult)
		go func() {
			res, _, _ := one(t, begin(), call("a", `{}`))
			done <- res
		}()
		synctest.Wait()
		if res, _, _ := one(t, begin(), call("a", `{}`)); res.Code != lathe.CodeUnavailable {
			t.Errorf("a second probe: got %q", res.Code)
		}
		close(hold)
		if res := <-done; res.IsError {
			t.Errorf("the probe: got %s", res.Content)
		}
		if res, _, _ := one(t, begin(), call("a", `{}`)); res.IsError || calls != 3 {
			t.Errorf("after the probe: got %s and %d calls", res.Content, calls)
		}
	})
}

func TestRetries(t *testing.T) {
	t.Parallel()
	unavailable := &lathe.Error{Code: lathe.CodeUnavailable}
	for _, tt := range []struct {
		name     string
		effect   lathe.Effect
		errs     []error // of the attempts; nil is a success
		retry    tool.Retry
		code     lathe.Code
		attempts int
	}{
		{"a read is tried again", lathe.ReadOnly, []error{unavailable, unavailable, nil}, tool.Retry{Attempts: 3}, "", 3},
		{"an idempotent call, too", lathe.Idempotent, []error{unavailable, nil}, tool.Retry{Attempts: 3}, "", 2},
		{"a write is not", lathe.Writes, []error{unavailable, nil}, tool.Retry{Attempts: 3}, lathe.CodeUnavailable, 1},
		{"undeclared counts as a write", lathe.EffectUndeclared, []error{unavailable, nil}, tool.Retry{Attempts: 3}, lathe.CodeUnavailable, 1},
		{"bounded", lathe.ReadOnly, []error{unavailable, unavailable, unavailable}, tool.Retry{Attempts: 2}, lathe.CodeUnavailable, 2},
		{"off", lathe.ReadOnly, []error{unavailable, nil}, tool.Retry{}, lathe.CodeUnavailable, 1},
		{"other failures are not", lathe.ReadOnly, []error{errBoom, nil}, tool.Retry{Attempts: 3}, lathe.CodeExecutionFailed, 1},
		{"not beyond the deadline", lathe.ReadOnly, []error{unavailable, nil}, tool.Retry{Attempts: 3, Backoff: time.Hour, MaxBackoff: time.Hour}, lathe.CodeUnavailable, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := 0
				keys := map[string]bool{}
				f := reader("a", func(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
					keys[lathe.CallMetaFrom(ctx).IdempotencyKey] = true
					n++
					return &lathe.Output{Data: json.RawMessage(`1`)}, tt.errs[n-1]
				})
				f.spec.Effect = tt.effect
				journaled := 0
				began := time.Now()
				w := open(t, &tool.Options{Policy: policy.AllowAll(), Retry: tt.retry, Journal: func(context.Context, *lathe.CallInfo, lathe.Verdict) error { journaled++; return nil }}, f)
				res, rec, _ := one(t, w, call("a", `{}`))
				if res.Code != tt.code || n != tt.attempts || len(keys) != 1 || journaled != 1 {
					t.Errorf("got %q after %d attempts with %d keys, %d intents", res.Code, n, len(keys), journaled)
				}
				if got := find[*event.ToolCallExecuted](t, rec).Attempts; got != tt.attempts {
					t.Errorf("the event says %d attempts, want %d", got, tt.attempts)
				}
				lowest, highest := time.Duration(0), time.Duration(0)
				for i := range tt.attempts - 1 {
					lowest += 100 * time.Millisecond << i
					highest += 200 * time.Millisecond << i
				}
				if took := time.Since(began); took < lowest || took > highest {
					t.Errorf("took %v, want %v to %v", took, lowest, highest)
				}
			})
		})
	}
}

// An output that says that it is unavailable is tried again; a run that is cancelled does not wait.
func TestRetryOfAnErrorOutput(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := 0
		f := reader("a", func(context.Context, json.RawMessage) (*lathe.Output, error) {
			n++
			return &lathe.Output{Data: json.RawMessage(`"busy"`), IsError: n < 3, Code: lathe.CodeUnavailable}, nil
		})
		o := &tool.Options{Policy: policy.AllowAll(), Retry: tool.Retry{Attempts: 5}}
		if res, _, _ := one(t, open(t, o, f), call("a", `{}`)); res.IsError || n != 3 {
			t.Errorf("got %s after %d", res.Content, n)
		}
		n = 0
		ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("enough"))
		defer cancel()
		w := open(t, o, f)
		out := w.Execute(ctx, 1, []tool.Call{call("a", `{}`)}, func(event.Data) {})
		if n != 1 || result(t, out.Messages[0]).Code != lathe.CodeUnavailable {
			t.Errorf("got %d attempts and %s", n, result(t, out.Messages[0]).Content)
		}
	})
}

// The result of a call that was tried again has the cause and the error of the last attempt only, but the usage of all runs that it started.
func TestRetriesDropTheCauseOfEarlierAttempts(t *testing.T) {
	t.Parallel()
	unavailable := &lathe.Error{Code: lathe.CodeUnavailable}
	used := func(id string, tokens int64) *lathe.Output {
		return &lathe.Output{Data: json.RawMessage(`1`), Run: &lathe.ChildRun{RunID: id, Usage: lathe.Usage{InputTokens: tokens}, Cost: float64(tokens), Tools: []string{"t" + id}}}
	}
	for _, tt := range []struct {
		name   string
		second func(release <-chan struct{}) (*lathe.Output, error)
		want   lathe.Code
		err    error
		child  string
		tokens int64
	}{
		{"an error without a cause", func(<-chan struct{}) (*lathe.Output, error) { return nil, errBoom }, lathe.CodeExecutionFailed, errBoom, "1", 3},
		{"a second run", func(<-chan struct{}) (*lathe.Output, error) { return used("2", 4), errBoom }, lathe.CodeExecutionFailed, errBoom, "2", 7},
		{"a tool that does not return", func(release <-chan struct{}) (*lathe.Output, error) {
			<-release
			return nil, errBoom
		}, lathe.CodeTimeout, nil, "1", 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var n atomic.Int64
				release := make(chan struct{})
				defer close(release)
				f := reader("a", func(context.Context, json.RawMessage) (*lathe.Output, error) {
					if n.Add(1)%2 == 1 {
						return used("1", 3), &tool.CauseError{Cause: "the first attempt", Err: unavailable}
					}
					return tt.second(release)
				})
				r := newRunner(t, &tool.Options{Policy: policy.AllowAll(), Retry: tool.Retry{Attempts: 2}}, f)
				res, rec, out := one(t, r.Begin(&lathe.RunInfo{RunID: "run_1"}, nil), call("a", `{}`))
				if cause := find[*event.ToolCallResult](t, rec).Cause; n.Load() != 2 || res.Code != tt.want || cause != "" {
					t.Errorf("%d attempts end with %s and the cause %q", n.Load(), res.Code, cause)
				}
				ex := find[*event.ToolCallExecuted](t, rec)
				if ex.ChildRunID != tt.child || ex.ChildUsage.InputTokens != tt.tokens || out.ChildUsage.InputTokens != tt.tokens || out.ChildCost != float64(tt.tokens) {
					t.Errorf("the usage is that of another run: %+v, %+v", ex, out)
				}
				_, err := r.Call(t.Context(), "a", nil)
				if failed := (*tool.CallError)(nil); !errors.As(err, &failed) || failed.Err != tt.err || failed.Cause != "" {
					t.Errorf("Call: %+v", failed)
				}
			})
		})
	}
}
