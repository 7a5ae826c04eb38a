package config

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/lathe-run/lathe"
)

// other is a value for each key that is not its default.
var other = map[string]string{
	"default_model": "sim/x", "tool_calling.tool_use_mode": "enforced", "tool_calling.tool_failure_policy": "tolerated",
	"tool_calling.tool_choice": "function:clock", "tool_calling.parallel_tool_calls": "false", "tool_calling.fix_empty_final_user_text": "Well?",
	"tool_calling.executor": "noop", "tool_calling.on_parse_error": "retry_without_tools", "tool_calling.on_limit": "stop",
	"tool_calling.oversize_output": "truncate", "tool_calling.repair": "off", "tool_calling.result_format": "envelope",
	"tool_calling.run_timeout": "none", "tool_calling.max_tokens_total": "5", "tool_calling.max_cost": "0.25", "tools.builtin": "clock,echo",
	"policy.trifecta": "deny", "policy.taint": "deny", "policy.labels": "a,b", "policy.budget.tools": "7", "policy.budget.tokens": "5", "policy.budget.cost": "0.25",
	"decision": "ask", "tool": "a*", "when": "args.a == 1", "principal": "ci-*", "labels": "x", "reason": "no", "secrets.values": "${KEY}", "secrets.grants": "a",
	"policy.effects.read_only": "deny", "policy.effects.idempotent": "deny", "policy.effects.writes": "deny",
	"tool_calling.retention.mode": "raw_ephemeral",
	"telemetry.args_preview_hash": "full", "telemetry.args_preview_key": "${KEY}", "telemetry.otlp_endpoint": "http://127.0.0.1:4318",
	"provider": "sim", "label": "openrouter", "token": "${KEY}", "base_url": "http://localhost:11434/v1", "key": "${KEY}", "model": "other", "dialect": "tags", "reasoning_field": "*",
	"profile": "vllm", "presets": "a,b", "pass": "a", "transforms.message": "a", "transforms.tool": "a", "transforms.response": "a", "transforms.tool_call": "a",
	"transforms.tool_result": "a", "request_overrides": `{"top_k":1}`,
	"tools.egress.private": "127.0.0.1", "tools.egress.redirect_hosts": "*.example.com",
	"description": "text", "method": "PUT", "url": "https://example.com", "body": "form", "effect": "idempotent", "allowlist": "a.b,c",
	"bearer": "${KEY}", "basic": "${KEY}", "in": "path", "as": "other", "schema": `{"type":"integer"}`, "style": "matrix", "explode": "true",
	"tools.wasm.dir": "modules", "tools.wasm.grants": "clock", "tools.wasm.max_memory": "1MiB", "tools.wasm.max_total_memory": "1MiB", "tools.wasm.cache_dir": "cache",
	"command": "server", "dir": "files", "tools": "a,b", "pin": "require", "tools.pins": "other.json", "tools.tokens": "other.json", "elicitation": "ask", "audit.path": "audit.jsonl", "approve": "others", "approval.waiting_text": "{run} waits.", "audit.max_bytes": "2KiB",
	"oauth.grant": "cross_app", "oauth.issuer": "https://example.com", "oauth.client_id": "other", "oauth.client_secret": "${KEY}", "oauth.private_key": "${KEY}",
	"oauth.client_metadata_url": "https://example.com/client", "oauth.assertion": "${KEY}", "oauth.token_endpoint": "https://example.com/t",
	"oauth.authorization_endpoint": "https://example.com/a", "oauth.provider.token_endpoint": "https://example.com/token",
	"oauth.provider.client_id": "other", "oauth.provider.client_secret": "${KEY}", "oauth.provider.id_token": "${KEY}", "env": "text", "headers": "text",
	"serve.addr": "127.0.0.1:0", "serve.metrics_addr": "127.0.0.1:0", "serve.hosts": "a.example.com", "serve.origins": "https://a.example.com",
	"models": "a,b", "keys": "a,b", "run_timeout": "5s", "max_tokens_total": "5", "max_cost": "0.25",
	"serve.usage": "sum", "serve.store": "sqlite:runs.db", "serve.advertise": "http://10.0.3.7:8700", "cluster.key": "${KEY}",
	"file": "a.yaml", "server": "https://example.com/v1", "operations": "a,b", "tags": "a", "prefix": "a_", "effects": "writes", "sha256": strings.Repeat("ab", 32), "rate": "0.5",
}

