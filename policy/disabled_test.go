package policy_test

import (
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/policy"
)

func TestDisabledToolsAreDenied(t *testing.T) {
	off := "write"
	p := policy.All(policy.AllowAll(), policy.Disabled{Is: func(tool string) bool { return tool == off }})
	read, write := &lathe.ToolSpec{Name: "read"}, &lathe.ToolSpec{Name: "write"}
	call := func(s *lathe.ToolSpec) *lathe.CallInfo {
		return &lathe.CallInfo{Run: &lathe.RunInfo{}, Call: &lathe.ToolCall{Name: s.Name}, Tool: s}
	}
	for _, v := range []lathe.Verdict{p.Tool(&lathe.RunInfo{}, write), p.Call(call(write))} {
		if v.Decision != lathe.Deny || v.Rule != "disabled" || v.Reason == "" {
			t.Errorf("write: %+v", v)
		}
	}
	for _, v := range []lathe.Verdict{p.Tool(&lathe.RunInfo{}, read), p.Call(call(read)), p.Step(&lathe.StepInfo{Run: &lathe.RunInfo{}})} {
		if v.Decision != lathe.Allow {
			t.Errorf("read: %+v", v)
		}
	}
	_, findings := policy.Explain(p, call(read))
	if len(findings) != 2 || findings[1].Rule != "disabled" || findings[1].Matched || findings[1].Decision != lathe.Deny {
		t.Errorf("the findings are %+v", findings)
	}
	off = "" // enabled again, and at once
	if v := p.Call(call(write)); v.Decision != lathe.Allow {
		t.Errorf("enabled: %+v", v)
	}
	if v := (policy.Disabled{}).Call(call(read)); v.Decision != lathe.Deny {
		t.Errorf("the zero value: %+v", v)
	}
}
