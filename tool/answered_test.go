package tool_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

type answers lathe.Approval

func (a answers) Approve(context.Context, *lathe.ApprovalRequest) (lathe.Approval, error) {
	return lathe.Approval(a), nil
}

// A person may answer in place of the tool: it does not run, and the answer passes the limits.
func TestPersonAnswersForTheTool(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, result, content string
		code                  lathe.Code
	}{
		{"text", `"it is sunny"`, "it is sunny", ""},
		{"fields beyond the allowlist are hidden", `{"temp":7,"key":"x"}`, `{"temp":7}`, ""},
		{"only such fields", `{"key":"x"}`, "", lathe.CodeRedactionFailed},
		{"a number", `7`, `7`, ""},
		{"not JSON", `it is sunny`, "", lathe.CodeInvalidOutput},
		{"too large", `"` + strings.Repeat("x", 101) + `"`, "", lathe.CodeOutputTooLarge},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ran := false
			f := reader("weather", func(context.Context, json.RawMessage) (*lathe.Output, error) {
				ran = true
				return &lathe.Output{}, nil
			})
			f.spec.Allowlist = []string{"temp"}
			w := open(t, &tool.Options{Policy: policy.Effects{ReadOnly: lathe.Ask}, Limits: lathe.Limits{MaxOutputBytes: 100},
				Approver: answers{Approved: true, By: "ann", ReasonCode: "answered_by_user", Result: json.RawMessage(tt.result)}}, f)
			res, rec, _ := one(t, w, call("weather", `{}`))
			if res.Code != tt.code || tt.code == "" && res.Content != tt.content || ran {
				t.Errorf("got %q %q, ran %v", res.Code, res.Content, ran)
			}
			if rec.types() != "Proposed Planned ApprovalRequested ApprovalResolved Result" {
				t.Errorf("facts %s", rec.types())
			}
			if e := find[*event.ApprovalResolved](t, rec); e.Decision != "answered" || e.By != "ann" || e.Arguments != nil {
				t.Errorf("got %+v", e)
			}
		})
	}
	denied := answers{Result: json.RawMessage(`1`)}
	if res, _, _ := one(t, open(t, &tool.Options{Policy: policy.Effects{ReadOnly: lathe.Ask}, Approver: denied}, reader("a", nil)), call("a", `{}`)); res.Code != lathe.CodeApprovalDenied {
		t.Errorf("an answer without approval: got %q", res.Code)
	}
}
