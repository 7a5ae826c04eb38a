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

func limits(l lathe.Limits) *tool.Options {
	return &tool.Options{Policy: policy.AllowAll(), Limits: l}
}

func TestMaxToolCalls(t *testing.T) {
	t.Parallel()
	w := open(t, limits(lathe.Limits{MaxToolCalls: 3}), reader("t", echo))
	for i, want := range []lathe.Code{"", "", "", lathe.CodeToolCallLimit} {
		res, rec, out := one(t, w, call("t", fmt.Sprintf(`{"i":%d}`, i)))
		if res.Code != want {
			t.Errorf("call %d: code %q, want %q", i+1, res.Code, want)
		}
		if want == "" {
			if out.Reason != "" {
				t.Errorf("call %d: reason %q", i+1, out.Reason)
			}
			continue
		}
		if out.Reason != lathe.ReasonMaxToolCalls || out.Limit != "max_total_tool_calls" {
			t.Errorf("reason %q, limit %q", out.Reason, out.Limit)
		}
		if e := errorOf(t, res); e["max"] != 3.0 || find[*event.ToolCallResult](t, rec).Limit != "max_total_tool_calls" {
			t.Errorf("error %v", e)
		}
	}
}

// A turn with more calls than are left: the first ones run, each of the others is answered.
func TestMaxToolCallsWithinATurn(t *testing.T) {
	t.Parallel()
	w := open(t, limits(lathe.Limits{MaxToolCalls: 2}), reader("t", echo))
	out := w.Execute(t.Context(), 1, []tool.Call{call("t", `{"i":1}`), call("t", `{"i":2}`), call("t", `{"i":3}`), call("t", `{"i":4}`)}, func(event.Data) {})
	if got, want := codes(t, out), "  tool_call_limit tool_call_limit"; got != want {
		t.Errorf("codes %q, want %q", got, want)
	}
	if out.Reason != lathe.ReasonMaxToolCalls {
		t.Errorf("reason %q", out.Reason)
	}
}

// The limit is the run's: who executes a call does not matter.
func TestMaxToolCallsOfTheClient(t *testing.T) {
	t.Parallel()
	r := newRunner(t, limits(lathe.Limits{MaxToolCalls: 2}), reader("t", echo))
	w := r.Begin(&lathe.RunInfo{}, &tool.RunOptions{ClientTools: []*lathe.ToolSpec{{Name: "cli"}}})
	rec := &recorder{}
	out := w.Execute(t.Context(), 1, []tool.Call{call("t", "{}"), call("cli", "{}"), call("cli", "{}")}, rec.emit)
	if len(out.Pending) != 1 || out.Pending[0].ID != "call_2" || out.Reason != lathe.ReasonMaxToolCalls {
		t.Errorf("pending %+v, reason %q", out.Pending, out.Reason)
	}
	if got, want := codes(t, out), " tool_call_limit"; got != want {
		t.Errorf("codes %q, want %q", got, want)
	}
	if res := rec.events[len(rec.events)-1].(*event.ToolCallResult); res.Limit != "max_total_tool_calls" || res.Tool != "cli" {
		t.Errorf("result %+v", res)
	}
}

func codes(t testing.TB, out tool.Outcome) string {
	t.Helper()
	var s []string
	for _, m := range out.Messages {
		s = append(s, string(result(t, m).Code))
	}
	return strings.Join(s, " ")
}

func TestMaxRepeatedCalls(t *testing.T) {
	t.Parallel()
	same := []string{`{"a":1,"b":2}`, `{"b":2, "a":1.0}`, ` {"b":2,"a":1} `, `{"a":1,"b":2}`}
	w := open(t, limits(lathe.Limits{MaxRepeatedCalls: 3}), reader("t", returns(`"x"`)))
	for i, args := range same {
		res, _, out := one(t, w, call("t", args))
		switch {
		case i < 2 && out.Reason != "":
			t.Errorf("call %d ends the run: %q", i+1, out.Reason)
		case i == 2 && (out.Reason != lathe.ReasonToolLoop || out.Limit != "max_repeated_calls" || res.IsError):
			t.Errorf("call %d: reason %q limit %q", i+1, out.Reason, out.Limit)
		case i > 2 && res.Code != lathe.CodeToolCallLimit:
			t.Errorf("call %d after the end of the run: code %q", i+1, res.Code)
		}
	}
	n := 0
	w = open(t, limits(lathe.Limits{MaxRepeatedCalls: 3}), reader("t", func(context.Context, json.RawMessage) (*lathe.Output, error) {
		n++
		return &lathe.Output{Data: json.RawMessage(fmt.Sprint(n))}, nil
	}), reader("u", returns(`1`)))
	for i := range 6 {
		if _, _, out := one(t, w, call("t", "")); out.Reason != "" {
			t.Errorf("call %d with another result ends the run: %q", i+1, out.Reason)
		}
		if _, _, out := one(t, w, call("u", fmt.Sprintf(`{"i":%d}`, i))); out.Reason != "" {
			t.Errorf("call %d with other arguments ends the run: %q", i+1, out.Reason)
		}
	}
}

