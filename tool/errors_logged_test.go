package tool_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

// With LogErrors the log says why a tool failed, without what looks like a key, and cut; without it the log says nothing of that.
func TestErrorsOfToolsAreLoggedIfAsked(t *testing.T) {
	t.Parallel()
	all := &tool.FuncOptions{Show: []string{"*"}}
	returns := func(o *lathe.Output, err error) lathe.Tool {
		return tool.Func("t", "d", func(context.Context, struct{}) (*lathe.Output, error) { return o, err }, all)
	}
	for name, tt := range map[string]struct {
		tool lathe.Tool
		want string
		code lathe.Code
	}{
		"an error":          {returns(nil, errors.New("db down: dial 10.0.0.1 with Bearer abcdefghijklmnop")), `error="db down: dial 10.0.0.1 with Bearer [redacted]"`, lathe.CodeExecutionFailed},
		"a failure":         {returns(nil, tool.Fail(lathe.CodeUnavailable, "no such file: a.txt")), `error="no such file: a.txt"`, lathe.CodeUnavailable},
		"an output":         {returns(&lathe.Output{IsError: true, Data: []byte(`{"error":"ENOENT"}`)}, nil), `error="{\"error\":\"ENOENT\"}"`, lathe.CodeExecutionFailed},
		"an unusable one":   {returns(&lathe.Output{Data: []byte(`{`)}, nil), `error="the output is not JSON`, lathe.CodeInvalidOutput},
		"a long one":        {returns(nil, errors.New(strings.Repeat("x", 10_000))), strings.Repeat("x", 400), lathe.CodeExecutionFailed},
		"bytes":             {returns(nil, errors.New("a\xffb\nc")), `error="a�b\nc"`, lathe.CodeExecutionFailed},
		"no failure at all": {returns(&lathe.Output{Data: []byte(`{}`)}, nil), "", ""},
	} {
		for _, asked := range []bool{true, false} {
			var log bytes.Buffer
			set, err := tool.NewSet(tt.tool)
			if err != nil {
				t.Fatal(err)
			}
			r, err := tool.NewRunner(set, &tool.Options{Policy: policy.AllowAll(), Log: slog.New(slog.NewTextHandler(&log, nil)), LogErrors: asked})
			if err != nil {
				t.Fatal(err)
			}
			_, _ = r.Call(t.Context(), "t", nil)
			text := log.String()
			if want := asked && tt.want != ""; (text != "") != want || want && (!strings.Contains(text, tt.want) || !strings.Contains(text, "tool_name=t tool_call_id=call_") || !strings.Contains(text, "level=WARN") || !strings.Contains(text, "run_id=run_") || !strings.Contains(text, " code="+string(tt.code)+" ") || len(text) > 900) {
				t.Errorf("%s, asked %t: %s", name, asked, text)
			}
		}
	}
}

// The error of a call that was allowed and failed does not name the rule that allowed it.
func TestErrorOfAFailedToolDoesNotBlamePolicy(t *testing.T) {
	t.Parallel()
	fails := tool.Func("fails", "d", func(context.Context, struct{}) (struct{}, error) { return struct{}{}, errors.New("x") }, &tool.FuncOptions{Show: []string{"*"}, Effect: lathe.ReadOnly})
	writes := tool.Func("writes", "d", func(context.Context, struct{}) (struct{}, error) { return struct{}{}, nil }, &tool.FuncOptions{Show: []string{"*"}, Effect: lathe.Writes})
	set, err := tool.NewSet(fails, writes)
	if err != nil {
		t.Fatal(err)
	}
	r, err := tool.NewRunner(set, &tool.Options{Policy: policy.Default()})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"fails": false, "writes": true} {
		_, err := r.Call(t.Context(), name, nil)
		var e *tool.CallError
		if !errors.As(err, &e) || (e.Rule != "") != want || strings.Contains(err.Error(), "policy") != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A Show that names no member of the JSON of the output is an error when the tool is registered.
func TestShowNamesMembersOfTheOutput(t *testing.T) {
	t.Parallel()
	type inner struct{ ID string }
	type out struct {
		Name  string `json:"name"`
		Items []inner
		inner
	}
	fn := func(context.Context, struct{}) (*out, error) { return nil, nil }
	for show, want := range map[string]string{"*": "", "name": "", "Items.*.ID": "", "*.x": "", "Name": `did you mean name?`, "title": `no member "title"`} {
		_, err := tool.NewSet(tool.Func("t", "d", fn, &tool.FuncOptions{Show: []string{show}}))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", show, err, want)
		}
	}
	of := map[string]lathe.Tool{
		"a map":       tool.Func("t", "d", func(context.Context, struct{}) (map[string]any, error) { return nil, nil }, &tool.FuncOptions{Show: []string{"x"}}),
		"any":         tool.Func("t", "d", func(context.Context, struct{}) (any, error) { return nil, nil }, &tool.FuncOptions{Show: []string{"x"}}),
		"an Output":   tool.Func("t", "d", func(context.Context, struct{}) (*lathe.Output, error) { return nil, nil }, &tool.FuncOptions{Show: []string{"x"}}),
		"its own":     tool.Func("t", "d", func(context.Context, struct{}) (ownJSON, error) { return ownJSON{}, nil }, &tool.FuncOptions{Show: []string{"x"}}),
		"list of any": tool.Func("t", "d", func(context.Context, struct{}) ([]any, error) { return nil, nil }, &tool.FuncOptions{Show: []string{"x"}}),
	}
	for name, one := range of {
		if _, err := tool.NewSet(one); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type ownJSON struct{ A string }

func (ownJSON) MarshalJSON() ([]byte, error) { return []byte(`{"x":1}`), nil }
