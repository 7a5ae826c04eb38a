package tool_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/tool"
)

// countingPolicy allows all and counts the calls that it is asked about.
type countingPolicy struct{ calls *int }

func (countingPolicy) Tool(*lathe.RunInfo, *lathe.ToolSpec) lathe.Verdict {
	return lathe.Verdict{Decision: lathe.Allow}
}
func (countingPolicy) Step(*lathe.StepInfo) lathe.Verdict {
	return lathe.Verdict{Decision: lathe.Allow}
}
func (p countingPolicy) Call(*lathe.CallInfo) lathe.Verdict {
	*p.calls++
	return lathe.Verdict{Decision: lathe.Allow}
}

// Names that differ only in letter case are refused before the policy sees the arguments.
func TestRunnerRefusesNamesThatDifferOnlyInCase(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]lathe.Code{
		`{"path":"/ok"}`:                                "",
		`{"path":"/ok","Path":"/secret"}`:               lathe.CodeInvalidArguments,
		`{"path":"/ok","\u0050ath":"/secret"}`:          lathe.CodeInvalidArguments,
		`{"list":[[{"x":{"key":1,"\u212aey":2}}]]}`:     lathe.CodeInvalidArguments,
		`{"mode":1,"Mode":2,"path":"/ok"}`:              "", // the schema declares both
		`{"mode":1,"Mode":2,"MODE":3,"path":"/ok"}`:     lathe.CodeInvalidArguments,
		"\"{\\\"path\\\":\\\"/ok\\\",\\\"PATH\\\":1}\"": lathe.CodeInvalidArguments, // after the repair of a text
	} {
		called, asked := false, 0
		read := reader("read", func(context.Context, json.RawMessage) (*lathe.Output, error) {
			called = true
			return &lathe.Output{Data: json.RawMessage(`{}`)}, nil
		})
		read.spec.Schema = json.RawMessage(`{"type":"object","properties":{"path":{},"mode":{},"Mode":{}}}`)
		w := open(t, &tool.Options{Policy: countingPolicy{&asked}}, read)
		res, _, _ := one(t, w, call("read", args))
		if res.Code != want {
			t.Errorf("%s: code %q, want %q", args, res.Code, want)
		}
		if refused := want != ""; called == refused || (asked > 0) == refused {
			t.Errorf("%s: tool called %t, policy asked %d times", args, called, asked)
		}
	}
}

// Arguments that an approver puts in place of the model's pass the same check.
func TestRunnerRefusesEditedArgumentsWithNamesThatDifferOnlyInCase(t *testing.T) {
	t.Parallel()
	called := false
	read := reader("read", func(context.Context, json.RawMessage) (*lathe.Output, error) {
		called = true
		return &lathe.Output{Data: json.RawMessage(`{}`)}, nil
	})
	read.spec.Name = "ask"
	w := open(t, asking(func(context.Context, *lathe.ApprovalRequest) (lathe.Approval, error) {
		return lathe.Approval{Approved: true, Arguments: json.RawMessage(`{"path":"/ok","Path":"/secret"}`)}, nil
	}), read)
	if res, _, _ := one(t, w, call("ask", `{"path":"/ok"}`)); res.Code != lathe.CodeInvalidArguments || called {
		t.Errorf("code %q, called %t", res.Code, called)
	}
}
