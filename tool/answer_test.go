package tool_test

import (
	"context"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

func TestResultFormats(t *testing.T) {
	t.Parallel()
	tools := func() []lathe.Tool {
		return []lathe.Tool{
			reader("object", returns(`{"a": 1}`)), reader("text", returns(`"say \"hi\"\n"`)), reader("number", returns(`42`)),
			reader("list", returns(`[1,2]`)), reader("empty", returns(`{ }`)), reader("void", returns(``)),
			reader("fails", func(context.Context, json.RawMessage) (*lathe.Output, error) {
				return nil, tool.Fail(lathe.CodeUnavailable, "no \"x\"")
			}),
			reader("error", func(context.Context, json.RawMessage) (*lathe.Output, error) {
				return &lathe.Output{IsError: true, Code: lathe.CodeUnavailable, Data: json.RawMessage(`{"a":1}`)}, nil
			}),
		}
	}
	const unavailable = `"code":"unavailable","message":"The tool cannot be reached at the moment. Go on without it."`
	for _, tt := range []struct{ tool, plain, envelope, compact string }{
		{"object", `{"a": 1}`, `{"ok":true,"tool_name":"object","data":{"a": 1},"warnings":[],"errors":[]}`, `{"ok":true,"tool_name":"object","data":{"a": 1}}`},
		{"text", "say \"hi\"\n", `{"ok":true,"tool_name":"text","data":{"value":"say \"hi\"\n"},"warnings":[],"errors":[]}`, `{"ok":true,"tool_name":"text","data":{"value":"say \"hi\"\n"}}`},
		{"number", `42`, `{"ok":true,"tool_name":"number","data":{"value":42},"warnings":[],"errors":[]}`, `{"ok":true,"tool_name":"number","data":{"value":42}}`},
		{"list", `[1,2]`, `{"ok":true,"tool_name":"list","data":{"value":[1,2]},"warnings":[],"errors":[]}`, `{"ok":true,"tool_name":"list","data":{"value":[1,2]}}`},
		{"empty", `{ }`, `{"ok":true,"tool_name":"empty","data":{ },"warnings":[],"errors":[]}`, `{"ok":true,"tool_name":"empty"}`},
		{"void", `null`, `{"ok":true,"tool_name":"void","data":{"value":null},"warnings":[],"errors":[]}`, `{"ok":true,"tool_name":"void","data":{"value":null}}`},
		{"fails", `{"ok":false,"error":{` + unavailable + `,"detail":"no \"x\""}}`,
			`{"ok":false,"tool_name":"fails","data":{},"warnings":[],"errors":[{` + unavailable + `,"detail":"no \"x\""}]}`,
			`{"ok":false,"tool_name":"fails","errors":[{` + unavailable + `,"detail":"no \"x\""}]}`},
		{"error", `{"ok":false,"error":{` + unavailable + `},"data":{"a":1}}`,
			`{"ok":false,"tool_name":"error","data":{"a":1},"warnings":[],"errors":[{` + unavailable + `}]}`,
			`{"ok":false,"tool_name":"error","data":{"a":1},"errors":[{` + unavailable + `}]}`},
		{"no.such", "", `"tool_name":"no.such"`, `"tool_name":"no.such"`},
	} {
		for format, want := range map[string]string{"plain": tt.plain, "envelope": tt.envelope, "compact": tt.compact} {
			s := lathe.Settings{CompactEnvelope: format == "compact"}
			if format != "plain" {
				s.ResultFormat = lathe.ResultEnvelope
			}
			res, _, _ := one(t, open(t, &tool.Options{Policy: policy.AllowAll(), Settings: s}, tools()...), call(tt.tool, ""))
			got := strings.ReplaceAll(res.Content, `\n`, "\n")
			want = strings.ReplaceAll(want, `\n`, "\n")
			if got != want && !(tt.tool == "no.such" && strings.Contains(got, want)) {
				t.Errorf("%s %s:\n%s\nwant\n%s", tt.tool, format, got, want)
			}
		}
	}
}

func TestTruncatedEnvelopeWarns(t *testing.T) {
	t.Parallel()
	opts := limits(lathe.Limits{MaxOutputBytes: 120})
	opts.Settings = lathe.Settings{ResultFormat: lathe.ResultEnvelope, OversizeOutput: lathe.OversizeTruncate}
	res, _, _ := one(t, open(t, opts, reader("t", returns(`{"a":"`+strings.Repeat("x", 500)+`"}`))), call("t", ""))
	var v struct {
		OK       bool                    `json:"ok"`
		Data     struct{ Value string }  `json:"data"`
		Warnings []map[string]any        `json:"warnings"`
		Errors   []struct{ Code string } `json:"errors"`
	}
	if err := json.Unmarshal([]byte(res.Content), &v); err != nil {
		t.Fatalf("%v: %s", err, res.Content)
	}
	if !v.OK || len(v.Data.Value) > 120 || !strings.Contains(v.Data.Value, "of 508 bytes left out") || len(v.Errors) != 0 ||
		len(v.Warnings) != 1 || v.Warnings[0]["code"] != "output_truncated" || v.Warnings[0]["bytes"] != 508.0 || v.Warnings[0]["max_bytes"] != 120.0 {
		t.Errorf("answer %s", res.Content)
	}
}

// Every code that the root package names for calls has a text of its own, which says how to go on.
func TestEveryCodeHasAText(t *testing.T) {
	t.Parallel()
	codes := callCodes(t)
	if len(codes) != 22 {
		t.Errorf("%d codes of calls in error.go, want 22", len(codes))
	}
	seen := map[string]lathe.Code{}
	for _, code := range codes {
		w := open(t, nil, reader("t", func(context.Context, json.RawMessage) (*lathe.Output, error) { return nil, &lathe.Error{Code: code} }))
		res, rec, _ := one(t, w, call("t", ""))
		if res.Code != code {
			t.Errorf("%s comes out as %s", code, res.Code)
		}
		text, _ := errorOf(t, res)["message"].(string)
		if len(text) < 20 || strings.Count(text, ".") < 1 || find[*event.ToolCallResult](t, rec).Message != text {
			t.Errorf("%s: text %q", code, text)
		}
		if other, taken := seen[text]; taken {
			t.Errorf("%s and %s have one text", code, other)
		}
		seen[text] = code
	}
}

// callCodes reads the first block of codes from the root package's source.
func callCodes(t *testing.T) []lathe.Code {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../error.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var codes []lathe.Code
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			lit, ok := s.(*ast.ValueSpec).Values[0].(*ast.BasicLit)
			if !ok {
				t.Fatalf("error.go: a code that is no literal")
			}
			text, _ := strconv.Unquote(lit.Value)
			codes = append(codes, lathe.Code(text))
		}
		return codes
	}
	return nil
}

