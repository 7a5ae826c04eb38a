package server_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/server"
)

// What a request asks for narrows what the server allows, or is refused.
func TestRequestOptionsOnlyNarrow(t *testing.T) {
	t.Parallel()
	small := key("small")
	small.Limits.MaxIterations = 3
	f := serve(t, &setting{limits: lathe.Limits{MaxIterations: 5, RunTimeout: time.Minute}, opts: func(o *server.Options) {
		o.Setup.Keys = []server.Key{key("a"), small}
	}})
	for name, c := range map[string]struct{ lathe, param string }{
		"no object":               {`[]`, "lathe"},
		"an unknown member":       {`{"tool":["calculator"]}`, "lathe"},
		"an unknown mode":         {`{"tool_use_mode":"relaxd"}`, "lathe.tool_use_mode"},
		"an unknown tool":         {`{"tools":["calculators"]}`, "lathe.tools"},
		"a tool that is no name":  {`{"tools":[1]}`, "lathe.tools"},
		"a policy that allows":    {`{"policy":{"calculator":"allow"}}`, "lathe.policy.calculator"},
		"a policy on no tool":     {`{"policy":{"nothing":"deny"}}`, "lathe.tools"},
		"a limit above":           {`{"limits":{"max_iterations":6}}`, "lathe.limits.max_iterations"},
		"a limit of nothing":      {`{"limits":{"max_iterations":0}}`, "lathe.limits.max_iterations"},
		"a limit below nothing":   {`{"limits":{"max_total_tool_calls":-1}}`, "lathe.limits.max_total_tool_calls"},
		"an unknown limit":        {`{"limits":{"max_iteration":1}}`, "lathe.limits"},
		"a time above":            {`{"limits":{"run_timeout":"61s"}}`, "lathe.limits.run_timeout"},
		"a time that is a number": {`{"limits":{"run_timeout":60}}`, "lathe.limits.run_timeout"},
		"a long session":          {`{"session":"` + strings.Repeat("x", 257) + `"}`, "lathe.session"},
		"detach that is no bool":  {`{"detach":"yes"}`, "lathe.detach"},
	} {
		resp, body := f.do("POST", "/v1/chat/completions", ask("sim/demo", "x", `,"lathe":`+c.lathe))
		code := "invalid_request"
		if name == "an unknown tool" || name == "a policy on no tool" {
			code = "unknown_tool"
		}
		checkError(t, name, resp, body, 400, code, c.param)
	}
	resp, body := f.do("POST", "/v1/chat/completions", ask("sim/demo", "x", `,"lathe":{"limits":{"max_iterations":4}}`), "Authorization", "Bearer "+text("small"))
	checkError(t, "above what the key allows", resp, body, 400, "invalid_request", "lathe.limits.max_iterations")
	if len(f.seen.all()) > 0 {
		t.Errorf("a model was asked: %v", f.seen.all())
	}
	for name, c := range map[string]struct {
		lathe string
		calls int
		why   string
	}{
		"nothing":           {`{}`, 2, "answered"},
		"null":              {`null`, 2, "answered"},
		"at the limit":      {`{"limits":{"max_iterations":5,"run_timeout":"1m0s"}}`, 2, "answered"},
		"below the limit":   {`{"limits":{"max_iterations":1}}`, 2, "max_iterations"},
		"one call":          {`{"limits":{"max_total_tool_calls":1}}`, 2, "max_total_tool_calls"},
		"one tool":          {`{"tools":["calculator"]}`, 1, "answered"},
		"no tool":           {`{"tools":[]}`, 0, "answered"},
		"a tool denied":     {`{"policy":{"calculator":"deny"}}`, 1, "answered"},
		"both":              {`{"tools":["calculator"],"policy":{"calculator":"deny"}}`, 0, "answered"},
		"disabled":          {`{"tool_use_mode":"disabled"}`, 0, "answered"},
		"a session, labels": {`{"session":"s1","labels":{"team":"x"}}`, 2, "answered"},
	} {
		got := f.complete(ask("sim/demo", twoTools, `,"lathe":`+c.lathe))
		if got.Lathe.Reason != c.why || len(got.Lathe.ToolCalls) != c.calls {
			t.Errorf("%s: ended %s after %d calls, want %s after %d", name, got.Lathe.Reason, len(got.Lathe.ToolCalls), c.why, c.calls)
		}
		if name == "a session, labels" && got.Lathe.Session != "s1" {
			t.Errorf("%s: session %q", name, got.Lathe.Session)
		}
	}
	resp, body = f.do("POST", "/v1/chat/completions", ask("sim/demo", "hello", `,"lathe":{"tool_use_mode":"enforced"}`))
	checkError(t, "a run that had to call a tool", resp, body, 422, "no_tool_calls", "")
}

