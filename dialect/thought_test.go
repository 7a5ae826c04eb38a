package dialect_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
)

// thinkMarks are the marks of thinking of the dialects that have others than `<think>`.
var thinkMarks = map[string][2]string{
	"seed-oss": {"<seed:think>", "</seed:think>"}, "mistral": {"[THINK]", "[/THINK]"}, "command-r7b": {"<|START_THINKING|>", "<|END_THINKING|>"},
	"apriel": {"Here are my reasoning steps:\n", "[BEGIN FINAL RESPONSE]"}, "apertus": {"<|inner_prefix|>", "<|inner_suffix|>"},
	"solar": {"<|think|>", "<|end|>"}, "gemma4": {"<|channel>thought\n", "<channel|>"},
}

var thoughtTools = []*lathe.ToolSpec{{Name: "add_numbers", Schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}}}`)}}

// openThought reads text in pieces and returns the calls in the thought that it leaves open, with those that the parser itself has read.
func openThought(t *testing.T, d *dialect.Dialect, opts *dialect.Options, text string, piece int) (thought string, calls []lathe.ToolCall) {
	t.Helper()
	p := d.NewParser(opts)
	var c dialect.Collector
	for rest := text; rest != ""; {
		n := min(piece, len(rest))
		c.AddAll(p.Append(nil, rest[:n]))
		rest = rest[n:]
	}
	deltas, _ := p.Flush(nil)
	c.AddAll(deltas)
	m := c.Message()
	thought = p.(dialect.Thinker).OpenThought()
	return thought, append(m.Calls(), d.CallsInThought(thought, opts)...)
}

// A model that ends its turn within its thought has made the calls that the thought ends with, in every dialect; not those that words
// follow, that it quotes, that it did not finish, that name no offered tool, or that stand in a thought that it closed.
func TestOpenThoughtEndsWithItsCalls(t *testing.T) {
	t.Parallel()
	for _, name := range dialect.Names() {
		if name == "auto" || name == "harmony" || name == "glimmer" { // a call of the last two is a message of its own
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, _ := dialect.Lookup(name)
			write := func(tool string) string {
				return string(d.AppendCall(nil, lathe.ToolCall{ID: "call00001", Name: tool, Arguments: `{"a":7,"b":35}`}))
			}
			call := write("add_numbers")
			marks, ok := thinkMarks[name]
			if !ok {
				marks = [2]string{"<think>", "</think>"}
			}
			lead := ""
			if name == "functionary-v3.2" {
				lead = "all\n"
			}
			for what, c := range map[string]struct {
				text  string
				calls int
			}{
				"at the end":           {marks[0] + "I need the sum.\n" + call, 1},
				"with words behind it": {marks[0] + "I could write\n" + call + "\nNo, rather not.", 0},
				"one of two":           {marks[0] + "Say\n" + strings.Replace(call, "35", "36", 1) + "\nNo, rather\n" + call + "\n", 1},
				"after a text":         {"Let me see.\n" + marks[0] + "Hm.\n" + call, 1},
				"two":                  {marks[0] + call + "\n" + call, 2},
				"closed":               {marks[0] + "I may write\n" + call + "\n" + marks[1] + "No.", 0},
				"quoted":               {marks[0] + "Such as\n```\n" + call + "\n```\nor so.", 0},
				"cut off":              {marks[0] + "Now\n" + call[:len(call)/2], 0},
				"of another tool":      {marks[0] + "Now\n" + write("multiply"), 0},
			} {
				for _, piece := range []int{len(lead + c.text), 1, 7} {
					opts := &dialect.Options{Tools: thoughtTools}
					thought, calls := openThought(t, d, opts, lead+c.text, piece)
					whole := 0
					for _, call := range calls {
						if !call.Incomplete && call.ParseError == "" {
							whole++
						}
					}
					if whole != c.calls {
						t.Errorf("%s: %d calls %+v in the thought %q, want %d", what, whole, calls, thought, c.calls)
						break
					}
					if c.calls > 0 && (calls[0].Name != "add_numbers" || strings.Join(strings.Fields(calls[0].Arguments), "") != `{"a":7,"b":35}`) {
						t.Errorf("%s: %+v", what, calls[0])
					}
					opts.IgnoreOpenThoughts = true
					if _, calls := openThought(t, d, opts, lead+c.text, piece); len(calls) > 0 && what != "cut off" {
						t.Errorf("%s: %+v, though such calls are ignored", what, calls)
					}
				}
			}
		})
	}
}

// Only the calls at the end of a thought are taken, by whatever way it is read, and none if there is a call outside of it.
func TestOpenThoughtHasOnlyTheCallsAtItsEnd(t *testing.T) {
	t.Parallel()
	tools := []*lathe.ToolSpec{{Name: "wipe"}, {Name: "list"}}
	hermes := func(name string) string { return `<tool_call>{"name":"` + name + `","arguments":{}}</tool_call>` }
	coder := func(name string) string { return "<tool_call>\n<function=" + name + ">\n</function>\n</tool_call>" }
	kimi := func(name string) string {
		return "<|tool_calls_section_begin|><|tool_call_begin|>functions." + name + ":0<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>"
	}
	for name, write := range map[string]func(string) string{"hermes": hermes, "qwen3-coder": coder, "kimi-k2": kimi} {
		d, _ := dialect.Lookup(name)
		for text, want := range map[string]string{
			"I might " + write("wipe") + ". That loses all.":                                "",
			"I might " + write("wipe") + "\n\nThat loses all.":                              "",
			"One way: " + write("wipe") + " Hm no. Other:\n" + write("list"):                "list",
			"So:\n" + write("list") + "\n\n" + write("wipe") + " \n":                        "list wipe",
			"Not\n" + write("wipe") + " but\n" + write("list") + "\n" + write("list"):       "list list",
			write("wipe") + " no. " + write("list") + write("shout"):                        "",
			write("list") + " and <tool_call> or so":                                        "",
			"So:\n" + write("list") + write("list")[strings.LastIndex(write("list"), "<"):]: "list",
		} {
			opts := &dialect.Options{Tools: tools}
			if got := names(d.CallsInThought(text, opts)); got != want {
				t.Errorf("%s: %q: the calls are %q, want %q", name, text, got, want)
			}
			for _, whole := range []string{"<think>" + text, "<think>\n" + text + "<|im_end|>"} {
				m, _ := d.Read(slices.Values([]string{whole}), opts)
				if got := names(m.Calls()); got != want {
					t.Errorf("%s: %q: the calls are %q, want %q", name, whole, got, want)
				}
			}
			m, _ := d.Read(slices.Values([]string{"<think>" + text + "</think>Hello."}), opts)
			if got := names(m.Calls()); got != "" || m.Text() != "Hello." {
				t.Errorf("%s: %q, closed: the calls are %q, the text %q", name, text, got, m.Text())
			}
		}
		m, _ := d.Read(slices.Values([]string{write("list") + "\n<think>Or " + write("wipe")}), &dialect.Options{Tools: tools})
		if got := names(m.Calls()); got != "list" {
			t.Errorf("%s, after a call: the calls are %q", name, got)
		}
	}
}

func names(calls []lathe.ToolCall) string {
	var list []string
	for _, c := range calls {
		list = append(list, c.Name)
	}
	return strings.Join(list, " ")
}

// A mark that opens no call does not hide the call after it.
func TestAThoughtIsReadAgainAfterAMarkThatOpensNoCall(t *testing.T) {
	t.Parallel()
	const call = "<tool_call>\n<function=add_numbers>\n<parameter=a>\n7\n</parameter>\n</function>\n</tool_call>"
	d, _ := dialect.Lookup("qwen3-coder")
	opts := &dialect.Options{Tools: thoughtTools}
	if calls := d.CallsInThought("The tag is <tool_call> here.\n"+call, opts); len(calls) != 1 || calls[0].Arguments != `{"a":7}` {
		t.Errorf("%+v", calls)
	}
	if calls := d.CallsInThought(strings.Repeat("a <tool_call> b\n", 5000)+call, opts); len(calls) != 0 { // bounded
		t.Errorf("%+v", calls)
	}
}

// Whether a message is one bare call does not depend on how it comes; text behind the object makes all of it text.
func TestBareCallsAreTheWholeMessage(t *testing.T) {
	t.Parallel()
	d, _ := dialect.Lookup("hermes")
	const call = `{"name": "add_numbers", "arguments": {"a": 7}}`
	for text, want := range map[string]int{
		call: 1, call + "\n": 1, "```json\n" + call + "\n```": 1, "```\n" + call + "\n```\n": 1,
		call + " is a call.": 0, call + call: 0, "So: " + call: 0, "```json\n" + call + "\n```\nThat is it.": 0, "```go\n" + call + "\n```": 0, call[:len(call)-1]: 0,
		`{"name": "add_numbers", "arguments": {"a": "7"}}`: 0, `{"name": "add_numbers", "arguments": {"c": 7}}`: 0, `{"name": "add_numbers", "args": {}}`: 0, "```": 0, "": 0,
	} {
		for piece := 1; piece <= len(text); piece++ {
			var c dialect.Collector
			p := d.NewParser(&dialect.Options{Tools: thoughtTools, BareCalls: true})
			for rest := text; rest != ""; {
				n := min(piece, len(rest))
				c.AddAll(p.Append(nil, rest[:n]))
				rest = rest[n:]
			}
			deltas, _ := p.Flush(nil)
			c.AddAll(deltas)
			m := c.Message()
			if len(m.Calls()) != want || want == 0 && m.Text() != text {
				t.Fatalf("%q in pieces of %d: %+v", text, piece, m)
			}
		}
	}
}
