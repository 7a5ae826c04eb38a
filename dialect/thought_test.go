package dialect_test

import (
	"encoding/json"
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

// A model that ends its turn within its thought has made the calls that stand in it, in every dialect; not those that it quotes, that it
// did not finish, that name no offered tool, or that stand in a thought that it closed.
func TestCallsInAThoughtThatIsNotClosed(t *testing.T) {
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
			special := name == "kimi-k2" // its marks of calls end a thought, and cannot be quoted in one
			for what, c := range map[string]struct {
				text  string
				calls int
			}{
				"at the end":           {marks[0] + "I need the sum.\n" + call, 1},
				"with words behind it": {marks[0] + "Now\n" + call + "\nThat is it.", 1},
				"after a text":         {"Let me see.\n" + marks[0] + "Hm.\n" + call, 1},
				"two":                  {marks[0] + call + "\n" + call, 2},
				"closed":               {marks[0] + "I may write\n" + call + "\n" + marks[1] + "No.", 0},
				"quoted":               {marks[0] + "Such as\n```\n" + call + "\n```\nor so.", 0},
				"cut off":              {marks[0] + "Now\n" + call[:len(call)/2], 0},
				"of another tool":      {marks[0] + "Now\n" + write("multiply"), 0},
			} {
				if special && (what == "closed" || what == "quoted" || what == "of another tool") {
					continue
				}
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
