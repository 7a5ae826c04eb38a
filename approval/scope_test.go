package approval_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/digest"
	"github.com/lathe-run/lathe/store"
)

// asks returns a request as the runner makes it.
func asks(run, session, principal, call, tool, schema, rule, args string) *lathe.ApprovalRequest {
	return &lathe.ApprovalRequest{
		CallInfo: lathe.CallInfo{Run: &lathe.RunInfo{RunID: run, SessionID: session, Principal: principal}, Turn: 1, Call: &lathe.ToolCall{ID: call, Name: tool},
			Tool: &lathe.ToolSpec{Name: tool, Effect: lathe.Writes, Schema: json.RawMessage(schema)}, Args: json.RawMessage(args)},
		Verdict: lathe.Verdict{Decision: lathe.Ask, Rule: rule}, ExpiresAt: time.Now().Add(time.Hour),
		Digest: digest.ArgsDigest(run, call, tool, []byte(schema), []byte(args)),
	}
}

// began returns a store that has the runs of these tests.
func began(t *testing.T) *store.Memory {
	t.Helper()
	kept := store.NewMemory(nil)
	for _, r := range [][3]string{{"r1", "s1", "ann"}, {"r2", "s1", "ann"}, {"r3", "s2", "ann"}, {"r4", "s1", "eve"}, {"r5", "s1", ""}, {"r6", "", "ann"}} {
		e := event.Event{ID: 1, RunID: r[0], SessionID: r[1], Time: time.Now(), Data: &event.RunStarted{Principal: r[2]}}
		if _, err := kept.Append(t.Context(), r[0], 0, e); err != nil {
			t.Fatal(err)
		}
	}
	return kept
}

const plain, wider = `{"type":"object"}`, `{"type":"object","properties":{}}`

// A grant beyond one call holds in every process, for what it was bound to and for nothing else.
func TestScopesOutliveTheProcess(t *testing.T) {
	t.Parallel()
	later := []struct {
		name string
		req  *lathe.ApprovalRequest
	}{
		{"the same call again", asks("r1", "s1", "ann", "c2", "write", plain, "w", `{ "b":2, "a":1.0 }`)},
		{"other arguments", asks("r1", "s1", "ann", "c3", "write", plain, "w", `{"a":2}`)},
		{"another tool", asks("r1", "s1", "ann", "c4", "other", plain, "w", `{"a":1,"b":2}`)},
		{"another definition", asks("r1", "s1", "ann", "c5", "write", wider, "w", `{"a":1,"b":2}`)},
		{"another rule", asks("r1", "s1", "ann", "c6", "write", plain, "tainted", `{"a":1,"b":2}`)},
		{"another run of the session", asks("r2", "s1", "ann", "c1", "write", plain, "w", `{"a":3}`)},
		{"another definition in another run of the session", asks("r2", "s1", "ann", "c2", "write", wider, "w", `{"a":3}`)},
		{"another session", asks("r3", "s2", "ann", "c1", "write", plain, "w", `{"a":1,"b":2}`)},
		{"another principal", asks("r4", "s1", "eve", "c1", "write", plain, "w", `{"a":1,"b":2}`)},
		{"unknown user", asks("r5", "s1", "", "c1", "write", plain, "w", `{"a":1,"b":2}`)},
		{"no session", asks("r6", "", "ann", "c1", "write", plain, "w", `{"a":1,"b":2}`)},
	}
	for scope, want := range map[approval.Scope]string{
		approval.ScopeOnce:    "nnnnnnnnnnn",
		approval.ScopeCall:    "ynnnnnnnnnn",
		approval.ScopeRun:     "yynnnnnnnnn",
		approval.ScopeSession: "yynnnynnnnn",
	} {
		for _, who := range []string{"the process that asked", "another one", "one that has the request from the log"} {
			kept := began(t)
			first := approval.NewQueue(&approval.QueueOptions{Signals: kept})
			req := asks("r1", "s1", "ann", "c1", "write", plain, "w", `{"a":1,"b":2}`)
			if _, err := first.Approve(t.Context(), req); !errors.Is(err, lathe.ErrPending) {
				t.Fatal(err)
			}
			answered := first
			if who == "one that has the request from the log" {
				answered = approval.NewQueue(&approval.QueueOptions{Signals: kept})
				answered.Await(approval.Request{Digest: req.Digest, RunID: "r1", SessionID: "s1", Principal: "ann", ToolCallID: "c1", Tool: "write", Rule: "w",
					ExpiresAt: req.ExpiresAt, Arguments: req.Args})
			}
			if err := answered.Answer(t.Context(), req.Digest, approval.Answer{Verb: approval.Approve, By: "ann", Scope: scope}); err != nil {
				t.Fatal(err)
			}
			if a, err := first.Approve(t.Context(), req); err != nil || !a.Approved {
				t.Fatalf("%+v, %v", a, err)
			}
			next := first
			if who != "the process that asked" {
				next = approval.NewQueue(&approval.QueueOptions{Signals: kept})
			}
			for i, l := range later {
				a, err := next.Approve(t.Context(), l.req)
				switch got := err == nil && a.Approved; {
				case !got && !errors.Is(err, lathe.ErrPending):
					t.Errorf("%q, %s, %s: %+v, %v", scope, who, l.name, a, err)
				case got != (want[i] == 'y'):
					t.Errorf("%q, %s, %s: allowed %v", scope, who, l.name, got)
				case got && (a.By != "ann" || a.ReasonCode != approval.ReasonGranted):
					t.Errorf("%q, %s, %s: %+v", scope, who, l.name, a)
				}
			}
		}
	}
}

