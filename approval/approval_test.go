package approval_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/tool"
)

func request(run, session, name, args string) *lathe.ApprovalRequest {
	return &lathe.ApprovalRequest{
		CallInfo: lathe.CallInfo{Run: &lathe.RunInfo{RunID: run, SessionID: session, Principal: "ann"}, Turn: 1, Call: &lathe.ToolCall{ID: "c1", Name: name},
			Tool: &lathe.ToolSpec{Name: name, Origin: "mcp:files", Effect: lathe.Writes, Schema: json.RawMessage(`{"type":"object"}`)}, Args: json.RawMessage(args)},
		Verdict:   lathe.Verdict{Decision: lathe.Ask, Rule: "effect.writes"},
		Digest:    strings.Repeat("0", 40) + run + name + args,
		ExpiresAt: time.Now().Add(time.Hour),
	}
}

// At the bound, an approval that is there already may be given again.
func TestGrantsAreBounded(t *testing.T) {
	t.Parallel()
	var g approval.Grants
	for i := range 10_000 {
		if err := g.Add(request("r1", "s1", "write", fmt.Sprintf(`{"a":%d}`, i)), approval.ScopeCall, "ann"); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.Add(request("r1", "s1", "write", `{"a":7}`), approval.ScopeCall, "ann"); err != nil {
		t.Error(err)
	}
	if err := g.Add(request("r1", "s1", "write", `{"a":10000}`), approval.ScopeCall, "ann"); err == nil {
		t.Error("a grant too many was added")
	}
}

func TestGrantsKeepTheirScope(t *testing.T) {
	t.Parallel()
	base := request("r1", "s1", "write", `{"a":1,"b":2}`)
	changed := request("r1", "s1", "write", `{"a":1,"b":2}`)
	changed.Tool.Schema = json.RawMessage(`{"type":"object","properties":{}}`)
	other := request("r1", "s1", "write", `{"a":1,"b":2}`)
	other.Run.Principal = "eve"
	calls := []*lathe.ApprovalRequest{
		base, request("r1", "s1", "write", `{ "b":2, "a":1.0 }`), request("r1", "s1", "write", `{"a":2}`), request("r1", "s1", "other", `{"a":1,"b":2}`),
		request("r2", "s1", "write", `{"a":1,"b":2}`), request("r2", "s2", "write", `{"a":1,"b":2}`), changed, other,
	}
	for scope, want := range map[approval.Scope]string{
		approval.ScopeCall:    "yynnnnnn",
		approval.ScopeRun:     "yyynnnnn",
		approval.ScopeSession: "yyynynnn",
	} {
		var g approval.Grants
		if err := g.Add(base, scope, "ann"); err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, c := range calls {
			if _, ok := g.Allows(c); ok {
				got += "y"
			} else {
				got += "n"
			}
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", scope, got, want)
		}
		g.EndRun("r1")
		if _, ok := g.Allows(base); ok != (scope == approval.ScopeSession) {
			t.Errorf("%s after the run: allowed %v", scope, ok)
		}
		g.EndSession("s1")
		if _, ok := g.Allows(base); ok {
			t.Errorf("%s after the session: allowed", scope)
		}
	}
	var g approval.Grants
	if g.Add(request("r", "", "x", `{}`), approval.ScopeSession, "ann") == nil || g.Add(base, "forever", "ann") == nil || g.Add(base, approval.ScopeOnce, "ann") == nil {
		t.Error("a scope that there is not was granted")
	}
}

// Who allowed a tool before the run had read what strangers wrote has not allowed it after.
func TestT1_T23_GrantsAnswerTheRuleThatAsked(t *testing.T) {
	t.Parallel()
	var g approval.Grants
	before := request("r1", "s1", "write", `{"a":1}`)
	before.Verdict = policy.All(policy.Default(), policy.Taint{Decision: lathe.Ask}).Call(&before.CallInfo)
	after := request("r1", "s1", "write", `{"a":1}`)
	after.Used = []lathe.ToolUse{{Name: "fetch", Spec: &lathe.ToolSpec{Name: "fetch", Labels: []string{lathe.LabelReadsUntrusted}}, Calls: 1}}
	after.Verdict = policy.All(policy.Default(), policy.Taint{Decision: lathe.Ask}).Call(&after.CallInfo)
	if before.Verdict.Rule != "effect.writes" || after.Verdict.Rule != policy.RuleTaint {
		t.Fatalf("got %+v and %+v", before.Verdict, after.Verdict)
	}
	for _, scope := range []approval.Scope{approval.ScopeCall, approval.ScopeRun, approval.ScopeSession} {
		if err := g.Add(before, scope, "ann"); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := g.Allows(before); !ok {
		t.Error("the call that was granted is asked for again")
	}
	if _, ok := g.Allows(after); ok {
		t.Error("a grant of before covers what the taint asks about")
	}
}

func code(err error) lathe.Code { return lathe.CodeOf(err) }

// An answer is bound to its digest, is given once in effect, and is used once.
func TestT24_AnswersAreUsedOnce(t *testing.T) {
	t.Parallel()
	d := approval.NewQueue(nil)
	req := request("r", "", "write", `{"a":1}`)
	yes := approval.Answer{Verb: approval.Approve, By: "ann"}
	if err := d.Answer(t.Context(), req.Digest, yes); code(err) != lathe.CodeNotFound {
		t.Errorf("an answer without a request: got %v", err)
	}
	for range 2 {
		if _, err := d.Approve(t.Context(), req); !errors.Is(err, lathe.ErrPending) {
			t.Fatalf("got %v, want pending", err)
		}
	}
	if p := d.Pending(""); len(p) != 1 || p[0].Digest != req.Digest || p[0].Tool != "write" || len(d.Pending("other")) != 0 {
		t.Errorf("pending %+v", p)
	}
	changed := []byte(req.Digest)
	changed[0]++
	if err := d.Answer(t.Context(), string(changed), yes); code(err) != lathe.CodeNotFound {
		t.Errorf("one byte changed: got %v", err)
	}
	for range 2 {
		if err := d.Answer(t.Context(), req.Digest, yes); err != nil {
			t.Errorf("the same answer: got %v", err)
		}
	}
	if err := d.Answer(t.Context(), req.Digest, approval.Answer{Verb: approval.Deny, By: "ann"}); code(err) != lathe.CodeConflict {
		t.Errorf("another answer: got %v", err)
	}
	if len(d.Pending("")) != 0 {
		t.Error("an answered request is pending")
	}
	a, err := d.Approve(t.Context(), req)
	if err != nil || !a.Approved || a.By != "ann" || a.ReasonCode != "approved_by_user" {
		t.Errorf("got %+v, %v", a, err)
	}
	a, err = d.Approve(t.Context(), req)
	if err != nil || a.Approved || a.ReasonCode != "replayed" {
		t.Errorf("a replay: got %+v, %v", a, err)
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	t.Parallel()
	d := approval.NewQueue(nil)
	req := request("r", "", "write", `{}`)
	if _, err := d.Approve(t.Context(), req); !errors.Is(err, lathe.ErrPending) {
		t.Fatal(err)
	}
	for _, a := range []approval.Answer{
		{}, {Verb: "yes"}, {Verb: approval.Approve, Arguments: json.RawMessage(`{}`)}, {Verb: approval.Edit}, {Verb: approval.Edit, Arguments: json.RawMessage(`[]`)},
		{Verb: approval.Edit, Arguments: json.RawMessage(`{"a":1,"a":2}`)}, {Verb: approval.AnswerIt}, {Verb: approval.AnswerIt, Result: json.RawMessage(`x`)},
		{Verb: approval.Deny, Scope: approval.ScopeRun}, {Verb: approval.Approve, Scope: "forever"}, {Verb: approval.Approve, Scope: approval.ScopeSession},
		{Verb: approval.Deny, ReasonCode: "Because I say so"}, {Verb: approval.Deny, By: strings.Repeat("x", 201)},
	} {
		if err := d.Answer(t.Context(), req.Digest, a); code(err) != lathe.CodeInvalidRequest {
			t.Errorf("%+v: got %v", a, err)
		}
	}
	if len(d.Pending("r")) != 1 {
		t.Error("the request is gone")
	}
}

func TestRequestsExpire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := approval.NewQueue(&approval.QueueOptions{MaxPending: 2})
		a, b := request("r", "", "a", `{}`), request("r", "", "b", `{}`)
		b.ExpiresAt = b.ExpiresAt.Add(time.Minute)
		for _, req := range []*lathe.ApprovalRequest{b, a} {
			if _, err := d.Approve(t.Context(), req); !errors.Is(err, lathe.ErrPending) {
				t.Fatal(err)
			}
		}
		if p := d.Pending(""); len(p) != 2 || p[0].Tool != "a" {
			t.Errorf("got %+v", p)
		}
		if _, err := d.Approve(t.Context(), request("r", "", "c", `{}`)); err == nil || errors.Is(err, lathe.ErrPending) {
			t.Errorf("beyond the limit: got %v", err)
		}
		time.Sleep(time.Hour)
		if err := d.Answer(t.Context(), a.Digest, approval.Answer{Verb: approval.Approve}); code(err) != lathe.CodeApprovalExpired {
			t.Errorf("got %v", err)
		}
		if p := d.Pending(""); len(p) != 1 || p[0].Tool != "b" {
			t.Errorf("got %+v", p)
		}
		d.Withdraw("r")
		if err := d.Answer(t.Context(), b.Digest, approval.Answer{Verb: approval.Approve}); code(err) != lathe.CodeNotFound {
			t.Errorf("after Withdraw: got %v", err)
		}
	})
}

