package mcp_test

import (
	"testing"

	"github.com/lathe-run/lathe"
	served "github.com/lathe-run/lathe/internal/gateway/mcp"
	"github.com/lathe-run/lathe/internal/setting/limittest"
	"github.com/lathe-run/lathe/tool"
)

// Each limit that one call can meet is obeyed, whether the runner or the caller has it.
func TestEachLimitIsObeyed(t *testing.T) {
	t.Parallel()
	limittest.Each(t, func(t *testing.T, s *limittest.Scenario) {
		if !s.OneCall {
			t.Skip("it bounds a run of a model")
		}
		t.Parallel()
		name, args := s.Call()
		for _, ofCaller := range []bool{false, true} {
			opts, caller := &tool.Options{Policy: limittest.Policy(), Approver: limittest.Approver{}, Limits: s.Tight}, &served.Caller{Principal: "a"}
			if ofCaller {
				opts.Limits, caller.Limits = lathe.Limits{}, &s.Tight
			}
			r := newRig(t, opts, nil, limittest.Tools()...)
			if got := r.lines(caller, hello, ready, call(1, name, args)); !s.Met(r.log.all()) {
				t.Errorf("of the caller: %v: the limit was not met: %v", ofCaller, got)
			}
		}
	})
}