func TestRepeatedCallsWithinATurnStopTheRest(t *testing.T) {
	t.Parallel()
	ran := 0
	w := open(t, nil, reader("t", func(context.Context, json.RawMessage) (*lathe.Output, error) {
		ran++
		return &lathe.Output{Data: json.RawMessage(`1`)}, nil
	}))
	out := w.Execute(t.Context(), 1, []tool.Call{call("t", ""), call("t", "{}"), call("t", "null"), call("t", ""), call("t", "")}, func(event.Data) {})
	if got, want := codes(t, out), "   tool_call_limit tool_call_limit"; got != want || ran != 3 {
		t.Errorf("codes %q after %d calls, want %q after 3", got, ran, want)
	}
	if out.Reason != lathe.ReasonToolLoop {
		t.Errorf("reason %q", out.Reason)
	}
}

func TestMaxUnknownTools(t *testing.T) {
	t.Parallel()
	w := open(t, limits(lathe.Limits{MaxUnknownTools: 3}), reader("t", echo))
	for i, name := range []string{"a", "b", "t", "a", "b", "c"} {
		_, _, out := one(t, w, call(name, fmt.Sprintf(`{"i":%d}`, i)))
		want := lathe.Reason("")
		if i == 5 {
			want = lathe.ReasonToolLoop
		}
		if out.Reason != want || want != "" && out.Limit != "max_unknown_tools" {
			t.Errorf("call %d: reason %q limit %q, want %q", i+1, out.Reason, out.Limit, want)
		}
	}
}

func TestStrictUnknownTool(t *testing.T) {
	t.Parallel()
	w := open(t, &tool.Options{Policy: policy.AllowAll(), Settings: lathe.Settings{StrictUnknownTool: true}}, reader("t", echo))
	out := w.Execute(t.Context(), 1, []tool.Call{call("t", ""), call("nope", ""), call("t", "")}, func(event.Data) {})
	if got, want := codes(t, out), " unknown_tool cancelled"; got != want || out.Reason != lathe.ReasonUnknownTool {
		t.Errorf("codes %q reason %q, want %q", got, out.Reason, want)
	}
}

func TestMaxToolArgsBytes(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]lathe.Code{99: "", 100: "", 101: lathe.CodeArgumentsTooLarge} {
		w := open(t, limits(lathe.Limits{MaxToolArgsBytes: 100}), reader("t", returns(`1`)))
		args := `{"a":"` + strings.Repeat("x", size-len(`{"a":""}`)) + `"}`
		res, rec, _ := one(t, w, call("t", args))
		if res.Code != want {
			t.Errorf("%d bytes: code %q, want %q", size, res.Code, want)
		}
		if want != "" {
			if e := errorOf(t, res); e["bytes"] != 101.0 || e["max_bytes"] != 100.0 || e["limit"] != "max_tool_args_bytes" {
				t.Errorf("error %v", e)
			}
			if find[*event.ToolCallResult](t, rec).Limit != "max_tool_args_bytes" {
				t.Error("the event does not name the limit")
			}
		}
	}
	// The limit holds for every kind of JSON value, and before the text is parsed.
	for _, args := range []string{"[" + strings.Repeat("1,", 60) + "1]", strings.Repeat("x", 101), `"` + strings.Repeat("x", 101) + `"`, strings.Repeat(" ", 101)} {
		w := open(t, limits(lathe.Limits{MaxToolArgsBytes: 100}), reader("t", returns(`1`)))
		if res, _, _ := one(t, w, call("t", args)); res.Code != lathe.CodeArgumentsTooLarge {
			t.Errorf("%.10s…: code %q", args, res.Code)
		}
	}
}

