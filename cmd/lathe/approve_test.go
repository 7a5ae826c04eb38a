package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe"
)

func approvalOf(args string) *lathe.ApprovalRequest {
	return &lathe.ApprovalRequest{
		CallInfo:  lathe.CallInfo{Tool: &lathe.ToolSpec{Name: "write"}, Args: json.RawMessage(args)},
		Verdict:   lathe.Verdict{Decision: lathe.Ask, Rule: "effect.writes"},
		Digest:    strings.Repeat("ab", 32),
		ExpiresAt: time.Now().Add(time.Hour),
	}
}

func TestTerminalApprover(t *testing.T) {
	t.Parallel()
	one, same, other := `{"a":1,"b":2}`, `{ "b":2, "a":1 }`, `{"a":2}`
	for _, tc := range []struct {
		name, typed string
		calls       []string
		want        string // y or n for each call
		questions   int
	}{
		{"yes is for one call", "y\nn\n", []string{one, one}, "yn", 2},
		{"again is for the same call", "a\nn\n", []string{one, same, other}, "yyn", 2},
		{"no is for the same call, too", "n\ny\n", []string{one, same, other}, "nny", 2},
		{"anything else is no", "yess\n", []string{one}, "n", 1},
		{"an empty line is no", "\n", []string{one}, "n", 1},
		{"the end of input is no", "", []string{one, other}, "nn", 2},
		{"a line without its end counts", "YES", []string{one}, "y", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			a := newTerminalApprover(strings.NewReader(tc.typed), &screen{err: &out})
			got := ""
			for _, args := range tc.calls {
				answer, err := a.Approve(t.Context(), approvalOf(args))
				if err != nil {
					t.Fatal(err)
				}
				if got += "n"; answer.Approved {
					got = got[:len(got)-1] + "y"
				}
			}
			if got != tc.want || strings.Count(out.String(), "approve write?") != tc.questions {
				t.Errorf("got %s, want %s; asked:\n%s", got, tc.want, out.String())
			}
		})
	}
}

// What is typed after a question expired does not answer the next one.
func TestTerminalApproverForgetsLateAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		keys, typed := io.Pipe()
		a := newTerminalApprover(keys, &screen{err: io.Discard})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := a.Approve(ctx, approvalOf(`{"a":1}`)); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		if _, err := io.WriteString(typed, "y\n"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		answers := make(chan lathe.Approval)
		go func() {
			answer, _ := a.Approve(t.Context(), approvalOf(`{"a":2}`)) // the zero answer denies
			answers <- answer
		}()
		synctest.Wait()
		select {
		case answer := <-answers:
			t.Fatalf("the late line answered: %+v", answer)
		default:
		}
		if _, err := io.WriteString(typed, "y\n"); err != nil {
			t.Fatal(err)
		}
		if answer := <-answers; !answer.Approved || answer.By != "terminal" {
			t.Errorf("got %+v", answer)
		}
	})
}

// A person may change the arguments or answer in place of the tool; a line left empty is a no.
func TestTerminalApproverEditsAndAnswers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ typed, arguments, result, reason string }{
		{"e\n{\"a\":2}\n", `{"a":2}`, "", "edited_by_user"},
		{"edit\nnot json\n[1]\n{\"a\":3}\n", `{"a":3}`, "", "edited_by_user"}, // a slip is asked again
		{"edit\nnot json\n", "", "", "denied_by_user"},
		{"e\n\n", "", "", "denied_by_user"},
		{"r\nit is \"sunny\"\n", "", `"it is \"sunny\""`, "answered_by_user"},
		{"r\n{\"temp\":7}", "", `{"temp":7}`, "answered_by_user"},
		{"r\n", "", "", "denied_by_user"},
		{"s\ny\n", "", "", "denied_by_user"}, // there is no session
	} {
		a := newTerminalApprover(strings.NewReader(tc.typed), &screen{err: io.Discard})
		got, err := a.Approve(t.Context(), approvalOf(`{"a":1}`))
		if err != nil || string(got.Arguments) != tc.arguments || string(got.Result) != tc.result || got.ReasonCode != tc.reason || got.Approved == (tc.reason == "denied_by_user") {
			t.Errorf("%q: got %+v, %v", tc.typed, got, err)
		}
	}
}

func TestTerminalApproverScopes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		typed string
		want  string // of: this call, other arguments, another tool, another run of the session
	}{{"t\n", "yynn"}, {"s\n", "yyny"}, {"a\n", "ynnn"}} {
		a := newTerminalApprover(strings.NewReader(tc.typed), &screen{err: io.Discard})
		got := ""
		for i, args := range []string{`{"a":1}`, `{"a":2}`, `{"a":3}`, `{"a":4}`} {
			req := approvalOf(args)
			req.Run = &lathe.RunInfo{RunID: "r", SessionID: "s"}
			if i == 2 {
				req.Tool = &lathe.ToolSpec{Name: "other"}
			}
			if i == 3 {
				req.Run = &lathe.RunInfo{RunID: "r2", SessionID: "s"}
			}
			answer, err := a.Approve(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			if got += "n"; answer.Approved {
				got = got[:len(got)-1] + "y"
			}
		}
		if got != tc.want {
			t.Errorf("%q: got %s, want %s", tc.typed, got, tc.want)
		}
	}
}

// What Lathe knows stands before what the model wrote, and nothing that the model writes can look like it.
func TestT23_TerminalShowsDetailsFirst(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := newTerminalApprover(strings.NewReader("n\n"), &screen{err: &out})
	req := approvalOf(`{"path":"a\u202eb\u001b[2J","note":"x\n  tool        calculator"}`)
	if _, err := a.Approve(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	got := out.String()
	tool, model := strings.Index(got, "  tool        write\n"), strings.Index(got, "the model wrote these arguments:")
	if tool < 0 || model < tool || strings.Contains(got, "\n  tool        calculator") || strings.ContainsAny(got, "\u202e\x1b") ||
		!strings.Contains(got, `  | path = "a\u202eb\u001b[2J"`) {
		t.Errorf("asked:\n%s", got)
	}
}

func TestLongArgumentsAreCutAtARune(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", maxShownArgs)
	got := clipArgs("x" + long)
	if want := "x" + long[:maxShownArgs-2] + " … 2002 bytes more"; got != want {
		t.Errorf("got …%q", got[len(got)-40:])
	}
}
