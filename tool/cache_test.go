package tool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

func TestCache(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	ran := 0
	body := func(_ context.Context, args json.RawMessage) (*lathe.Output, error) {
		ran++
		if strings.Contains(string(args), "fail") {
			return nil, errBoom
		}
		return &lathe.Output{Data: json.RawMessage(fmt.Sprintf(`{"n":%d,"secret":1}`, ran))}, nil
	}
	cached, writes, plain := reader("cached", body), reader("writes", body), reader("plain", body)
	for _, f := range []*fake{cached, writes} {
		f.spec.CacheTTL, f.spec.Allowlist = time.Minute, []string{"n"}
	}
	writes.spec.Effect = lathe.Idempotent
	opts := &tool.Options{Policy: policy.AllowAll(), Now: func() time.Time { return now }, Limits: lathe.Limits{MaxRepeatedCalls: 100}}
	r := newRunner(t, opts, cached, writes, plain)
	for _, tt := range []struct {
		name, principal, tool, args string
		after                       time.Duration
		runs                        bool
	}{
		{"first", "eve", "cached", `{"a":1,"b":2}`, 0, true},
		{"same", "eve", "cached", `{"b":2.0, "a":1}`, 0, false},
		{"just before its time", "eve", "cached", `{"a":1,"b":2}`, time.Minute - 1, false},
		{"at its time", "eve", "cached", `{"a":1,"b":2}`, 1, true},
		{"another principal", "bob", "cached", `{"a":1,"b":2}`, 0, true},
		{"other arguments", "eve", "cached", `{"a":1,"b":3}`, 0, true},
		{"errors are not kept", "eve", "cached", `{"fail":1}`, 0, true},
		{"so they happen again", "eve", "cached", `{"fail":1}`, 0, true},
		{"not read only", "eve", "writes", `{}`, 0, true},
		{"not read only, again", "eve", "writes", `{}`, 0, true},
		{"no TTL", "eve", "plain", `{}`, 0, true},
		{"no TTL, again", "eve", "plain", `{}`, 0, true},
	} {
		now = now.Add(tt.after)
		before := ran
		w := r.Begin(&lathe.RunInfo{Principal: tt.principal}, nil)
		res, rec, _ := one(t, w, call(tt.tool, tt.args))
		if (ran > before) != tt.runs {
			t.Errorf("%s: ran %v, want %v", tt.name, ran > before, tt.runs)
		}
		ex := find[*event.ToolCallExecuted](t, rec)
		if ex.Cached == tt.runs || (ex.Attempts == 0) == tt.runs {
			t.Errorf("%s: executed %+v", tt.name, ex)
		}
		if tt.tool != "plain" && strings.Contains(res.Content, "secret") {
			t.Errorf("%s: %s", tt.name, res.Content)
		}
		if !tt.runs && (res.IsError || !ex.Success || rec.types() != "Proposed Planned Executed Result") {
			t.Errorf("%s: %+v, events %s", tt.name, res, rec.types())
		}
	}
}

// Policy, schema and size still hold for what comes from the cache.
// Neither what had to be cut nor a failure that a tool describes is kept.
func TestCacheKeepsWholeResultsOnly(t *testing.T) {
	t.Parallel()
	for name, out := range map[string]*lathe.Output{
		"cut":     {Data: json.RawMessage(`"` + strings.Repeat("x", 300) + `"`)},
		"failure": {IsError: true, Data: json.RawMessage(`{"a":1}`)},
	} {
		ran := 0
		f := reader("t", func(context.Context, json.RawMessage) (*lathe.Output, error) { ran++; return out, nil })
		f.spec.CacheTTL = time.Hour
		w := open(t, &tool.Options{Policy: policy.AllowAll(), Limits: lathe.Limits{MaxOutputBytes: 200},
			Settings: lathe.Settings{OversizeOutput: lathe.OversizeTruncate}}, f)
		first, _, _ := one(t, w, call("t", ""))
		if again, _, _ := one(t, w, call("t", "")); ran != 2 || again.Content != first.Content {
			t.Errorf("%s: ran %d times, answers %q and %q", name, ran, first.Content, again.Content)
		}
	}
}

func TestCacheComesAfterTheOtherStages(t *testing.T) {
	t.Parallel()
	f := reader("t", returns(`"`+strings.Repeat("x", 100)+`"`))
	f.spec.CacheTTL = time.Hour
	r := newRunner(t, &tool.Options{Policy: onlyEve{}}, f)
	eve := &lathe.RunInfo{Labels: map[string]string{"who": "eve"}}
	if res, _, _ := one(t, r.Begin(eve, nil), call("t", "")); res.IsError {
		t.Fatalf("answer %+v", res)
	}
	if res, _, _ := one(t, r.Begin(nil, nil), call("t", "")); res.Code != lathe.CodePolicyDenied {
		t.Errorf("code %q for who may not call it", res.Code)
	}
	w := r.Begin(eve, &tool.RunOptions{Limits: &lathe.Limits{MaxOutputBytes: 50}})
	if res, rec, _ := one(t, w, call("t", "")); res.Code != lathe.CodeOutputTooLarge || !find[*event.ToolCallExecuted](t, rec).Cached {
		t.Errorf("code %q", res.Code)
	}
	if res, _, _ := one(t, r.Begin(eve, nil), call("t", "")); res.Content != strings.Repeat("x", 100) {
		t.Errorf("text came back as %q", res.Content)
	}
}

type onlyEve struct{}

func (onlyEve) Tool(*lathe.RunInfo, *lathe.ToolSpec) lathe.Verdict { return lathe.Verdict{} }
func (onlyEve) Step(*lathe.StepInfo) lathe.Verdict                 { return lathe.Verdict{} }
func (onlyEve) Call(c *lathe.CallInfo) lathe.Verdict {
	if c.Run.Labels["who"] == "eve" {
		return lathe.Verdict{Decision: lathe.Allow}
	}
	return lathe.Verdict{}
}

func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	ran := map[string]int{}
	f := reader("t", func(_ context.Context, args json.RawMessage) (*lathe.Output, error) {
		ran[string(args)]++
		return &lathe.Output{Data: json.RawMessage(`"` + strings.Repeat("x", 700) + `"`)}, nil
	})
	f.spec.CacheTTL = time.Hour
	for _, tt := range []struct {
		bytes int
		calls string // in order
		want  string // how often each ran
	}{
		{3000, "0 1 0 2 0 3 0 1", "map[0:1 1:2 2:1 3:1]"}, // three fit; the longest unused goes
		{0, "0 1 2 3 0 1 2 3", "map[0:1 1:1 2:1 3:1]"},
		{100, "0 0", "map[0:2]"}, // nothing fits
		{-1, "0 0", "map[0:2]"},
	} {
		clear(ran)
		opts := &tool.Options{Policy: policy.AllowAll(), CacheBytes: tt.bytes, Limits: lathe.Limits{MaxRepeatedCalls: 100}}
		w := open(t, opts, f)
		for _, i := range strings.Fields(tt.calls) {
			one(t, w, call("t", `{"i":`+i+`}`))
		}
		got := map[string]int{}
		for args, n := range ran {
			got[strings.TrimSuffix(strings.TrimPrefix(args, `{"i":`), "}")] = n
		}
		if fmt.Sprint(got) != tt.want {
			t.Errorf("%d bytes: ran %v, want %s", tt.bytes, got, tt.want)
		}
	}
}
