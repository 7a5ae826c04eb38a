package temporal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	sdk "go.temporal.io/sdk/temporal"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
)

// Each model call and each tool call is an activity, and the log is that of a run which was executed in one go.
func TestEachStepIsAnActivity(t *testing.T) {
	t.Parallel()
	messages := script{calls("a look", "b save"), calls("c save"), lathe.Assistant("done")}
	w := newWorld(t, messages, nil)
	out, err := w.start()
	if err != nil || out.Reason != lathe.ReasonAnswered || out.Status != "completed" || out.RunID != "run_1" {
		t.Fatalf("%+v, %v", out, err)
	}
	w.check()
	if want := []string{"model", "tool", "tool", "model", "tool", "model"}; !slices.Equal(w.steps, want) {
		t.Errorf("activities %q, want %q", w.steps, want)
	}
	if got := w.results(); got != "a ok, b ok, c ok" || total(w.writes) != 2 || total(w.reads) != 1 {
		t.Errorf("results %s, %d writes, %d reads", got, total(w.writes), total(w.reads))
	}
	if out.LastEventID != w.state().LastID || len(w.seen.events) != int(out.LastEventID) || w.seen.deltas == 0 {
		t.Errorf("the log has %d events, %d were published, and %d deltas", out.LastEventID, len(w.seen.events), w.seen.deltas)
	}
	whole := newWorld(t, messages, nil)
	in := &loop.Input{Run: lathe.RunInfo{RunID: "run_1", SessionID: "s"}, Park: true, Messages: []lathe.Message{lathe.User("hi")}}
	l, _ := whole.w.opts.LoopFor("")
	if _, err := whole.w.opts.Engine.Run(t.Context(), l, in, nil); err != nil {
		t.Fatal(err)
	}
	if got, want := kinds(t, w.kept), kinds(t, whole.kept); got != want {
		t.Errorf("the log in steps:\n%s\nin one go:\n%s", got, want)
	}
}

func kinds(t *testing.T, s store.Store) string {
	t.Helper()
	var b strings.Builder
	for e, err := range s.Read(t.Context(), "run_1", 0) {
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString(e.Data.EventType() + "\n")
	}
	return b.String()
}

// Whichever activity is lost, before it began or when it was done, and however often: each call has one result, in order, and a tool
// that writes runs at most once for a call. A call that only reads is made again, with the same key.
func TestLostActivities(t *testing.T) {
	t.Parallel()
	messages := script{calls("a look", "b save", "c save"), calls("d save", "e look"), lathe.Assistant("done")}
	for _, kind := range []fault{before, after} {
		for at := 1; at <= 9; at++ {
			for _, times := range []int{1, 2} {
				w := newWorld(t, messages, func(w *world) {
					w.fail = func(n int, _ string) fault {
						if n >= at && n < at+times {
							return kind
						}
						return none
					}
				})
				out, err := w.start()
				if err != nil || out.Reason != lathe.ReasonAnswered {
					t.Fatalf("fault %d at %d: %+v, %v", kind, at, out, err)
				}
				w.check()
				if got := w.results(); got != "a ok, b ok, c ok, d ok, e ok" {
					t.Errorf("fault %d at %d, %d times: results %s", kind, at, times, got)
				}
				if total(w.writes) != 3 {
					t.Errorf("fault %d at %d: %d writes, want 3: the store had each result", kind, at, total(w.writes))
				}
			}
		}
	}
}

// fragile is a store of which one append fails, before or after it has stored its events.
type fragile struct {
	*store.Memory
	left int
	late bool
}

func (f *fragile) AppendAs(ctx context.Context, c store.Claim, last int64, events ...event.Event) (int64, error) {
	f.left--
	gone := &lathe.Error{Code: lathe.CodeUnavailable, Op: "test", Err: errors.New("the connection broke")}
	if f.left == 0 && !f.late {
		return 0, gone
	}
	n, err := f.Memory.AppendAs(ctx, c, last, events...)
	if f.left == 0 {
		return 0, gone
	}
	return n, err
}

// Wherever the store fails, the run comes to its end; a call that writes and whose result was lost is `interrupted`, and not repeated.
func TestStoreFailsInAStep(t *testing.T) {
	t.Parallel()
	messages := script{calls("a look", "b save"), lathe.Assistant("done")}
	interrupted := 0
	for _, late := range []bool{false, true} {
		for at := 1; ; at++ {
			var f *fragile
			w := newWorld(t, messages, func(w *world) {
				w.store = func(m *store.Memory) store.Store {
					f = &fragile{Memory: m, left: at, late: late}
					return f
				}
			})
			out, err := w.start()
			if err != nil || out.Reason != lathe.ReasonAnswered {
				t.Fatalf("append %d: %+v, %v", at, out, err)
			}
			if f.left > 0 {
				break
			}
			w.check()
			switch got := w.results(); got {
			case "a ok, b ok":
				if total(w.writes) != 1 {
					t.Errorf("append %d: %d writes", at, total(w.writes))
				}
			case "a ok, b interrupted":
				interrupted++
			default:
				t.Errorf("append %d: results %s", at, got)
			}
		}
	}
	if interrupted == 0 {
		t.Error("no failure hit a call that was begun")
	}
}