// An answer without what its scope is bound to, as older processes have kept them, is good for its one call;
// and one that is forged for another definition or by a denial for none.
func TestScopesThatAreUnclearAllowNothing(t *testing.T) {
	t.Parallel()
	sum := digest.ArgsDigest("r1", "c1", "write", []byte(plain), []byte(`{}`))
	for name, body := range map[string]string{
		"no binding":       `{"digest":"` + sum + `","verb":"approve","by":"ann","reason_code":"x","scope":"run"}`,
		"no arguments":     `{"digest":"` + sum + `","verb":"approve","by":"ann","reason_code":"x","scope":"run","tool":"write","rule":"w"}`,
		"another digest":   `{"digest":"` + sum[1:] + `0","verb":"approve","by":"ann","reason_code":"x","scope":"run","tool":"write","rule":"w","shown":"{}"}`,
		"an unknown scope": `{"digest":"` + sum + `","verb":"approve","by":"ann","reason_code":"x","scope":"all","tool":"write","rule":"w","shown":"{}"}`,
		"a denial":         `{"digest":"` + sum + `","verb":"deny","by":"ann","reason_code":"x","scope":"run","tool":"write","rule":"w","shown":"{}"}`,
		"no JSON":          `{`,
	} {
		kept := began(t)
		if err := kept.PutSignal(t.Context(), store.Signal{RunID: "r1", Kind: store.SignalApproval, Key: "c1", Body: json.RawMessage(body)}); err != nil {
			t.Fatal(err)
		}
		d := approval.NewQueue(&approval.QueueOptions{Signals: kept})
		if a, err := d.Approve(t.Context(), asks("r1", "s1", "ann", "c2", "write", plain, "w", `{}`)); !errors.Is(err, lathe.ErrPending) {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
}

// lost is a store that cannot be read.
type lost struct{ *store.Memory }

func (lost) Signals(context.Context, string) ([]store.Signal, error) { return nil, errors.New("away") }

func TestScopesThatCannotBeReadAllowNothing(t *testing.T) {
	t.Parallel()
	kept := began(t)
	req := asks("r1", "s1", "ann", "c1", "write", plain, "w", `{}`)
	d := approval.NewQueue(&approval.QueueOptions{Signals: kept})
	if _, err := d.Approve(t.Context(), req); !errors.Is(err, lathe.ErrPending) {
		t.Fatal(err)
	}
	if err := d.Answer(t.Context(), req.Digest, approval.Answer{Verb: approval.Approve, Scope: approval.ScopeSession}); err != nil {
		t.Fatal(err)
	}
	away := approval.NewQueue(&approval.QueueOptions{Signals: lost{kept}})
	if a, err := away.Approve(t.Context(), asks("r1", "s1", "ann", "c2", "write", plain, "w", `{}`)); !errors.Is(err, lathe.ErrPending) {
		t.Errorf("%+v, %v", a, err)
	}
	// A session that was deleted has allowed nothing, here and everywhere.
	if err := kept.DeleteSession(t.Context(), "s1"); err != nil {
		t.Fatal(err)
	}
	if a, err := d.Approve(t.Context(), asks("r2", "s1", "ann", "c2", "write", plain, "w", `{}`)); !errors.Is(err, lathe.ErrPending) {
		t.Errorf("%+v, %v", a, err)
	}
}
