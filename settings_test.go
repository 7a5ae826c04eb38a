package lathe_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/reflecttest"
)

func TestLimitsDefaults(t *testing.T) {
	t.Parallel()
	want := lathe.Limits{
		MaxIterations: 8, MaxToolCalls: 32, MaxDepth: 1, MaxRepeatedCalls: 3, MaxUnknownTools: 3,
		MaxToolArgsBytes: 200_000, MaxPayloadBytes: 8_192, MaxOutputBytes: 65_536, MaxJSONDepth: 64, MaxJSONKeys: 10_000,
		MaxTools: 128, MaxToolsBytes: 200_000, ToolTimeout: 30 * time.Second, RunTimeout: 15 * time.Minute,
		ApprovalTTL: time.Hour, MaxTokensTotal: math.MaxInt64,
	}
	if diff := cmp.Diff(want, lathe.Limits{}.WithDefaults()); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
	// What is set stays, whatever the field: a default must not be written over a choice.
	for _, n := range []int64{-1, 1, 7} {
		var set lathe.Limits
		v := reflect.ValueOf(&set).Elem()
		for i := range v.NumField() {
			if f := v.Field(i); f.Kind() == reflect.Float64 {
				f.SetFloat(float64(n))
			} else {
				f.SetInt(n)
			}
		}
		if diff := cmp.Diff(set, set.WithDefaults()); diff != "" {
			t.Errorf("all fields %d (-want +got):\n%s", n, diff)
		}
	}
}

func TestReasonStatus(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"answered": "completed", "client_tool_calls": "completed",
		"awaiting_approval": "parked", "awaiting_tool_results": "parked",
		"max_iterations": "limited", "max_total_tool_calls": "limited", "tool_loop": "limited",
		"run_timeout": "limited", "budget_exceeded": "limited", "budget_exhausted": "failed", "length": "limited",
		"cancelled":     "cancelled",
		"no_tool_calls": "failed", "tool_error": "failed", "unknown_tool": "failed", "content_filter": "failed",
		"upstream_error": "failed", "guest_fault": "failed", "interrupted": "failed", "internal": "failed",
	}
	got := map[string]string{}
	for _, r := range reflecttest.Constants(t, "settings.go", "Reason") {
		got[r] = lathe.Reason(r).Status()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
	if got := lathe.Reason("made up").Status(); got != "failed" {
		t.Errorf("unknown reason: got %s, want failed", got)
	}
}

func TestCodesAreTheContracts(t *testing.T) {
	t.Parallel()
	want := strings.Fields(`tool_payload_too_large tool_payload_parse_error invalid_json arguments_too_large
		invalid_arguments unknown_tool policy_denied approval_denied approval_expired execution_failed unavailable
		timeout cancelled interrupted rate_limited tool_output_too_large invalid_output redaction_failed
		tool_call_limit max_depth too_many_calls incomplete_call
		invalid_request invalid_config conflict not_found content_removed upstream_protocol upstream_error internal
		price_unknown budget_exhausted too_many_tools`)
	got := reflecttest.Constants(t, "error.go", "Code")
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("codes (-want +got):\n%s", diff)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]fmt.Stringer{
		"deny": lathe.Deny, "ask": lathe.Ask, "allow": lathe.Allow,
		"read_only": lathe.ReadOnly, "idempotent": lathe.Idempotent, "writes": lathe.Writes,
		"server": lathe.OwnerServer, "client": lathe.OwnerClient,
	} {
		if got.String() != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := lathe.EffectUndeclared.String(); got != "writes" {
		t.Errorf("undeclared effect: got %s, want writes", got)
	}
	if got := (lathe.Verdict{}).Decision; got != lathe.Deny {
		t.Errorf("the zero verdict: got %s, want deny", got)
	}
	if (lathe.Approval{}).Approved {
		t.Error("the zero approval approves")
	}
}

func TestErrorText(t *testing.T) {
	t.Parallel()
	cause := errors.New("boom")
	tests := []struct {
		err  error
		want string
	}{
		{&lathe.Error{Code: lathe.CodeTimeout}, "timeout"},
		{&lathe.Error{Code: lathe.CodeTimeout, Op: "tool: call"}, "tool: call: timeout"},
		{&lathe.Error{Code: lathe.CodeTimeout, Err: cause}, "timeout: boom"},
		{&lathe.Error{Code: lathe.CodeTimeout, Op: "tool: call", Err: cause}, "tool: call: timeout: boom"},
		{&lathe.UpstreamError{Kind: lathe.UpstreamAborted, Err: cause}, "aborted"},
		{&lathe.UpstreamError{Kind: lathe.Upstream4xx, Status: 404}, "upstream_4xx (HTTP 404)"},
		{&lathe.UpstreamError{Kind: lathe.UpstreamRateLimited, Status: 429, ProviderCode: "slow_down", Message: "the server's own words"},
			"rate_limited (HTTP 429) code slow_down"},
	}
	for _, tt := range tests {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func TestCodeOf(t *testing.T) {
	t.Parallel()
	inner := &lathe.Error{Code: lathe.CodeUpstream, Err: &lathe.UpstreamError{Kind: lathe.Upstream5xx, Err: lathe.ErrPending}}
	tests := []struct {
		err  error
		want lathe.Code
	}{
		{nil, ""},
		{errors.New("plain"), lathe.CodeInternal},
		{lathe.ErrConflict, lathe.CodeInternal},
		{inner, lathe.CodeUpstream},
		{fmt.Errorf("doing x: %w", inner), lathe.CodeUpstream},
		{&lathe.Error{Code: lathe.CodeTimeout, Err: inner}, lathe.CodeTimeout},
		{errors.Join(errors.New("plain"), inner), lathe.CodeUpstream},
	}
	for _, tt := range tests {
		if got := lathe.CodeOf(tt.err); got != tt.want {
			t.Errorf("%v: got %q, want %q", tt.err, got, tt.want)
		}
	}
	if !errors.Is(inner, lathe.ErrPending) {
		t.Error("the cause of an upstream error is not found")
	}
}

func TestUsageAdd(t *testing.T) {
	t.Parallel()
	var got, one, want lathe.Usage
	reflecttest.Fill(reflect.ValueOf(&one).Elem(), "")
	got.Add(one)
	got.Add(one)
	v := reflect.ValueOf(&want).Elem()
	for i := range v.NumField() {
		v.Field(i).SetInt(14)
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestCallMeta(t *testing.T) {
	t.Parallel()
	if got := lathe.CallMetaFrom(t.Context()); got != nil {
		t.Errorf("a bare context carries %v", got)
	}
	m := &lathe.CallMeta{RunID: "run_1", CallID: "c"}
	if got := lathe.CallMetaFrom(lathe.WithCallMeta(t.Context(), m)); got != m {
		t.Errorf("got %v, want %v", got, m)
	}
}