// The queue with a runner: two calls are parked, answered in the wrong order, and each runs once.
func TestQueueKeepsTheCallsOfARun(t *testing.T) {
	t.Parallel()
	ran := ""
	mk := func(name string) lathe.Tool { return &written{name: name, ran: &ran} }
	set, err := tool.NewSet(mk("first"), mk("second"), mk("third"))
	if err != nil {
		t.Fatal(err)
	}
	d := approval.NewQueue(nil)
	runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.Default(), Approver: d})
	if err != nil {
		t.Fatal(err)
	}
	w := runner.Begin(&lathe.RunInfo{RunID: "r"}, nil)
	var resolved []string
	emit := func(e event.Data) {
		if r, ok := e.(*event.ApprovalResolved); ok {
			resolved = append(resolved, r.Tool+" "+r.Decision)
		}
	}
	var calls []tool.Call
	for _, name := range []string{"first", "second", "third"} {
		calls = append(calls, tool.Call{ToolCall: lathe.ToolCall{ID: name, Name: name, Arguments: `{}`}})
	}
	out := w.Execute(t.Context(), 1, calls, emit)
	pending := d.Pending("r")
	if !out.Parked || len(pending) != 3 {
		t.Fatalf("parked %v, %d pending", out.Parked, len(pending))
	}
	digest := map[string]string{}
	for _, p := range pending {
		digest[p.Tool] = p.Digest
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(d.Answer(t.Context(), digest["second"], approval.Answer{Verb: approval.Approve, By: "ann"}))
	must(d.Answer(t.Context(), digest["third"], approval.Answer{Verb: approval.AnswerIt, By: "ann", Result: approval.Text("done by hand")}))
	out = w.Execute(t.Context(), 1, out.Waiting, emit)
	if !out.Parked || ran != "" {
		t.Fatalf("ran %q before the first was answered", ran)
	}
	must(d.Answer(t.Context(), digest["first"], approval.Answer{Verb: approval.Edit, By: "ann", Arguments: json.RawMessage(`{"x":1}`)}))
	out = w.Execute(t.Context(), 1, out.Waiting, emit)
	if out.Parked || ran != `first{"x":1} second{} ` || strings.Join(resolved, ",") != "first edited,second approved,third answered" {
		t.Errorf("parked %v, ran %q, resolved %v", out.Parked, ran, resolved)
	}
	if got := out.Messages[2].Parts[0].(lathe.ToolResult).Content; got != "done by hand" {
		t.Errorf("got %q", got)
	}
}