func change(t *testing.T, k *key) {
	t.Helper()
	text, ok := other[k.path]
	if g, isGroup := k.v.(grouper); isGroup {
		if _, err := g.group("name"); err != nil {
			t.Fatalf("%s: %v", k.path, err)
		}
		return
	}
	if tab, isTable := k.v.(tabler); isTable {
		if !ok {
			text = "allow"
		}
		e, err := tab.entry("name")
		if err == nil {
			err = e.set(text)
		}
		if err != nil {
			t.Fatalf("%s: %v", k.path, err)
		}
		return
	}
	v := k.v
	if d, isDistinct := v.(distinct); isDistinct {
		v = d.lister
	}
	if l, isTexts := v.(textsValue); isTexts {
		if err := l.setList([]string{"-v", "a b", "-v"}); err != nil {
			t.Fatalf("%s: %v", k.path, err)
		}
		return
	}
	switch was := k.v.text(); {
	case ok:
	case was == "true":
		text = "false"
	case was == "false":
		text = "true"
	case strings.Contains(k.v.kind(), "duration"):
		text = "7s"
	case strings.HasPrefix(k.v.kind(), "size"), strings.HasPrefix(k.v.kind(), "number"):
		text = "7"
	default:
		t.Fatalf("%s: the test knows no other value", k.path)
	}
	if err := k.v.set(text); err != nil {
		t.Fatalf("%s: %v", k.path, err)
	}
	if got := k.v.text(); got != text && got != "[redacted]" {
		t.Errorf("%s: set to %s, reads %s", k.path, text, got)
	}
}

// Each field has its key and each key its field: a setting that was forgotten, or bound twice, shows.
func TestEveryFieldHasOneKey(t *testing.T) {
	t.Parallel()
	c := Default()
	m := newModel("m", "openai")
	c.Models["m"] = m
	var h HTTPTool
	var p HTTPParameter
	var o OpenAPI
	var r PolicyRule
	var s MCPServer
	var a APIKey
	var w Workers
	for name, rows := range map[string][]key{"config": c.keys(), "model": m.keys(), "http": h.keys(), "parameter": p.keys(), "openapi": o.keys(), "rule": r.keys(), "mcp": s.keys(), "key": a.keys(), "workers": w.keys()} {
		seen := map[string]bool{}
		for i := range rows {
			if seen[rows[i].path] {
				t.Errorf("%s: %s stands twice", name, rows[i].path)
			}
			seen[rows[i].path] = true
			change(t, &rows[i])
		}
	}
	want, wantModel := Default(), newModel("m", "openai")
	var equal func(name string, a, b reflect.Value)
	equal = func(name string, a, b reflect.Value) {
		switch {
		case strings.HasSuffix(name, ".origin"), name == "Config.dir", strings.HasSuffix(name, ".Models"), name == "Model.Name", name == "Model.run":
		case a.Kind() == reflect.Struct && a.Type() != reflect.TypeFor[Ref]() && a.Type() != reflect.TypeFor[lathe.ToolChoice]():
			for i := range a.NumField() {
				equal(name+"."+a.Type().Field(i).Name, a.Field(i), b.Field(i))
			}
		default:
			if fmt.Sprintf("%#v", a) == fmt.Sprintf("%#v", b) {
				t.Errorf("no key changes %s", name)
			}
		}
	}
	equal("Config", reflect.ValueOf(*c), reflect.ValueOf(*want))
	equal("Model", reflect.ValueOf(*m), reflect.ValueOf(*wantModel))
	equal("HTTPTool", reflect.ValueOf(h), reflect.ValueOf(HTTPTool{}))
	equal("HTTPParameter", reflect.ValueOf(p), reflect.ValueOf(HTTPParameter{}))
	equal("OpenAPI", reflect.ValueOf(o), reflect.ValueOf(OpenAPI{}))
	equal("PolicyRule", reflect.ValueOf(r), reflect.ValueOf(PolicyRule{}))
	equal("Workers", reflect.ValueOf(w), reflect.ValueOf(Workers{}))
	equal("MCPServer", reflect.ValueOf(s), reflect.ValueOf(MCPServer{}))
}

