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
	"github.com/lathe-run/lathe/internal/setting"
)

// Each field of Limits and Settings is a row of the table that configurations, requests, metrics and guests read.
func TestEachLimitAndSettingIsARow(t *testing.T) {
	t.Parallel()
	for of, keys := range map[reflect.Type][]string{
		reflect.TypeFor[lathe.Limits]():   setting.Keys[lathe.Limits](""),
		reflect.TypeFor[lathe.Settings](): setting.Keys[lathe.Settings](""),
	} {
		seen := map[string]bool{}
		for f := range of.Fields() {
			key := f.Tag.Get("key")
			if key == "" || seen[key] || !slices.Contains(keys, key) {
				t.Errorf("%s.%s has no key of its own: %q", of.Name(), f.Name, key)
			}
			if _, ok := f.Tag.Lookup("default"); !ok {
				t.Errorf("%s.%s has no default", of.Name(), f.Name)
			}
			seen[key] = true
		}
	}
	for _, r := range setting.Rows[lathe.Limits]() {
		for _, place := range strings.Fields(r.Tag.Get("narrow")) {
			if !slices.Contains([]string{"request", "keys", "agents"}, place) {
				t.Errorf("%s can be narrowed in %q, which is no place", r.Key, place)
			}
		}
		if kind := r.In(&lathe.Limits{}).Kind(); r.Guest > 0 && kind != reflect.Int && kind != reflect.Int64 {
			t.Errorf("%s: a guest can set only numbers", r.Key)
		}
	}
}

// The vocabulary of a setting is the constants of its type, the default first.
func TestWordsOfSettingsAreTheConstants(t *testing.T) {
	t.Parallel()
	for _, r := range setting.Rows[lathe.Settings]() {
		if r.Words == nil {
			continue
		}
		of := r.In(&lathe.Settings{}).Type().Name()
		if got := reflecttest.Constants(t, "settings.go", of); !slices.Equal(got, r.Words) || got[0] != r.Tag.Get("default") {
			t.Errorf("%s: the words are %q with the default %q, and the constants of %s %q", r.Key, r.Words, r.Tag.Get("default"), of, got)
		}
	}
	filled := lathe.Settings{}
	setting.Fill(&filled)
	if filled.FixEmptyFinalText != lathe.DefaultFixEmptyFinalText {
		t.Errorf("fix_empty_final_user_text: the default is %q, and DefaultFixEmptyFinalText %q", filled.FixEmptyFinalText, lathe.DefaultFixEmptyFinalText)
	}
}

// The defaults that the contract fixes.
func TestLimitsDefaults(t *testing.T) {
	t.Parallel()
	want := lathe.Limits{
		MaxIterations: 8, MaxToolCalls: 32, MaxDepth: 1, MaxRepeatedCalls: 3, MaxUnknownTools: 3,
		MaxToolArgsBytes: 200_000, MaxPayloadBytes: math.MaxInt, MaxOutputBytes: 65_536, MaxJSONDepth: 64, MaxJSONKeys: 10_000,
		MaxTools: 128, MaxToolsBytes: 200_000, ToolTimeout: 30 * time.Second, RunTimeout: 15 * time.Minute,
		ApprovalTTL: time.Hour, MaxTokensTotal: math.MaxInt64,
	}
	got := lathe.Limits{}.WithDefaults()
	for _, r := range setting.Rows[lathe.Limits]() {
		w, g := r.In(&want), r.In(&got)
		if !w.IsZero() && !w.Equal(g) || g.IsZero() && r.Tag.Get("default") != "none" {
			t.Errorf("%s: the default is %v, want %v", r.Key, g, w)
		}
	}
	// What is set stays, whatever the field: a default must not be written over a choice.
	for _, n := range []int64{-1, 1, 7} {
		var set lathe.Limits
		for _, r := range setting.Rows[lathe.Limits]() {
			put(r.In(&set), n)
		}
		if diff := cmp.Diff(set, set.WithDefaults()); diff != "" {
			t.Errorf("all fields %d (-want +got):\n%s", n, diff)
		}
	}
}

// put sets a number.
func put(f reflect.Value, n int64) {
	if f.Kind() == reflect.Float64 {
		f.SetFloat(float64(n))
	} else {
		f.SetInt(n)
	}
}

// Each limit narrows: the stricter value holds, a wider one is reported and has no effect, and a zero field has none.
func TestNarrow(t *testing.T) {
	t.Parallel()
	for _, r := range setting.Rows[lathe.Limits]() {
		for _, tt := range []struct{ have, by, want int64 }{{7, 3, 3}, {7, 7, 7}, {7, 9, 7}, {7, 0, 7}} {
			var have, by lathe.Limits
			put(r.In(&have), tt.have)
			put(r.In(&by), tt.by)
			got, above := have.Narrow(by)
			want := lathe.Limits{}
			put(r.In(&want), tt.want)
			wantAbove := ""
			if tt.by > tt.have {
				wantAbove = r.Key
			}
			if got != want.WithDefaults() || above != wantAbove {
				t.Errorf("%s: %d by %d is %v, above %q", r.Key, tt.have, tt.by, r.In(&got), above)
			}
		}
		var have, by lathe.Limits
		put(r.In(&by), 3)
		wide := lathe.Limits{}.WithDefaults()
		if got, _ := have.Narrow(by); r.In(&wide).CanInt() && r.In(&got).Int() != min(3, r.In(&wide).Int()) || !r.In(&wide).CanInt() && !r.In(&got).Equal(r.In(&by)) {
			t.Errorf("%s: the default by 3 is %v", r.Key, r.In(&got))
		}
		// A value below 0 is no limit, but for max_depth, where it is the strictest.
		put(r.In(&have), 7)
		put(r.In(&by), -1)
		got, above := have.Narrow(by)
		if n := r.In(&got); above != "" || r.ZeroIsLess != (n.CanInt() && n.Int() == -1) {
			t.Errorf("%s: 7 by -1 is %v, above %q", r.Key, n, above)
		}
		put(r.In(&have), -1)
		put(r.In(&by), 3)
		got, above = have.Narrow(by)
		if n := r.In(&got); r.ZeroIsLess != (above == r.Key) || r.ZeroIsLess != (n.CanInt() && n.Int() == -1) {
			t.Errorf("%s: -1 by 3 is %v, above %q", r.Key, n, above)
		}
	}
}

// A limit below 0 is an error with its key, if it does not mean something.
func TestNegativeLimits(t *testing.T) {
	t.Parallel()
	for _, r := range setting.Rows[lathe.Limits]() {
		var l lathe.Limits
		put(r.In(&l), -1)
		err := setting.Check(&l)
		if allowed := r.Key == "max_depth" || r.Key == "run_timeout"; allowed != (err == nil) || err != nil && !strings.HasPrefix(err.Error(), r.Key+": ") {
			t.Errorf("%s below 0: %v", r.Key, err)
		}
	}
	if err := setting.Check(&lathe.Limits{MaxCost: math.NaN()}); err == nil {
		t.Error("max_cost may be NaN")
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
		"no_tool_calls": "failed", "invalid_answer": "failed", "empty_answer": "failed", "tool_error": "failed", "unknown_tool": "failed", "content_filter": "failed",
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