func TestT23_DetailsComeFirstAndAreVisible(t *testing.T) {
	t.Parallel()
	req := request("r", "", "write", `{"path":"\u202etxt.exe\u200b","note":"line\n  origin      builtin","\u0007k":1,"zz":"`+strings.Repeat("é", 300)+`"}`)
	details := approval.Details(req, req.ExpiresAt.Add(-time.Hour))
	var b strings.Builder
	for _, f := range details {
		fmt.Fprintf(&b, "%s=%s %v\n", f.Name, f.Value, f.Model)
	}
	want := "tool=write false\norigin=mcp:files false\neffect=writes false\nwhy asked=rule effect.writes false\ndigest=" + req.Digest + " false\nexpires in=1h0m0s false\n" +
		"\\u0007k=1 true\nnote=\"line\\n  origin      builtin\" true\npath=\"\\u202etxt.exe\\u200b\" true\nzz=\"" + strings.Repeat("é", 199) + " … 203 bytes more true\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	many := `{`
	for i := range 60 {
		many += fmt.Sprintf(`"k%02d":1,`, i)
	}
	details = approval.Details(request("r", "", "w", strings.TrimSuffix(many, ",")+`}`), time.Now())
	if last := details[len(details)-1]; last.Value != "20 more arguments" || len(details) != 6+40+1 {
		t.Errorf("got %d details, the last %+v", len(details), last)
	}
}