// An approval is an update: it is rejected for another digest, and its answer is stored before it is accepted as done. Until then the
// workflow waits without an activity.
func TestApprovalIsAnUpdate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script{calls("a pay", "b save"), lathe.Assistant("done")}, nil)
	var steps int
	var digest string
	answer := func(digest string, verb approval.Verb) []any {
		return []any{ApprovalAnswer{CallID: "a", Digest: digest, Answer: approval.Answer{Verb: verb, By: "ann"}}}
	}
	wrong := w.update(time.Minute, UpdateApproval, func() []any { return answer("other", approval.Approve) })
	right := w.update(2*time.Minute, UpdateApproval, func() []any {
		s := w.waiting()
		if s.Status != "parked" || s.Reason != lathe.ReasonAwaitingApproval || len(s.Waiting) != 2 || s.Waiting[0].Digest == "" || total(w.writes) != 0 {
			t.Errorf("the run waits: %+v, %d writes", s, total(w.writes))
		}
		steps, digest = len(w.steps), s.Waiting[0].Digest
		return answer(digest, approval.Approve)
	})
	out, err := w.start()
	if err != nil || out.Reason != lathe.ReasonAnswered {
		t.Fatalf("%+v, %v", out, err)
	}
	w.check()
	if !wrong.rejected || wrong.accepted || !right.accepted || !right.done || right.err != nil {
		t.Errorf("another digest: %+v; the answer: %+v", wrong, right)
	}
	if got := w.results(); got != "a ok, b ok" || total(w.writes) != 2 || steps != 2 {
		t.Errorf("results %s, %d writes, %d activities before the answer", got, total(w.writes), steps)
	}
	// The activity may be repeated after the run has used the answer: its first attempt was lost.
	used := ApprovalAnswer{CallID: "a", Digest: digest, Answer: approval.Answer{Verb: approval.Approve, By: "ann"}}
	deny, none := used, used
	deny.Verb, none.Digest = approval.Deny, "other"
	for i, tt := range []struct {
		answer ApprovalAnswer
		code   lathe.Code
	}{{used, ""}, {deny, lathe.CodeConflict}, {none, lathe.CodeNotFound}} {
		if err := w.w.answer(t.Context(), "run_1", &tt.answer); lathe.CodeOf(err) != tt.code {
			t.Errorf("answer %d again: %v, want %q", i, err, tt.code)
		}
	}
}

// A request for approval expires by a timer of the workflow.
func TestApprovalExpires(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script{calls("a pay"), lathe.Assistant("done")}, nil)
	late := w.update(30*24*time.Hour, UpdateApproval, func() []any { return []any{ApprovalAnswer{CallID: "a"}} })
	out, err := w.start()
	if err != nil || out.Reason != lathe.ReasonAnswered {
		t.Fatalf("%+v, %v", out, err)
	}
	w.check()
	if got := w.results(); got != "a approval_expired" || total(w.writes) != 0 || late.accepted {
		t.Errorf("results %s, %d writes", got, total(w.writes))
	}
}

// The result of a client's tool is an update. The first one counts.
func TestClientResultIsAnUpdate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script{calls("a yours"), lathe.Assistant("done")}, nil)
	result := func(data string) func() []any {
		return func() []any { return []any{ClientResult{CallID: "a", Data: json.RawMessage(data)}} }
	}
	none := w.update(time.Second, UpdateResult, func() []any { return []any{ClientResult{CallID: "z", Data: json.RawMessage(`1`)}} })
	first := w.update(time.Minute, UpdateResult, result(`{"from":"the client"}`))
	out, err := w.start(&lathe.ToolSpec{Name: "yours", Schema: json.RawMessage(`{"type":"object"}`), Owner: lathe.OwnerClient})
	if err != nil || out.Reason != lathe.ReasonAnswered {
		t.Fatalf("%+v, %v", out, err)
	}
	w.check()
	if !none.rejected || !first.done || first.err != nil || w.results() != "a ok" {
		t.Errorf("another call: %+v; the result: %+v; results %s", none, first, w.results())
	}
	if m := w.state().Messages; !strings.Contains(m[2].Parts[0].(lathe.ToolResult).Content, "the client") {
		t.Errorf("the model got %+v", m[2])
	}
}