func TestMaxOutputBytes(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]lathe.Code{199: "", 200: "", 201: lathe.CodeOutputTooLarge} {
		out := `{"a":"` + strings.Repeat("x", size-len(`{"a":""}`)) + `"}`
		w := open(t, limits(lathe.Limits{MaxOutputBytes: 200}), reader("t", returns(out)))
		res, rec, _ := one(t, w, call("t", ""))
		if res.Code != want {
			t.Errorf("%d bytes: code %q, want %q", size, res.Code, want)
		}
		if want != "" {
			if e := errorOf(t, res); e["bytes"] != 201.0 || e["max_bytes"] != 200.0 || strings.Contains(res.Content, "xxx") {
				t.Errorf("answer %s", res.Content)
			}
			if ex := find[*event.ToolCallExecuted](t, rec); ex.OutputSizeBytes != 201 || ex.Success {
				t.Errorf("executed %+v", ex)
			}
		}
	}
	// Output that the model may not see does not count.
	f := reader("t", returns(`{"a":1,"b":"`+strings.Repeat("x", 300)+`"}`))
	f.spec.Allowlist = []string{"a"}
	if res, _, _ := one(t, open(t, limits(lathe.Limits{MaxOutputBytes: 200}), f), call("t", "")); res.Content != `{"a":1}` {
		t.Errorf("answer %s", res.Content)
	}
}

func TestOversizeOutputIsTruncated(t *testing.T) {
	t.Parallel()
	opts := limits(lathe.Limits{MaxOutputBytes: 200})
	opts.Settings.OversizeOutput = lathe.OversizeTruncate
	text := strings.Repeat("ä", 500)
	data, _ := json.Marshal(text)
	w := open(t, opts, reader("t", returns(string(data))))
	res, rec, _ := one(t, w, call("t", ""))
	head, rest, ok := strings.Cut(res.Content, "\n[... output cut: ")
	var left, of int
	tail := ""
	if _, err := fmt.Sscanf(rest, "%d of %d bytes left out ...]", &left, &of); !ok || err != nil {
		t.Fatalf("no marker in %q", res.Content)
	}
	_, tail, _ = strings.Cut(rest, "...]\n")
	if res.IsError || len(res.Content) > 200 || len(res.Content) < 190 {
		t.Errorf("%d bytes, error %v", len(res.Content), res.IsError)
	}
	if of != 1000 || left+len(head)+len(tail) != of || strings.Trim(head+tail, "ä") != "" {
		t.Errorf("head %d, left out %d of %d, tail %d", len(head), left, of, len(tail))
	}
	if ratio := float64(len(head)) / float64(len(head)+len(tail)); ratio < 0.73 || ratio > 0.77 {
		t.Errorf("head is %.2f of what is kept", ratio)
	}
	if ex := find[*event.ToolCallExecuted](t, rec); !ex.OutputTruncated || !ex.Success || ex.OutputSizeBytes != 1000 {
		t.Errorf("executed %+v", ex)
	}
	if r := find[*event.ToolCallResult](t, rec); r.Limit != "max_tool_output_bytes" || r.Status != "ok" {
		t.Errorf("result %+v", r)
	}
	opts.Limits.MaxOutputBytes = 20 // no room for the marker
	if res, _, _ := one(t, open(t, opts, reader("t", returns(string(data)))), call("t", "")); res.Code != lathe.CodeOutputTooLarge {
		t.Errorf("code %q", res.Code)
	}
}

func TestJSONDepthAndKeys(t *testing.T) {
	t.Parallel()
	w := open(t, limits(lathe.Limits{MaxJSONDepth: 3, MaxJSONKeys: 2, MaxRepeatedCalls: 100}), reader("t", returns(`1`)))
	for _, tt := range []struct {
		args  string
		limit string
	}{
		{`{"a":[[]]}`, ""},
		{`{"a":[[[]]]}`, "max_json_depth"},
		{`{"a":1,"b":2}`, ""},
		{`{"a":1,"b":2,"c":3}`, "max_json_keys"},
	} {
		res, rec, _ := one(t, w, call("t", tt.args))
		if got := find[*event.ToolCallResult](t, rec).Limit; got != tt.limit || (res.Code == lathe.CodeInvalidJSON) != (tt.limit != "") {
			t.Errorf("%s: code %q limit %q, want limit %q", tt.args, res.Code, got, tt.limit)
		}
	}
}

func TestMaxDepth(t *testing.T) {
	t.Parallel()
	f := reader("t", returns(`1`))
	f.starts = true
	for _, tt := range []struct {
		max, depth int
		want       lathe.Code
	}{
		{0, 0, ""}, {0, 1, lathe.CodeMaxDepth}, // the default is 1
		{2, 0, ""}, {2, 1, ""}, {2, 2, lathe.CodeMaxDepth}, {2, 3, lathe.CodeMaxDepth},
		{-1, 0, lathe.CodeMaxDepth},
	} {
		w := newRunner(t, limits(lathe.Limits{MaxDepth: tt.max}), f).Begin(&lathe.RunInfo{Depth: tt.depth}, nil)
		if advertised := specNames(w) == "t"; advertised != (tt.want == "") {
			t.Errorf("max %d depth %d: advertised %v", tt.max, tt.depth, advertised)
		}
		if res, _, _ := one(t, w, call("t", "")); res.Code != tt.want {
			t.Errorf("max %d depth %d: code %q, want %q", tt.max, tt.depth, res.Code, tt.want)
		}
	}
}