func TestVisible(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain é 日本": "plain é 日本", "a\u202eb": `a\u202eb`, "a\U000E0041b": `a\U000e0041b`, "a\x1b[31m": `a\u001b[31m`, "a\xffb": "a\uFFFDb",
		"a\u3164b": `a\u3164b`, "a\nb": `a\u000ab`, "a\uFE0Fb": `a\ufe0fb`, "a\u00adb": `a\u00adb`, "a b": "a b",
	} {
		if got := approval.Visible(in); got != want {
			t.Errorf("Visible(%+q) = %q, want %q", in, got, want)
		}
	}
}

// A run asks, a person answers, the run goes on.
func ExampleQueue() {
	d := approval.NewQueue(nil)
	req := &lathe.ApprovalRequest{CallInfo: lathe.CallInfo{Tool: &lathe.ToolSpec{Name: "send_mail"}, Args: json.RawMessage(`{"to":"ann"}`)},
		Digest: "d1", ExpiresAt: time.Now().Add(time.Hour)}
	_, err := d.Approve(context.Background(), req)
	fmt.Println(err)
	for _, r := range d.Pending("") {
		fmt.Println(r.Tool, string(r.Arguments))
		fmt.Println(d.Answer(context.Background(), r.Digest, approval.Answer{Verb: approval.Approve, By: "bob"}))
	}
	a, _ := d.Approve(context.Background(), req)
	fmt.Println(a.Approved, a.By, a.ReasonCode)
	// Output:
	// approval pending
	// send_mail {"to":"ann"}
	// <nil>
	// true bob approved_by_user
}

// written is a tool that writes down its calls.
type written struct {
	name string
	ran  *string
}

func (w *written) Spec() *lathe.ToolSpec {
	return &lathe.ToolSpec{Name: w.name, Schema: json.RawMessage(`{"type":"object"}`), Effect: lathe.Writes, Allowlist: []string{"*"}}
}

func (w *written) Call(_ context.Context, args json.RawMessage) (*lathe.Output, error) {
	*w.ran += w.name + string(args) + " "
	return &lathe.Output{Data: json.RawMessage(`1`)}, nil
}

// What the log of a run says that an earlier process asked can be answered before it is asked again.
func TestQueueAwaitsWhatAnotherAsked(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	d := approval.NewQueue(&approval.QueueOptions{Now: func() time.Time { return now }, MaxPending: 2})
	asked := request("r1", "s1", "write", `{"a":1}`)
	asked.ExpiresAt = now.Add(time.Hour)
	seen := approval.Request{Digest: asked.Digest, RunID: asked.Run.RunID, ExpiresAt: asked.ExpiresAt}
	for range 2 {
		if !d.Await(seen) {
			t.Fatal("the queue does not await it")
		}
	}
	if err := d.Answer(t.Context(), seen.Digest, approval.Answer{Verb: approval.Approve, Scope: "ever"}); lathe.CodeOf(err) != lathe.CodeInvalidRequest {
		t.Errorf("a scope that there is not: %v", err)
	}
	if err := d.Answer(t.Context(), seen.Digest, approval.Answer{Verb: approval.Approve, By: "ann", Scope: approval.ScopeRun}); err != nil {
		t.Fatal(err)
	}
	if d.Await(seen) {
		t.Error("it waits although it is answered")
	}
	for i, want := range []string{"ann", "ann"} { // the second by what was granted
		if a, err := d.Approve(t.Context(), asked); err != nil || !a.Approved || a.By != want {
			t.Errorf("%d: %+v %v", i, a, err)
		}
	}
	late := approval.Request{Digest: "d2", RunID: "run_2", ExpiresAt: now.Add(time.Minute)}
	gone := approval.Request{Digest: "d3", RunID: "run_3", ExpiresAt: now.Add(time.Minute)}
	if !d.Await(late) || d.Await(gone) {
		t.Error("the bound of the queue does not hold")
	}
	if err := d.Answer(t.Context(), "d2", approval.Answer{Verb: approval.Deny}); err != nil {
		t.Error(err)
	}
	if got := d.Expired(); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	now = now.Add(time.Minute)
	if got := d.Expired(); len(got) != 1 || got[0].RunID != "run_2" || len(d.Expired()) != 0 {
		t.Errorf("%+v", got)
	}
}