func TestDefaultsAreTheLibrarys(t *testing.T) {
	t.Parallel()
	c := Default()
	if diff := cmp.Diff(lathe.Limits{}.WithDefaults(), c.Limits()); diff != "" {
		t.Errorf("limits (-library +config):\n%s", diff)
	}
	want := lathe.Settings{ToolUseMode: lathe.ModeRelaxed, FailurePolicy: lathe.FailureFatal, MaxParallel: 1, FixEmptyFinalText: lathe.DefaultFixEmptyFinalText,
		Executor: lathe.ExecutorReal, OnParseError: lathe.ParseErrorTell, OnLimit: lathe.OnLimitFinish, OversizeOutput: lathe.OversizeError,
		Repair: lathe.RepairSafe, ResultFormat: lathe.ResultPlain}
	if diff := cmp.Diff(want, c.Settings()); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if p := c.Policy; p.ReadOnly != lathe.Allow || p.Idempotent != lathe.Ask || p.Writes != lathe.Ask {
		t.Errorf("policy: got %+v", p)
	}
	c.ToolCalling.Enabled = false
	if got := c.Settings().ToolUseMode; got != lathe.ModeDisabled {
		t.Errorf("tool_calling.enabled false: got mode %s, want disabled", got)
	}
	m := newModel("m", "openai")
	if m.ReadTimeout != m.ClientTimeout || m.Label != "" || m.Model != "m" || m.MaxLineBytes != 1<<20 || m.MaxEventBytes != 8<<20 {
		t.Errorf("model: got %+v", m)
	}
}