// A run is cancelled by the update and by the cancellation of its workflow; its calls are answered, and nothing more is done. The update
// may be repeated, as by a client that did not get the first answer.
func TestCancel(t *testing.T) {
	t.Parallel()
	for _, workflow := range []bool{false, true} {
		w := newWorld(t, script{calls("a pay"), lathe.Assistant("done")}, nil)
		var cancels []*update
		if workflow {
			w.env.RegisterDelayedCallback(w.env.CancelWorkflow, time.Minute)
		}
		for i := range 3 {
			cancels = append(cancels, w.updateAs(fmt.Sprint(i), time.Minute, UpdateCancel, func() []any { return nil }))
		}
		out, err := w.start()
		switch {
		case workflow && !sdk.IsCanceledError(err):
			t.Errorf("the workflow was cancelled and ended with %+v, %v", out, err)
		case !workflow && (err != nil || out.Reason != lathe.ReasonCancelled):
			t.Errorf("the run was cancelled and ended with %+v, %v", out, err)
		}
		for i, u := range cancels {
			if u.rejected || !u.done || u.err != nil {
				t.Errorf("cancel %d: %+v", i, u)
			}
		}
		w.check()
		if got := w.results(); got != "a cancelled" || total(w.writes) != 0 || w.state().Finished.Reason != lathe.ReasonCancelled {
			t.Errorf("results %s, %d writes", got, total(w.writes))
		}
	}
}

// The run continues in a new history where the server suggests it, with what it knows.
func TestContinueAsNew(t *testing.T) {
	t.Parallel()
	messages := script{calls("a save"), lathe.Assistant("done")}
	first := newWorld(t, messages, nil)
	first.env.SetContinueAsNewSuggested(true)
	_, err := first.start()
	var again *sdk.ApplicationError
	if err == nil || errors.As(err, &again) || !strings.Contains(err.Error(), "continue as new") || len(first.steps) != 1 {
		t.Fatalf("after %d activities: %v", len(first.steps), err)
	}
	s := first.state()
	second := newWorld(t, messages, func(w *world) { w.kept = first.kept })
	second.execute(&Input{RunID: "run_1", Continued: &Continued{LastID: s.LastID, Next: &next{CallID: "a", Tool: "save", Once: true}, Status: Status{RunID: "run_1", Status: "running"}}})
	if err := second.env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	second.check()
	if log := kinds(t, first.kept); strings.Contains(log, "RunResumed") || second.results() != "a ok" {
		t.Errorf("results %s\n%s", second.results(), log)
	}
}

// A run that is cancelled while an update in progress delays the next history ends in this one.
func TestCancelBeforeContinueAsNew(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"update", "workflow"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, script{calls("a pay"), lathe.Assistant("done")}, nil)
			w.env.OnActivity(inputActivity, mock.Anything, mock.Anything).After(time.Hour).Return(nil)
			slow := w.update(time.Minute, UpdateApproval, func() []any {
				w.env.SetContinueAsNewSuggested(true)
				return []any{ApprovalAnswer{CallID: "a", Digest: w.waiting().Waiting[0].Digest, Answer: approval.Answer{Verb: approval.Approve}}}
			})
			w.env.RegisterDelayedCallback(func() { w.env.SignalWorkflow(SignalWake, nil) }, 2*time.Minute)
			if way == "update" {
				w.update(3*time.Minute, UpdateCancel, func() []any { return nil })
			} else {
				w.env.RegisterDelayedCallback(w.env.CancelWorkflow, 3*time.Minute)
			}
			out, err := w.start()
			var cancelled *sdk.CanceledError
			if way == "update" && (err != nil || out.Reason != lathe.ReasonCancelled) || way == "workflow" && !errors.As(err, &cancelled) {
				t.Fatalf("%+v, %v", out, err)
			}
			if s := w.state(); s.Finished == nil || !slow.done {
				t.Errorf("the run ended: %+v, the update was answered: %t", s.Finished, slow.done)
			}
		})
	}
}

// A worker that has no loop for the target of a run leaves the run to other workers, and no call is repeated or lost by that.
func TestStepWithoutLoopIsRetried(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script{calls("a look", "b save"), lathe.Assistant("done")}, nil)
	loops := w.w.opts.LoopFor
	var asked atomic.Int32
	w.w.opts.LoopFor = func(target string) (*loop.Loop, error) {
		if n := asked.Add(1); n == 2 || n == 4 || n == 6 { // the first asks for the beginning of the run
			return nil, &lathe.Error{Code: lathe.CodeNotFound, Op: "test", Err: lathe.ErrNotFound}
		}
		return loops(target)
	}
	out, err := w.start()
	if err != nil || out.Reason != lathe.ReasonAnswered {
		t.Fatalf("%+v, %v", out, err)
	}
	w.check()
	if got := w.results(); got != "a ok, b ok" || total(w.writes) != 1 {
		t.Errorf("results %s, %d writes", got, total(w.writes))
	}
}

func TestNewWorkflowRefuses(t *testing.T) {
	t.Parallel()
	e, err := engine.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, opts := range map[string]*Options{"nothing": nil, "no loop": {Engine: e, Store: store.NewMemory(nil)}, "no store": {Engine: e}} {
		if w, err := NewWorkflow(nil, opts); w != nil || lathe.CodeOf(err) != lathe.CodeInvalidConfig {
			t.Errorf("%s: %v, %v", name, w, err)
		}
	}
}