// What people said is in the store: each process takes it, one answer wins, and one that was given in time
// counts later, too.
func TestF12_AnswersAreStored(t *testing.T) {
	t.Parallel()
	kept := store.NewMemory(nil)
	if _, err := kept.Append(t.Context(), "run_1", 0, event.Event{ID: 1, RunID: "run_1", Data: &event.RunStarted{}}); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	clock := func() time.Time { return now }
	first := approval.NewQueue(&approval.QueueOptions{Signals: kept, Now: clock})
	second := approval.NewQueue(&approval.QueueOptions{Signals: kept, Now: clock})
	ask := func(call string) *lathe.ApprovalRequest {
		return &lathe.ApprovalRequest{CallInfo: lathe.CallInfo{Run: &lathe.RunInfo{RunID: "run_1"}, Call: &lathe.ToolCall{ID: call}, Tool: &lathe.ToolSpec{Name: "x"},
			Args: json.RawMessage(`{"a":1}`)}, Digest: "digest of " + call, ExpiresAt: now.Add(time.Hour)}
	}
	req := ask("c1")
	if _, err := first.Approve(t.Context(), req); !errors.Is(err, lathe.ErrPending) {
		t.Fatal(err)
	}
	if !second.Await(first.Pending("")[0]) {
		t.Fatal("the second queue does not wait")
	}
	edit := approval.Answer{Verb: approval.Edit, By: "ann", Arguments: json.RawMessage(`{"a": "<&>"}`)}
	for range 2 { // the same answer may be given again, at either queue
		for _, d := range []*approval.Queue{second, first} {
			if err := d.Answer(t.Context(), req.Digest, edit); err != nil {
				t.Fatal(err)
			}
		}
	}
	third := approval.NewQueue(&approval.QueueOptions{Signals: kept, Now: clock})
	third.Await(approval.Request{Digest: req.Digest, RunID: "run_1", ToolCallID: "c1", ExpiresAt: req.ExpiresAt})
	if err := third.Answer(t.Context(), req.Digest, approval.Answer{Verb: approval.Deny, By: "bob"}); lathe.CodeOf(err) != lathe.CodeConflict {
		t.Errorf("a second decision: %v", err)
	}
	other := *req
	other.Digest = "that of other arguments"
	if _, err := third.Approve(t.Context(), &other); !errors.Is(err, lathe.ErrPending) {
		t.Errorf("the answer was taken for something else: %v", err)
	}
	now = now.Add(2 * time.Hour)
	for _, d := range []*approval.Queue{first, second, third} {
		if a, ok := d.StoredApproval(t.Context(), req); !ok || !a.Approved || a.By != "ann" || string(a.Arguments) != `{"a": "<&>"}` {
			t.Errorf("%+v, %v", a, ok)
		}
	}
	if _, ok := first.StoredApproval(t.Context(), ask("c2")); ok {
		t.Error("no approver has answered that")
	}
}

// meetingSignals is a store in which the first two calls of PutSignal wait for each other.
type meetingSignals struct {
	store.SignalStore
	both sync.WaitGroup
}

func (m *meetingSignals) PutSignal(ctx context.Context, s store.Signal) error {
	m.both.Done()
	m.both.Wait()
	return m.SignalStore.PutSignal(ctx, s)
}

// TestOnAnswerIsCalledOnce gives the same answer twice at the same time: both calls succeed, and OnAnswer is called once.
func TestOnAnswerIsCalledOnce(t *testing.T) {
	t.Parallel()
	memory := store.NewMemory(nil)
	if _, err := memory.Append(t.Context(), "run_1", 0, event.Event{ID: 1, RunID: "run_1", Data: &event.RunStarted{}}); err != nil {
		t.Fatal(err)
	}
	signals := &meetingSignals{SignalStore: memory}
	signals.both.Add(2)
	var calls atomic.Int32
	q := approval.NewQueue(&approval.QueueOptions{Signals: signals, OnAnswer: func(approval.Request, approval.Answer) { calls.Add(1) }})
	q.Await(approval.Request{Digest: "d", RunID: "run_1", ToolCallID: "c1", ExpiresAt: time.Now().Add(time.Hour)})
	var done sync.WaitGroup
	for range 2 {
		done.Go(func() {
			if err := q.Answer(t.Context(), "d", approval.Answer{Verb: approval.Approve, By: "ann"}); err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	if n := calls.Load(); n != 1 {
		t.Errorf("OnAnswer was called %d times", n)
	}
}