func TestFailureTextIsBounded(t *testing.T) {
	t.Parallel()
	w := open(t, nil, reader("t", func(context.Context, json.RawMessage) (*lathe.Output, error) {
		return nil, tool.Fail("no_such_code", "%s", "x"+strings.Repeat("ä", 2000)+"\xff")
	}))
	res, _, _ := one(t, w, call("t", ""))
	if detail := errorOf(t, res)["detail"].(string); res.Code != lathe.CodeExecutionFailed || detail != "x"+strings.Repeat("ä", 499) {
		t.Errorf("code %q, detail of %d bytes", res.Code, len(detail))
	}
}

func TestFailureCounts(t *testing.T) {
	t.Parallel()
	toggle := func(_ context.Context, args json.RawMessage) (*lathe.Output, error) {
		if strings.Contains(string(args), `"fail":true`) {
			return nil, errBoom
		}
		return &lathe.Output{Data: args}, nil
	}
	plain, targeted := reader("plain", toggle), reader("targeted", toggle)
	targeted.spec.Target = []string{"path", "host"}
	for _, tt := range []struct {
		name  string
		calls []tool.Call
		want  string
		ok    bool
	}{
		{"nothing", nil, "", false},
		{"success", []tool.Call{call("plain", `{}`)}, "", true},
		{"failure", []tool.Call{call("plain", `{"fail":true}`)}, "plain", false},
		{"the last counts", []tool.Call{call("plain", `{"fail":true}`), call("plain", `{}`)}, "", true},
		{"the last counts, the other way", []tool.Call{call("plain", `{}`), call("plain", `{"fail":true}`)}, "plain", true},
		{"refused arguments are a failure", []tool.Call{call("plain", `[`)}, "plain", false},
		{"sorted", []tool.Call{call("targeted", `{"fail":true}`), call("plain", `{"fail":true}`)}, "plain targeted", false},
		{"another target does not clear it", []tool.Call{call("targeted", `{"path":"a","fail":true}`), call("targeted", `{"path":"b"}`)}, "targeted", true},
		{"the same target clears it", []tool.Call{call("targeted", `{"path":"a","fail":true}`), call("targeted", `{"x":1,"path":"\u0061"}`)}, "", true},
		{"all target fields count", []tool.Call{call("targeted", `{"path":"a","host":1,"fail":true}`), call("targeted", `{"path":"a"}`)}, "targeted", true},
		{"unreadable, then any success", []tool.Call{call("targeted", `[`), call("targeted", `{"path":"b"}`)}, "", true},
		{"unknown", []tool.Call{call("nope", ``), call("plain", ``)}, "unknown", true},
	} {
		w := open(t, limits(lathe.Limits{MaxRepeatedCalls: 100}), plain, targeted)
		for i, c := range tt.calls {
			w.Execute(t.Context(), i+1, []tool.Call{c}, func(event.Data) {})
		}
		if got := strings.Join(w.Failed(), " "); got != tt.want || w.Succeeded() != tt.ok || w.Called() != (len(tt.calls) > 0) {
			t.Errorf("%s: failed %q succeeded %v called %v, want %q %v", tt.name, got, w.Succeeded(), w.Called(), tt.want, tt.ok)
		}
	}
}