// The names that the contract fixes.
func TestKeysOfTheContract(t *testing.T) {
	t.Parallel()
	want := strings.Fields(`enabled max_depth allow_deprecated_syntax show_unreadable_calls retention.mode retention.store_raw_tool_output retention.max_output_bytes
		tool_use_mode tool_failure_policy parallel_tool_calls max_parallel_tool_calls tool_choice tool_choice_every_turn fix_empty_final
		fix_empty_final_user_text fix_empty_final_disable_tools fallback_retry_count executor on_parse_error on_limit
		max_iterations max_total_tool_calls max_repeated_calls max_unknown_tools max_tool_args_bytes max_payload_bytes max_tool_output_bytes
		max_json_depth max_json_keys max_tools max_tools_bytes tool_timeout run_timeout approval_ttl max_tokens_total max_cost
		oversize_output repair result_format tool_result_compact_envelope strict_unknown_tool`)
	var got []string
	for _, k := range Default().keys() {
		if rest, ok := strings.CutPrefix(k.path, "tool_calling."); ok {
			got = append(got, rest)
		}
		if k.doc == "" || strings.Contains(k.doc, "\n") || !strings.HasSuffix(k.doc, ".") {
			t.Errorf("%s: its comment is not one line that ends with a full stop: %q", k.path, k.doc)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("keys of tool_calling (-want +got):\n%s", diff)
	}
}

func TestVariablesAreUnique(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, k := range Default().keys() {
		name := variable(k.path)
		if seen[name] != "" {
			t.Errorf("%s sets %s and %s", name, seen[name], k.path)
		}
		seen[name] = k.path
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	byPath := map[string]*key{}
	c := Default()
	rows := c.keys()
	for i := range rows {
		byPath[rows[i].path] = &rows[i]
	}
	m := newModel("m", "openai")
	mrows := m.keys()
	for i := range mrows {
		byPath["models.m."+mrows[i].path] = &mrows[i]
	}
	tests := []struct{ key, in, want, err string }{
		{"tool_calling.max_iterations", "1", "1", ""},
		{"tool_calling.max_iterations", "0", "", "0 is not from 1 to 1000000"},
		{"tool_calling.max_iterations", "1000000", "1000000", ""},
		{"tool_calling.max_iterations", "1000001", "", "1000001 is not from 1 to 1000000"},
		{"tool_calling.max_iterations", "1.5", "", `"1.5" is not a whole number`},
		{"tool_calling.max_iterations", "99999999999999999999", "", `"99999999999999999999" is not a whole number`},
		{"tool_calling.max_depth", "0", "0", ""},
		{"tool_calling.max_depth", "-1", "", "-1 is not from 0 to 100"},
		{"tool_calling.max_payload_bytes", "64KiB", "64KiB", ""},
		{"tool_calling.max_payload_bytes", "64 KiB", "64KiB", ""},
		{"tool_calling.max_payload_bytes", "65536", "64KiB", ""},
		{"tool_calling.max_payload_bytes", "65537", "65537", ""},
		{"tool_calling.max_payload_bytes", "1GiB", "1GiB", ""},
		{"tool_calling.max_payload_bytes", "2GiB", "", `"2GiB" is not from 1 to 1GiB`},
		{"tool_calling.max_payload_bytes", "9999999999999GiB", "", `"9999999999999GiB" is not a size: write 65536 or 64KiB (B, KiB, MiB, GiB)`},
		{"tool_calling.max_payload_bytes", "64KB", "", `"64KB" is not a size: write 65536 or 64KiB (B, KiB, MiB, GiB)`},
		{"tool_calling.max_payload_bytes", "-1", "", `"-1" is not a size: write 65536 or 64KiB (B, KiB, MiB, GiB)`},
		{"tool_calling.retention.max_output_bytes", "0", "0", ""},
		{"tool_calling.tool_timeout", "1h30m", "1h30m", ""},
		{"tool_calling.tool_timeout", "90m", "1h30m", ""},
		{"tool_calling.tool_timeout", "10m0.5s", "10m0.5s", ""},
		{"tool_calling.tool_timeout", "20m", "20m", ""},
		{"tool_calling.tool_timeout", "10s", "10s", ""},
		{"tool_calling.tool_timeout", "30", "", `"30" has no unit: write 30s`},
		{"tool_calling.tool_timeout", "0", "", `"0" is too short`},
		{"tool_calling.tool_timeout", "soon", "", `"soon" is not a duration: write 300ms, 30s, 15m or 1h30m`},
		{"tool_calling.run_timeout", "none", "none", ""},
		{"tool_calling.run_timeout", "0s", "", `"0s" is too short; none turns it off`},
		{"models.m.client_timeout", "0", "0", ""},
		{"models.m.client_timeout", "2m", "2m", ""},
		{"models.m.client_timeout", "-2m", "", `"-2m" is too short; 0 turns it off`},
		{"tool_calling.max_tokens_total", "none", "none", ""},
		{"tool_calling.max_tokens_total", "0", "", fmt.Sprintf("0 is not from 1 to %d", int64(math.MaxInt64)-1)},
		{"tool_calling.max_cost", "1e-3", "0.001", ""},
		{"tool_calling.max_cost", "0", "", `"0" is not an amount above 0`},
		{"tool_calling.max_cost", "NaN", "", `"NaN" is not an amount above 0`},
		{"tool_calling.max_cost", "Inf", "", `"Inf" is not an amount above 0`},
		{"tool_calling.tool_choice", "auto", "auto", ""},
		{"tool_calling.tool_choice", "required", "required", ""},
		{"tool_calling.tool_choice", "function:clock", "function:clock", ""},
		{"tool_calling.tool_choice", "function:NAME", "function:NAME", ""},
		{"tool_calling.tool_choice", "function:", "", "a tool name has 1 to 64 letters, digits, _ and -"},
		{"tool_calling.tool_choice", "any", "", `"any" is called "required" here (auto, none, required, function:NAME)`},
		{"tool_calling.parallel_tool_calls", "true", "true", ""},
		{"tool_calling.parallel_tool_calls", "unset", "unset", ""},
		{"tool_calling.parallel_tool_calls", "off", "", `"off" is called "false" here (unset, true, false)`},
		{"tool_calling.fix_empty_final", "no", "", `"no" is called "false" here (true, false)`},
		{"tool_calling.fix_empty_final", "True", "", `unknown value "True", did you mean "true"? (true, false)`},
		{"tools.builtin", "clock, echo", "clock,echo", ""},
		{"tools.builtin", "", "", ""},
		{"tools.builtin", "clock,clock", "", `"clock" stands twice`},
		{"tools.builtin", "two words", "", "a tool name has 1 to 64 letters, digits, _ and -"},
		{"models.m.dialect", "two words", "", `"two words" is more than one word`},
		{"models.m.label", "Open AI", "", `"Open AI" is not a label: lower-case letters, digits, _ . and -, at most 64`},
	}
	for _, tt := range tests {
		k := byPath[tt.key]
		err := k.v.set(tt.in)
		if (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
			t.Errorf("%s: %q: got %v, want %s", tt.key, tt.in, err, tt.err)
		}
		if got := k.v.text(); err == nil && got != tt.want {
			t.Errorf("%s: %q reads back as %q, want %q", tt.key, tt.in, got, tt.want)
		}
	}
}
