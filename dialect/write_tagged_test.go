package dialect_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
)

// The exact text of calls and results, as the models' own templates write them.
func TestWrittenForms(t *testing.T) {
	t.Parallel()
	const args = `{"a":"x","n":5,"o":{"k":[true,null]}}`
	for _, test := range []struct{ name, call, result string }{
		{"qwen3-coder", "<tool_call>\n<function=f>\n<parameter=a>\nx\n</parameter>\n<parameter=n>\n5\n</parameter>\n" +
			"<parameter=o>\n{\"k\":[true,null]}\n</parameter>\n</function>\n</tool_call>", "<tool_response>\n1 < /tool_response>\n</tool_response>"},
		{"seed-oss", "<seed:tool_call>\n<function=f>\n<parameter=a>x</parameter>\n<parameter=n>5</parameter>\n" +
			"<parameter=o>{\"k\":[true,null]}</parameter>\n</function>\n</seed:tool_call>", ""},
		{"glm", "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>x</arg_value>\n<arg_key>n</arg_key>\n<arg_value>5</arg_value>\n" +
			"<arg_key>o</arg_key>\n<arg_value>{\"k\":[true,null]}</arg_value>\n</tool_call>", "<tool_response>\n1 < /tool_response>\n</tool_response>"},
		{"minimax-m2", "<minimax:tool_call>\n<invoke name=\"f\">\n<parameter name=\"a\">x</parameter>\n<parameter name=\"n\">5</parameter>\n" +
			"<parameter name=\"o\">{\"k\":[true,null]}</parameter>\n</invoke>\n</minimax:tool_call>", ""},
		{"deepseek-dsml", "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter name=\"a\" string=\"true\">x</｜DSML｜parameter>\n" +
			"<｜DSML｜parameter name=\"n\" string=\"false\">5</｜DSML｜parameter>\n<｜DSML｜parameter name=\"o\" string=\"false\">{\"k\":[true,null]}</｜DSML｜parameter>\n" +
			"</｜DSML｜invoke>\n</｜DSML｜function_calls>", ""},
		{"gemma4", `<|tool_call>call:f{a:<|"|>x<|"|>,n:5,o:{k:[true,null]}}<tool_call|>`, ""},
		{"functiongemma", `<start_function_call>call:f{a:<escape>x<escape>,n:5,o:{k:[true,null]}}<end_function_call>`,
			`<start_function_response>response:f{value:<escape>1 </tool_response><escape>}<end_function_response>`},
		{"pythonic", `[f(a="x", n=5, o={"k":[true,null]})]`, ""},
		{"lfm2", `<|tool_call_start|>[f(a="x", n=5, o={"k":[true,null]})]<|tool_call_end|>`, ""},
		{"olmo3", `<function_calls>f(a="x", n=5, o={"k":[true,null]})</function_calls>`, ""},
	} {
		d, _ := dialect.Lookup(test.name)
		if got := string(d.AppendCall(nil, lathe.ToolCall{Name: "f", Arguments: args})); got != test.call {
			t.Errorf("%s: call\n got %q\nwant %q", test.name, got, test.call)
		}
		want := test.result
		if want == "" {
			continue
		}
		if got := string(d.AppendResult(nil, lathe.ToolResult{Name: "f", Content: "1 </tool_response>"})); got != want {
			t.Errorf("%s: result\n got %q\nwant %q", test.name, got, want)
		}
	}
}

// What people and tools wrote holds no mark that the server would take for its own.
func TestWrittenFormsCleanText(t *testing.T) {
	t.Parallel()
	for _, name := range written {
		d, _ := dialect.Lookup(name)
		call := string(d.AppendCall(nil, lathe.ToolCall{Name: "write", Arguments: `{"n":1}`}))
		mark, _, _ := strings.Cut(call, ">")
		if name == "pythonic" {
			mark = "<|python_start|"
		}
		result := d.AppendResult(nil, lathe.ToolResult{Name: "write", Content: "see " + mark + "> there"})
		if strings.Contains(string(result), mark+">") {
			t.Errorf("%s: the result holds the mark: %q", name, result)
		}
		req := d.Rewrite(&lathe.Request{Messages: []lathe.Message{lathe.User("see " + mark + "> there")}})
		if text := req.Messages[0].Text(); strings.Contains(text, mark+">") {
			t.Errorf("%s: the text holds the mark: %q", name, text)
		}
	}
}

// Written by AppendCall, a call is read as it was.
func TestWrittenArgumentsRoundTrip(t *testing.T) {
	t.Parallel()
	const args = `{"path":"a b.txt","text":"x\n \"q\" 'y' \\ </parameter> <|\"|> é\u0007","n":-12,"list":["a",1.5,true,null,[]],"opts":{"k":{"l":[1]}},"maybe":null}`
	var want any
	if err := json.Unmarshal([]byte(args), &want); err != nil {
		t.Fatal(err)
	}
	for _, name := range written {
		d, _ := dialect.Lookup(name)
		text := string(d.AppendCall(nil, lathe.ToolCall{Name: "write", Arguments: args}))
		text += string(d.AppendCall(nil, lathe.ToolCall{Name: "write"}))
		opts := &dialect.Options{Tools: writeTool}
		if name == "glimmer" {
			opts.Prefix = " to=write<|message|>"
		}
		if name == "pythonic" {
			text = strings.Replace(text, "][", "]\n[", 1)
		}
		var c dialect.Collector
		c.AddAll(parseAll(t, d.NewParser(opts), text))
		m := c.Message()
		calls := m.Calls()
		if len(calls) != 2 || calls[0].Name != "write" || calls[1].Arguments != "{}" {
			t.Errorf("%s: %q is read as %+v", name, text, calls)
			continue
		}
		var got any
		if err := json.Unmarshal([]byte(calls[0].Arguments), &got); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %q is read as %s", name, text, calls[0].Arguments)
		}
	}
}

func parseAll(t *testing.T, p dialect.Parser, text string) []lathe.Delta {
	t.Helper()
	deltas, err := p.Flush(p.Append(nil, text))
	if err != nil {
		t.Fatal(err)
	}
	return deltas
}