func TestRate(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	opts := &tool.Options{Policy: policy.AllowAll(), Now: func() time.Time { return now }, Limits: lathe.Limits{MaxRepeatedCalls: 100}}
	f := reader("t", returns(`1`))
	f.spec.Rate = 2
	w := open(t, opts, f)
	step := func(after time.Duration, want lathe.Code) {
		t.Helper()
		now = now.Add(after)
		res, rec, _ := one(t, w, call("t", ""))
		if res.Code != want {
			t.Errorf("code %q, want %q", res.Code, want)
		}
		if want != "" && (errorOf(t, res)["retry_after_ms"] == nil || find[*event.ToolCallResult](t, rec).Limit != "rate") {
			t.Errorf("answer %s", res.Content)
		}
	}
	step(0, "")
	step(0, "")
	step(0, lathe.CodeRateLimited)
	step(499*time.Millisecond, lathe.CodeRateLimited)
	step(time.Millisecond, "")
	step(0, lathe.CodeRateLimited)
	step(-time.Hour, lathe.CodeRateLimited)
	step(time.Hour+time.Second, "")
	step(0, "")
	step(0, lathe.CodeRateLimited)
}

func TestParsedPayloadLimitsAreNamed(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	for _, c := range []struct {
		call  lathe.ToolCall
		limit string
		most  float64
	}{
		{lathe.ToolCall{Dialect: "hermes"}, "max_tool_args_bytes", 200_000},
		{lathe.ToolCall{Dialect: "harmony", Arguments: strings.Repeat("x", 200_000)}, "max_tool_args_bytes", 200_000},
		{lathe.ToolCall{Dialect: "harmony", Arguments: "x"}, "max_payload_bytes", 8192}, // of the channel tool
	} {
		c.call.ParseError = lathe.CodePayloadTooLarge
		res, _, _ := one(t, w, tool.Call{ToolCall: c.call})
		if got := errorOf(t, res); res.Code != lathe.CodePayloadTooLarge || res.CallID == "" || got["limit"] != c.limit || got["max"] != c.most {
			t.Errorf("result %+v", res)
		}
	}
	res, _, _ := one(t, open(t, &tool.Options{Limits: lathe.Limits{MaxPayloadBytes: 9000}}), tool.Call{ToolCall: lathe.ToolCall{ParseError: lathe.CodePayloadTooLarge}})
	if got := errorOf(t, res); got["limit"] != "max_payload_bytes" || got["max"] != 9000.0 {
		t.Errorf("result %+v", res)
	}
}

// Equal arguments count together however they are written, in whatever order the spellings come.
func TestRepeatsInOtherSpellings(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{`{"a":1,"b":2}`, `{"a":1,"b":2}`, `{"b":2,"a":1.0}`},
		{`{"a":1,"b":2}`, `{ "b":2,"a":1}`, `{"a":1,"b":2}`},
		{`{"x":9}`, `{"x":9}`, `{"a":1,"b":2}`, `{"b":2,"a":1}`, `{"a":1,"b":2}`},
	} {
		w := open(t, limits(lathe.Limits{MaxRepeatedCalls: 3}), reader("t", returns(`{"same":true}`)))
		for i, a := range args {
			out := w.Execute(t.Context(), i+1, []tool.Call{call("t", a)}, func(event.Data) {})
			if last := i == len(args)-1; (out.Limit == "max_repeated_calls") != last {
				t.Errorf("%q: call %d: limit %q", args, i, out.Limit)
			}
		}
	}
}

// Repeats are counted also in a run whose tools have given many results.
func TestRepeatsAmongManyResults(t *testing.T) {
	t.Parallel()
	const results, most = 50, 3
	n := 0
	f := reader("t", func(context.Context, json.RawMessage) (*lathe.Output, error) {
		n++
		return &lathe.Output{Data: fmt.Appendf(nil, "%d", n%results)}, nil
	})
	w := open(t, limits(lathe.Limits{MaxRepeatedCalls: most, MaxToolCalls: 1000}), f)
	for i := 1; ; i++ {
		if _, _, out := one(t, w, call("t", "{}")); out.Reason != "" {
			if want := results*(most-1) + 1; i != want || out.Limit != "max_repeated_calls" {
				t.Errorf("the run ends after %d calls with %q, want %d", i, out.Limit, want)
			}
			return
		}
		if i > results*most {
			t.Fatal("the run goes on")
		}
	}
}
