package guest_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/guest"
)

// What SET_PARAM answers, in the order of the calls, and what is then asked of the host.
func TestGuestParameters(t *testing.T) {
	t.Parallel()
	yes := true
	standard := lathe.Limits{MaxIterations: 8, MaxToolCalls: 32, MaxOutputBytes: 65536}
	type step struct {
		json string
		rc   int32
	}
	for _, tc := range []struct {
		name  string
		steps []step
		opts  guest.RunOptions
		want  guest.Request // without what every request has
	}{
		{"nothing", nil, guest.RunOptions{}, guest.Request{Limits: standard}},
		{"bad", []step{{`{`, -5}, {`[]`, -5}, {`"x"`, -5}, {`{}`, -5}, {`{"key":"","value":1}`, -5}, {`{"key":7,"value":1}`, -5}, {`{"key":"a","key":"b"}`, -5}, {"\xff", -5}},
			guest.RunOptions{}, guest.Request{Limits: standard}},
		{"structural", []step{{`{"key":"model","value":"m"}`, 0}, {`{"key":"messages","value":[]}`, 0}, {`{"key":"tools","value":[]}`, 0}, {`{"key":"backend","value":"b"}`, 0},
			{`{"key":"stream","value":true}`, 0}, {`{"key":"timeout_ms","value":1500}`, 0}, {`{"key":"model","value":4}`, -22},
			{`{"key":"Messages","value":[]}`, 0}, {`{"key":"MODEL","value":"other"}`, 0}, {`{"key":"Stream","value":false}`, 0}},
			guest.RunOptions{}, guest.Request{Model: "m", Limits: standard, Timeout: 1500 * time.Millisecond}},
		{"forwarded", []step{{`{"key":"top_k","value":4}`, 0}, {`{"key":"temperature","value":0.50}`, 0}, {`{"key":"gone","value":1}`, 0}, {`{"key":"gone","value":null}`, 0},
			{`{"key":"nothing"}`, 0}, {`{"key":"response_format","value":{"type":"json_object"}}`, 0}, {`{"key":"tool_choice","value":"none"}`, 0},
			{`{"key":"tool_choice","value":"x"}`, -22}, {`{"key":"tool_choice","value":{"type":"function"}}`, -22}, {`{"key":"tool_choice","value":{"type":"function","function":{"name":"f"}}}`, 0},
			{`{"key":"parallel_tool_calls","value":true}`, 0}, {`{"key":"parallel_tool_calls","value":1}`, -22}, {`{"key":"strict_unknown_tool","value":true}`, 0}},
			guest.RunOptions{}, guest.Request{Limits: standard, ResponseFormat: []byte(`{"type":"json_object"}`),
				ToolChoice: lathe.ToolChoice{Mode: "function", Name: "f"}, ParallelToolCalls: &yes, StrictUnknownTool: true,
				Overrides: []lathe.Member{{Name: "temperature", Value: []byte("0.50")}, {Name: "top_k", Value: []byte("4")}}}},
		{"caps", []step{{`{"key":"max_iterations","value":129}`, 0}, {`{"key":"max_total_tool_calls","value":10001}`, 0}, {`{"key":"max_tool_output_bytes","value":99999999}`, 0}},
			guest.RunOptions{}, guest.Request{Limits: lathe.Limits{MaxIterations: 128, MaxToolCalls: 10000, MaxOutputBytes: 1 << 20}}},
		{"caps of the operator", []step{{`{"key":"max_iterations","value":129}`, 0}, {`{"key":"max_total_tool_calls","value":2}`, 0}, {`{"key":"max_tool_output_bytes","value":9}`, 0}},
			guest.RunOptions{Caps: lathe.Limits{MaxIterations: 3, MaxToolCalls: 3, MaxOutputBytes: 3}}, guest.Request{Limits: lathe.Limits{MaxIterations: 3, MaxToolCalls: 2, MaxOutputBytes: 3}}},
		{"no output under the operator's cap", []step{{`{"key":"max_tool_output_bytes","value":0}`, 0}},
			guest.RunOptions{Caps: lathe.Limits{MaxOutputBytes: 3}}, guest.Request{Limits: lathe.Limits{MaxIterations: 8, MaxToolCalls: 32, MaxOutputBytes: 1}}},
		{"defaults of the operator", nil, guest.RunOptions{Defaults: lathe.Limits{MaxIterations: 3, MaxToolCalls: 4, MaxOutputBytes: 5}, StrictUnknownTool: true},
			guest.Request{Limits: lathe.Limits{MaxIterations: 3, MaxToolCalls: 4, MaxOutputBytes: 5}, StrictUnknownTool: true}},
		{"numbers", []step{{`{"key":"max_iterations","value":-1}`, -22}, {`{"key":"max_iterations","value":"4"}`, -22}, {`{"key":"max_iterations","value":4.5}`, -22},
			{`{"key":"max_iterations","value":18446744073709551616}`, -22}, {`{"key":"max_iterations","value":5}`, 0}, {`{"key":"tool_arena_ptr","value":4294967296}`, -22},
			{`{"key":"tool_arena_ptr","value":4294967295}`, 0}, {`{"key":"tool_arena_ptr","value":-2147483648}`, 0}, {`{"key":"tool_arena_len","value":null}`, 0}},
			guest.RunOptions{}, guest.Request{Limits: lathe.Limits{MaxIterations: 5, MaxToolCalls: 32, MaxOutputBytes: 65536}}},
		{"mcp without permission", []step{{`{"key":"mcp.enabled","value":true}`, -13}, {`{"key":"mcp.enabled","value":false}`, 0}, {`{"key":"mcp.enabled","value":1}`, -22},
			{`{"key":"mcp.server_ids","value":["a"]}`, -13}, {`{"key":"mcp.server_ids","value":[]}`, 0}, {`{"key":"mcp.server_ids","value":"a"}`, -22}, {`{"key":"mcp.tool_allowlist","value":[1]}`, -22},
			{`{"key":"mcp.task_tool_denylist","value":[]}`, -13}, {`{"key":"mcp.other","value":[]}`, -22}},
			guest.RunOptions{}, guest.Request{Limits: standard}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := newProbe()
			p.call("cchat_create")
			p.printText(1000, "x")
			want := []int32{1000, 0}
			for _, s := range tc.steps {
				p.set(1000, s.json)
				want = append(want, s.rc)
			}
			p.call("cchat_send", 1000, 2)
			p.set(1001, `{"key":"max_iterations","value":"of an answer"}`)
			p.set(1002, `{"key":"max_iterations","value":1}`)
			w := newWorld(&script{})
			p.want(t, w, nil, &tc.opts, append(want, 1001, 0, -9)...)
			got := *w.requests[0]
			got.Run, got.Messages, got.Auto = lathe.RunInfo{}, nil, false
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}

// The functions of a session: bare definitions are wrapped, what cannot be read is passed over and never
// called, and the first of a name stays.
func TestGuestFunctionDefinitions(t *testing.T) {
	t.Parallel()
	g := newGuest()
	g.place(1, 0, textTool(g, 700, `"first"`))
	g.place(2, 0, textTool(g, 720, `"bare"`))
	f := &flow{prompt: "go", flags: 2, functions: map[int]string{
		0: `{"type":"function","function":{"description":"no name"}}`,
		1: definition("f"),
		2: `{"name":"bare","description":"d","parameters":{"type":"object","properties":{"a":{"type":"integer"}}}}`,
		3: `{"function":`,
		4: definition("f"),
		5: `{"name":"bad name"}`,
		6: `{"name":"schema","parameters":{"type":7}}`,
		7: `{"name":"plain","parameters":null}`,
	}}
	model := asks("f", "bare", "schema")
	w := newWorld(model)
	r := runGuest(t, f.build(g), w, nil, nil)
	r.ended(t, 0)
	var names []string
	for _, spec := range model.seen[0].Tools {
		names = append(names, spec.Name)
	}
	if want := []string{"bare", "f", "plain"}; !slices.Equal(names, want) {
		t.Errorf("sent %q, want %q", names, want)
	}
	var results []string
	for _, c := range w.calls() {
		results = append(results, c.Tool+" "+c.Status)
	}
	if want := []string{"f ok", "bare ok", "unknown error"}; !slices.Equal(results, want) {
		t.Errorf("results %q, want %q", results, want)
	}
	if got := w.calls()[0].Result; got != "first" {
		t.Errorf("f answers %q", got)
	}
	if len(r.log) != 6 || !strings.Contains(r.log[5], "plain cannot be called") {
		t.Errorf("log: %q", r.log)
	}
}

// The order of MCP's lists: the program's allowlist and denylist, then the session's.
func TestMCPAllowAndDenyOrder(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		policy guest.MCPPolicy
		params []string // JSON of further parameters
		allows string   // of a.read, a.write, b.read
	}{
		{"everything", guest.MCPPolicy{}, nil, "a.read a.write b.read"},
		{"one server", guest.MCPPolicy{}, []string{`{"key":"mcp.server_ids","value":["b"]}`}, "b.read"},
		{"the program allows", guest.MCPPolicy{Allow: []string{"read"}}, nil, "a.read b.read"},
		{"the program allows none", guest.MCPPolicy{Allow: []string{}}, nil, ""},
		{"the session allows none", guest.MCPPolicy{}, []string{`{"key":"mcp.tool_allowlist","value":[]}`}, ""},
		{"the program denies", guest.MCPPolicy{Deny: []string{"mcp.a.*"}}, nil, "b.read"},
		{"deny after allow", guest.MCPPolicy{Allow: []string{"*"}, Deny: []string{"a__wr?te"}}, nil, "a.read b.read"},
		{"the session narrows", guest.MCPPolicy{Allow: []string{"read"}}, []string{`{"key":"mcp.tool_allowlist","value":["a__*"]}`}, "a.read"},
		{"the session cannot widen", guest.MCPPolicy{Allow: []string{"read"}, Deny: []string{"b__read"}}, []string{`{"key":"mcp.tool_allowlist","value":["*"]}`}, "a.read"},
		{"the session denies", guest.MCPPolicy{}, []string{`{"key":"mcp.tool_allowlist","value":["*"]}`, `{"key":"mcp.tool_denylist","value":["read"]}`}, "a.write"},
		{"off", guest.MCPPolicy{}, []string{`{"key":"mcp.enabled","value":false}`}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := newProbe()
			p.call("cchat_create")
			p.printText(1000, "x")
			want := []int32{1000, 0}
			for _, json := range tc.params {
				p.set(1000, json)
				want = append(want, 0)
			}
			p.set(1000, `{"key":"mcp.server_ids","value":["c"]}`)
			p.call("cchat_send", 1000, 2)
			tc.policy.Enabled, tc.policy.Servers, tc.policy.Default = true, []string{"a", "b"}, []string{"a", "b", "c"}
			w := newWorld(&script{})
			p.want(t, w, nil, &guest.RunOptions{MCP: tc.policy}, append(want, -13, 1001)...)
			got := ""
			for _, tool := range [][2]string{{"a", "read"}, {"a", "write"}, {"b", "read"}, {"c", "read"}} {
				if m := w.requests[0].MCP; m != nil && m.Allows(tool[0], tool[1]) {
					if got != "" {
						got += " "
					}
					got += tool[0] + "." + tool[1]
				}
			}
			if got != tc.allows {
				t.Errorf("allows %q, want %q", got, tc.allows)
			}
		})
	}
}