// A former name of an option is refused wherever the option may stand, and the error says the name.
func TestFormerNamesOfOptionsAreRefused(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	for path, body := range map[string]string{
		"/v1/chat/completions":   ask("sim/demo", "x", `,"lathe":{"mode":"disabled"}`),
		"/v1/responses":          `{"model":"sim/demo","input":"x","lathe":{"mode":"disabled"}}`,
		"/v1/messages":           `{"model":"sim/demo","max_tokens":9,"messages":[{"role":"user","content":"x"}],"lathe":{"mode":"disabled"}}`,
		"/api/runs":              `{"model":"sim/demo","prompt":"x","mode":"disabled"}`,
		"/api/runs/run_x/replay": `{"settings":{"mode":"disabled"}}`,
	} {
		resp, answer := f.do("POST", path, body)
		if resp.StatusCode != 400 || !strings.Contains(string(answer), "It is called tool_use_mode.") {
			t.Errorf("%s: status %d, %s", path, resp.StatusCode, answer)
		}
	}
}

func TestTheServersModeCannotBeLoosened(t *testing.T) {
	t.Parallel()
	for mode, changes := range map[lathe.ToolUseMode][]string{
		lathe.ModeDisabled: {`{"tool_use_mode":"relaxed"}`, `{"tool_use_mode":"enforced"}`},
		lathe.ModeEnforced: {`{"tool_use_mode":"relaxed"}`, `{"tool_failure_policy":"tolerated"}`},
	} {
		f := serve(t, &setting{settings: lathe.Settings{ToolUseMode: mode, FailurePolicy: lathe.FailureFatal}})
		for _, w := range changes {
			resp, body := f.do("POST", "/v1/chat/completions", ask("sim/demo", "x", `,"lathe":`+w))
			if resp.StatusCode != 400 {
				t.Errorf("%s, %s: status %d: %s", mode, w, resp.StatusCode, body)
			}
		}
	}
}

// What OpenAI knows and Lathe does not is taken and listed: as passed on, or as of no effect.
func TestUnknownMembersAreListed(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	more := `,"metadata":{"a":"b"},"store":true,"top_k":7,"logit_bias":{},"logprobs":true,"web_search_options":["dear"],"lathe":{}`
	ignored, passed := []string{"metadata", "store", "logprobs", "web_search_options"}, []string{"top_k", "logit_bias"}
	for _, got := range []*report{f.complete(ask("sim/demo", "hello", more)).Lathe, f.streamed(ask("sim/demo", "hello", more+`,"stream":true`)).report} {
		if !slices.Equal(got.Ignored, ignored) || !slices.Equal(got.Passed, passed) {
			t.Errorf("ignored %v, passed %v, want %v, %v", got.Ignored, got.Passed, ignored, passed)
		}
	}
	for _, sent := range f.seen.all() {
		if !strings.Contains(sent, `"top_k":7`) || !strings.Contains(sent, `"logit_bias":{}`) || strings.Contains(sent, "dear") ||
			strings.Contains(sent, "logprobs") || strings.Contains(sent, "metadata") {
			t.Errorf("the model server was sent %s", sent)
		}
	}
}

func TestToolsAreListedAndCalled(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	if _, body := f.do("GET", "/api/tools", ""); !strings.Contains(body, `"name":"calculator"`) || !strings.Contains(body, `"advertised":true`) {
		t.Errorf("tools: %s", body)
	}
	for args, want := range map[string]string{
		`{"arguments":{"expression":"6 * 7"}}`: `"is_error":false,"content":"{\"result\":42,\"exact\":true}"`,
		`{"arguments":{"expression":1}}`:       `"code":"invalid_arguments"`,
		`{}`:                                   `"code":"invalid_arguments"`,
	} {
		resp, body := f.do("POST", "/api/tools/calculator/call", args)
		if resp.StatusCode != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s, want %s", args, resp.StatusCode, body, want)
		}
	}
	for name, args := range map[string]string{"no JSON": "{", "no object": "[]", "another member": `{"args":{}}`} {
		resp, body := f.do("POST", "/api/tools/calculator/call", args)
		if resp.StatusCode != 400 {
			t.Errorf("%s: %d %s", name, resp.StatusCode, body)
		}
	}
	if _, body := f.do("GET", "/metrics", ""); !strings.Contains(body, `lathe_tool_calls_total{status="ok",tool="calculator"} 1`) {
		t.Errorf("calls by hand are not counted")
	}
}

func TestClientToolsMustNotTakeNamesOfTheServers(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	resp, body := f.do("POST", "/v1/chat/completions", ask("sim/demo", "x", `,"tools":[`+weatherTool+`,{"type":"function","function":{"name":"calculator"}}]`))
	checkError(t, "a clash", resp, body, 400, "invalid_request", "tools[1].function.name")
}

func TestMetricsAndProbes(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	f.complete(ask("sim/demo", twoTools, ""))
	_, body := f.do("GET", "/metrics", "")
	for _, want := range []string{`lathe_runs_total{reason="answered"} 1`, `lathe_stream_clients 0`} {
		if !strings.Contains(body, want) {
			t.Errorf("/metrics has no %s", want)
		}
	}
	got := map[string]int{}
	for _, path := range []string{"/livez", "/readyz", "/healthz", "/nothing"} {
		resp, _ := f.do("GET", path, "")
		got[path] = resp.StatusCode
	}
	if diff := cmp.Diff(map[string]int{"/livez": 200, "/readyz": 200, "/healthz": 200, "/nothing": 404}, got); diff != "" {
		t.Error(diff)
	}
}
