package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/tool"
)

const askedForm = `{"type":"object","properties":{
"name":{"type":"string","title":"Your \u202ename","default":"John"},
"age":{"type":"integer","description":"In years","minimum":0},
"level":{"type":"string","enum":["low","high"],"enumNames":["Low","High"]},
"sure":{"type":"boolean"}},"required":["age","sure"]}`

func TestTerminalAsks(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, typed, want string }{
		{"answers", "y\nJane\n42\nhigh\nyes\n", `{"age":42,"level":"high","name":"Jane","sure":true}`},
		{"defaults and what need not be there", "y\n\n42\n\nn\n", `{"age":42,"name":"John","sure":false}`},
		{"what does not fit is asked for again", "y\n\n-1\nx\n\n7\nmiddle\nlow\nmaybe\ny\n", `{"age":7,"level":"low","name":"John","sure":true}`},
		{"what never fits", "y\n\nx\nx\nx\nx\nx\n7\n", "cancel"},
		{"no", "n\n", "decline"},
		{"nothing", "\n", "cancel"},
		{"anything else", "maybe\n", "cancel"},
		{"the end of input", "", "cancel"},
		{"the end of input in the middle", "y\n\n", "cancel"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			a := newTerminalApprover(strings.NewReader(tc.typed), &screen{err: &out})
			ctx := tool.WithAsker(t.Context(), a)
			got, err := tool.AskOne(ctx, "form", tool.Question{Form: &tool.Form{Message: "the MCP server x asks: \x1b[31mwho?\nReally?", Schema: json.RawMessage(askedForm)}})
			if err != nil {
				t.Fatal(err)
			}
			if answer := got.Refused + string(got.Form); answer != tc.want {
				t.Errorf("got %s, want %s; shown:\n%s", answer, tc.want, out.String())
			}
			shown := out.String()
			if strings.ContainsAny(shown, "\x1b\u202e") || !strings.Contains(shown, "  | Really?\n") || !strings.Contains(shown, "do not answer with passwords") {
				t.Errorf("shown: %q", shown)
			}
		})
	}
}

func TestTerminalShowsAddresses(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{"y\n": "", "n\n": "decline", "\n": "cancel", "": "cancel", "maybe\n": "cancel"} {
		for _, before := range []bool{false, true} {
			var out bytes.Buffer
			a := newTerminalApprover(strings.NewReader(typed), &screen{err: &out})
			got, err := tool.AskOne(tool.WithAsker(t.Context(), a), "pay", tool.Question{Link: &tool.Link{
				Message: "the MCP server x asks: \x1b[31mpay\nit is example.com", URL: "https://pay.example.com/example.org", Before: before}})
			if err != nil || got.Refused != want {
				t.Errorf("%q: got %+v, %v", typed, got, err)
			}
			shown := out.String()
			if strings.Contains(shown, "\x1b") || !strings.HasPrefix(shown, "\na tool asks you to visit pay.example.com\n") || !strings.Contains(shown, "  | it is example.com\n") ||
				!strings.Contains(shown, "  address: https://pay.example.com/example.org\n") || strings.Contains(shown, "I have been there") != before {
				t.Errorf("shown: %q", shown)
			}
		}
	}
}

func TestTerminalCannotAskEverything(t *testing.T) {
	t.Parallel()
	a := newTerminalApprover(strings.NewReader("y\n"), &screen{err: io.Discard})
	for name, q := range map[string]tool.Question{
		"a model": {Sample: &tool.Sample{}}, "folders": {Roots: true}, "an address that is none": {Link: &tool.Link{URL: "mailto:x"}},
		"a host of other letters": {Link: &tool.Link{URL: "https://%D0%B0pple.com/"}}, "a host with a slash that is none": {Link: &tool.Link{URL: "https://google.com%E2%88%95login.evil.com/"}},
		"a form that is none": {Form: &tool.Form{Schema: json.RawMessage(`{"properties":{"a":{"type":"object"}}}`)}},
	} {
		if _, err := a.Ask(t.Context(), map[string]tool.Question{"q": q}); !errors.Is(err, tool.ErrCannotAsk) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	keys, _ := io.Pipe()
	b := newTerminalApprover(keys, &screen{err: io.Discard})
	if _, err := b.Ask(ctx, map[string]tool.Question{"q": {Form: &tool.Form{Schema: json.RawMessage(askedForm)}}}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	_ = keys.Close()
}
