package dialect_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/testkit/dialecttest"
)

// harmonyDiffers lists the vectors whose expectation we do not share, and what we do instead.
var harmonyDiffers = map[string]struct{ why, want string }{
	"harmony-003": {"a header with words left over is an error there; a parser here never fails",
		"text \"... Let's use the tool.\"\ncall 0 \"get_weather\"\nargs 0 \"{\\\"location\\\": \\\"Tokyo\\\"}\"\nend 0\n"},
	"harmony-007": {"the same", "commentary \"Hello\"\n"},
}

// A vector is one record of harmony.jsonl.
type vector struct {
	ID     string `json:"id"`
	Kind   string `json:"kind"`
	Input  string `json:"input"`
	Expect struct {
		Messages []struct {
			Role, Text, Channel, Recipient string
		}
		MessageCount     int `json:"message_count"`
		Role             string
		Channel          string
		Recipient        string
		Thinking         string
		Content          *string
		ContentContains  string `json:"content_contains"`
		DeprecatedSyntax bool   `json:"deprecated_syntax"`
		Calls            []struct {
			Name          string
			Arguments     any
			ArgumentsText *string `json:"arguments_text"`
		}
		TruncatedCall *struct{ Name string } `json:"truncated_call"`
		Error         string
	}
	Steps []struct {
		Chunk  string
		Events []struct {
			E, Text, Role, Channel, Recipient string
		}
	}
}

func TestHarmonyVectors(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(testdata.Dir(t, "toolcall-vectors", "harmony.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	n, differs := 0, 0
	for line := range strings.Lines(string(data)) {
		var v vector
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		n++
		t.Run(v.ID, func(t *testing.T) {
			name, opts := "harmony", &dialect.Options{}
			if strings.HasPrefix(v.Input, "<tool") || strings.Contains(v.Input, "<tool:") {
				name, opts.AllowDeprecatedSyntax = "tags", v.Expect.DeprecatedSyntax || strings.Contains(v.Input, "<tool:")
			}
			if v.Kind == "header" {
				v.Input = "<|start|>" + v.Input + "<|message|>x<|end|>"
			}
			d, _ := dialect.Lookup(name)
			deltas := dialecttest.Check(t, func() dialect.Parser { return d.NewParser(opts) }, "", v.Input)
			got := dialecttest.Format(deltas)
			if differ, ok := harmonyDiffers[v.ID]; ok {
				differs++
				if got != differ.want {
					t.Errorf("%s:\n got:\n%s\nwant:\n%s", differ.why, got, differ.want)
				}
				return
			}
			if v.Kind == "real-world-malformed" || v.Kind == "private-dialect" {
				v.checkCalls(t, deltas)
				return
			}
			if want := dialecttest.Format(dialecttest.Join(v.wantDeltas())); want != "" && got != want {
				t.Errorf("%q:\n got:\n%s\nwant:\n%s", v.Input, got, want)
			}
		})
	}
	if n != 55 || differs != len(harmonyDiffers) {
		t.Errorf("%d vectors of which %d differ, want 55 and %d", n, differs, len(harmonyDiffers))
	}
}

// wantDeltas says the expected messages in our terms. There the recipient of a call is a fact
// about a message; here it makes a call.
func (v *vector) wantDeltas() []lathe.Delta {
	var out []lathe.Delta
	calls := 0
	message := func(role, channel, recipient, text string) {
		kind := lathe.DeltaText
		switch {
		case recipient != "" && recipient != "assistant":
			out = append(out, lathe.Delta{Kind: lathe.DeltaCallStart, Index: calls, Name: strings.TrimPrefix(recipient, "functions.")})
			if text != "" {
				out = append(out, lathe.Delta{Kind: lathe.DeltaCallArgs, Index: calls, Text: text})
			}
			out = append(out, lathe.Delta{Kind: lathe.DeltaCallEnd, Index: calls})
			calls++
			return
		case channel == "analysis" || channel == "thinking":
			kind = lathe.DeltaReasoning
		case channel == "commentary":
			kind = lathe.DeltaCommentary
		}
		if text != "" {
			out = append(out, lathe.Delta{Kind: kind, Text: text})
		}
	}
	switch v.Kind {
	case "messages":
		for _, m := range v.Expect.Messages {
			message(m.Role, m.Channel, m.Recipient, m.Text)
		}
	case "header":
		message(v.Expect.Role, v.Expect.Channel, v.Expect.Recipient, "x")
	case "steps":
		var role, channel, recipient, text string
		for _, s := range v.Steps {
			for _, e := range s.Events {
				switch e.E {
				case "header":
					role, channel, recipient, text = e.Role, e.Channel, e.Recipient, ""
				case "content":
					text += e.Text
				case "end":
					message(role, channel, recipient, text)
				}
			}
		}
	}
	return out
}

// checkCalls compares calls by name and by the value of their arguments.
func (v *vector) checkCalls(t *testing.T, deltas []lathe.Delta) {
	t.Helper()
	var c dialect.Collector
	c.AddAll(deltas)
	m := c.Message()
	var thinking string
	var calls []lathe.ToolCall
	for _, p := range m.Parts {
		switch p := p.(type) {
		case lathe.Reasoning:
			thinking += p.Text
		case lathe.ToolCall:
			if p.ParseError == "" {
				calls = append(calls, p)
			}
		}
	}
	x := v.Expect
	switch {
	case x.Error != "":
		f := c.Failures()
		if len(f) != 1 || string(f[0].Code) != x.Error || len(calls) != 0 {
			t.Errorf("failures %+v, calls %+v, want one of %s and no call", f, calls, x.Error)
		}
		return
	case x.TruncatedCall != nil:
		if len(calls) != 1 || !calls[0].Incomplete || calls[0].Name != x.TruncatedCall.Name {
			t.Errorf("calls %+v, want %s incomplete", calls, x.TruncatedCall.Name)
		}
		return
	}
	if len(calls) != len(x.Calls) {
		t.Fatalf("%d calls, want %d", len(calls), len(x.Calls))
	}
	for i, want := range x.Calls {
		got := calls[i]
		if got.Name != want.Name || got.Incomplete || got.Deprecated != x.DeprecatedSyntax && v.ID != "harmony-054" {
			t.Errorf("call %d is %+v, want %s", i, got, want.Name)
		}
		if want.ArgumentsText != nil && got.Arguments != *want.ArgumentsText {
			t.Errorf("arguments %q, want %q", got.Arguments, *want.ArgumentsText)
		}
		if want.Arguments != nil {
			var value any
			if err := json.Unmarshal([]byte(got.Arguments), &value); err != nil {
				t.Fatalf("arguments %q: %v", got.Arguments, err)
			}
			a, _ := json.Marshal(value)
			b, _ := json.Marshal(want.Arguments)
			if string(a) != string(b) {
				t.Errorf("arguments %s, want %s", a, b)
			}
		}
	}
	if x.Content != nil && m.Text() != *x.Content {
		t.Errorf("text %q, want %q", m.Text(), *x.Content)
	}
	if !strings.Contains(m.Text(), x.ContentContains) {
		t.Errorf("text %q, want it to hold %q", m.Text(), x.ContentContains)
	}
	if x.Thinking != "" && thinking != x.Thinking {
		t.Errorf("reasoning %q, want %q", thinking, x.Thinking)
	}
}
