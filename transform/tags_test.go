package transform

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/lathe-run/lathe"
)

var tools = []*lathe.ToolSpec{{Name: "weather", Schema: []byte(`{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}}}`)}, {Name: "clock"}}

// speak reads text, cut in pieces of n bytes, and returns what was said, joined.
func speak(t testing.TB, text string, n int) ([]lathe.Delta, *lathe.Finish) {
	t.Helper()
	var pieces []lathe.Delta
	for rest := text; rest != ""; {
		k := min(n, len(rest))
		pieces = append(pieces, lathe.Delta{Kind: lathe.DeltaText, Text: rest[:k]})
		rest = rest[k:]
	}
	var parts []lathe.Part
	if text != "" {
		parts = []lathe.Part{lathe.Text{Text: text}}
	}
	pieces = append(pieces, lathe.Delta{Kind: lathe.DeltaFinish, Finish: &lathe.Finish{
		Message: lathe.Message{Role: lathe.RoleAssistant, Parts: parts}, Reason: lathe.FinishStop}})
	return answer(t, List{Response: []string{tagCalls}}, pieces...)
}

// answer passes an answer through a chain.
func answer(t testing.TB, list List, deltas ...lathe.Delta) ([]lathe.Delta, *lathe.Finish) {
	t.Helper()
	m := Wrap(script(deltas), mustChain(t, list))
	var emitted []lathe.Delta
	for d, err := range m.Generate(t.Context(), &lathe.Request{Messages: []lathe.Message{lathe.User("?")}, Tools: tools}) {
		if err != nil {
			t.Fatal(err)
		}
		if d.Kind == lathe.DeltaFinish {
			return emitted, d.Finish
		}
		if n := len(emitted); n > 0 && d.Kind == emitted[n-1].Kind && d.Index == emitted[n-1].Index &&
			(d.Kind == lathe.DeltaText || d.Kind == lathe.DeltaCallArgs || d.Kind == lathe.DeltaReasoning) {
			emitted[n-1].Text += d.Text
			continue
		}
		emitted = append(emitted, d)
	}
	t.Fatal("no finish")
	return nil, nil
}

func mustChain(t testing.TB, list List) *Chain {
	t.Helper()
	c, err := New(list, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A script is a model that gives the same deltas each time.
type script []lathe.Delta

func (script) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (s script) Generate(context.Context, *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		for _, d := range s {
			if !yield(d, nil) {
				return
			}
		}
	}
}

// show writes deltas in one line each.
func show(deltas []lathe.Delta) string {
	var b strings.Builder
	for _, d := range deltas {
		switch d.Kind {
		case lathe.DeltaText:
			fmt.Fprintf(&b, "text %q\n", d.Text)
		case lathe.DeltaReasoning:
			fmt.Fprintf(&b, "reasoning %q\n", d.Text)
		case lathe.DeltaCallStart:
			fmt.Fprintf(&b, "call %d %s %s\n", d.Index, d.ID, d.Name)
		case lathe.DeltaCallArgs:
			fmt.Fprintf(&b, "args %d %s\n", d.Index, d.Text)
		case lathe.DeltaCallEnd:
			fmt.Fprintf(&b, "end %d\n", d.Index)
		case lathe.DeltaParseError:
			fmt.Fprintf(&b, "error %s %q %d\n", d.Code, d.Name, d.Bytes)
		}
	}
	return b.String()
}

func TestTagsBecomeCalls(t *testing.T) {
	t.Parallel()
	call := func(n int, name, args string) string {
		s := fmt.Sprintf("call %d tag_call_%d %s\n", n, n+1, name)
		if args != "" {
			s += fmt.Sprintf("args %d %s\n", n, args)
		}
		return s + fmt.Sprintf("end %d\n", n)
	}
	for _, c := range []struct{ name, text, want string }{
		{"arguments", `<tool_call>{"name":"weather","arguments":{"city": "Oslo"}}</tool_call>`, call(0, "weather", `{"city": "Oslo"}`)},
		{"args", `<tool_call>{"name":"weather","args":{"city":"Oslo"}}</tool_call>`, call(0, "weather", `{"city":"Oslo"}`)},
		{"function", `<tool_call>{"function":{"name":"weather","arguments":{"city":"Oslo"}}}</tool_call>`, call(0, "weather", `{"city":"Oslo"}`)},
		{"function with text arguments", `<tool_call>{"function":{"name":"weather","arguments":"{}"}}</tool_call>`, call(0, "weather", `"{}"`)},
		{"name and JSON", "<tool_call>\nweather {\"city\":\"Oslo\"}\n</tool_call>", call(0, "weather", `{"city":"Oslo"}`)},
		{"bare name", "<tool_call>clock</tool_call>", call(0, "clock", "")},
		{"function tag", "<tool_call>\n<function=weather>\n<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>", call(0, "weather", `{"city":"Oslo"}`)},
		{"argument tags", "<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n</tool_call>", call(0, "weather", `{"city":"Oslo"}`)},
		{"several in a list", `<tool_call>[{"name":"clock","arguments":{}},{"name":"weather","arguments":{}}]</tool_call>`, call(0, "clock", "{}") + call(1, "weather", "{}")},
		{"text around", "  Let me see. <tool_call>clock</tool_call> Done.\n", "text \"  Let me see.\"\n" + call(0, "clock", "") + "text \" Done.\"\ntext \"\\n\"\n"},
		{"white space between two is none of the text", "<tool_call>clock</tool_call>\n\n<tool_call>clock</tool_call>\n", call(0, "clock", "") + call(1, "clock", "")},
		{"closing tag in a string", `<tool_call>{"name":"weather","arguments":{"city":"</tool_call>"}}</tool_call>`, call(0, "weather", `{"city":"</tool_call>"}`)},
		{"closing tag in a string under args", `<tool_call>{"name":"weather","args":{"city":"\"</tool_call>"}}</tool_call>`, call(0, "weather", `{"city":"\"</tool_call>"}`)},
		{"closing tag in a value", "<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value></tool_call></arg_value>\n</tool_call>", call(0, "weather", `{"city":"</tool_call>"}`)},
		{"no closing tag, whole", `<tool_call>{"name":"clock","arguments":{}}`, call(0, "clock", "{}")},
		{"no closing tag, cut", `a <tool_call>{"name":"clock","argu`, "text \"a\"\nerror incomplete_call \"\" 32\n"},
		{"a bare name that was cut", "<tool_call>clo", "error incomplete_call \"clo\" 14\n"},
		{"an unreadable one is not shown", `<tool_call>clock</tool_call> and <tool_call>{"name":</tool_call>`,
			call(0, "clock", "") + "text \"and\"\nerror tool_payload_parse_error \"\" 31\n"},
		{"an unreadable one before", `<tool_call>two words</tool_call><tool_call>clock</tool_call>`,
			"error tool_payload_parse_error \"two\" 32\n" + call(0, "clock", "")},
		{"a tag in a tag", `<tool_call>{"name":<tool_call>clock</tool_call>`,
			"error tool_payload_parse_error \"\" 19\n" + call(0, "clock", "")},
		{"code fence", "```\n<tool_call>clock</tool_call>\n```\n", "text \"```\\n<tool_call>clock</tool_call>\\n```\\n\"\n"},
		{"inline code", "Write `<tool_call>clock</tool_call>`.", "text \"Write `<tool_call>clock</tool_call>`.\"\n"},
		{"template", "{{ <tool_call>clock</tool_call> }}", "text \"{{ <tool_call>clock</tool_call> }}\"\n"},
		{"statement", "{% <tool_call>clock</tool_call> %}", "text \"{% <tool_call>clock</tool_call> %}\"\n"},
		{"escaped", `\<tool_call>clock</tool_call>`, "text \"\\\\<tool_call>clock</tool_call>\"\n"},
		{"thinking", "<think>\n<tool_call>clock</tool_call></think>No.", "reasoning \"\\n<tool_call>clock</tool_call>\"\ntext \"No.\"\n"},
		{"no tag", "a < b > c", "text \"a < b > c\"\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, n := range []int{1, 2, 7, len(c.text)} {
				got, f := speak(t, c.text, n)
				if diff := cmp.Diff(joinText(c.want), joinText(show(got))); diff != "" {
					t.Fatalf("in pieces of %d (-want +got):\n%s", n, diff)
				}
				calls := 0
				for _, p := range f.Message.Calls() {
					if p.ParseError == "" {
						calls++
					}
					if !p.Recovered {
						t.Errorf("the call %s is not marked as recovered", p.Name)
					}
				}
				if want := strings.Count(c.want, "call "); calls != strings.Count("\n"+c.want, "\ncall ") {
					t.Errorf("the message has %d calls, want %d", calls, want)
				}
				if len(f.Message.Calls()) > 0 != (f.Reason == lathe.FinishToolCalls) {
					t.Errorf("finish reason %s", f.Reason)
				}
			}
		})
	}
}

// joinText makes one line of text lines that follow one another.
func joinText(s string) string { return strings.ReplaceAll(s, "\"\ntext \"", "") }

func TestTagsGiveWayToCallsOfTheServer(t *testing.T) {
	t.Parallel()
	const text = `Look: <tool_call>{"name":"clock","arguments":{}}</tool_call>`
	own := lathe.ToolCall{ID: "c1", Name: "clock", Arguments: "{}"}
	deltas := []lathe.Delta{
		{Kind: lathe.DeltaText, Text: text}, {Kind: lathe.DeltaText, Text: " there."},
		{Kind: lathe.DeltaCallStart, ID: "c1", Name: "clock"}, {Kind: lathe.DeltaCallArgs, Text: "{}"}, {Kind: lathe.DeltaCallEnd},
		{Kind: lathe.DeltaFinish, Finish: &lathe.Finish{Reason: lathe.FinishToolCalls,
			Message: lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Text{Text: text + " there."}, own}}}},
	}
	for _, n := range []int{0, 2} { // streamed, and calls only
		got, f := answer(t, List{Response: []string{tagCalls}}, deltas[n:]...)
		if calls := f.Message.Calls(); len(calls) != 1 || calls[0].ID != "c1" {
			t.Errorf("got calls %v, want the server's own", calls)
		}
		if f.Message.Text() != text+" there." {
			t.Errorf("got text %q", f.Message.Text())
		}
		want := "call 0 c1 clock\nargs 0 {}\nend 0\n"
		if n == 0 {
			want = fmt.Sprintf("text %q\n", text+" there.") + want
			if diff := cmp.Diff(want, show(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
	}
}

func TestTagsAreNotReadWithoutTools(t *testing.T) {
	t.Parallel()
	const text = "<tool_call>clock</tool_call>"
	m := Wrap(script{{Kind: lathe.DeltaText, Text: text}, {Kind: lathe.DeltaFinish, Finish: &lathe.Finish{}}}, mustChain(t, List{Response: []string{tagCalls}}))
	for _, req := range []*lathe.Request{{}, {Tools: tools, ToolChoice: lathe.ToolChoice{Mode: lathe.ChoiceNone}}} {
		for d := range m.Generate(t.Context(), req) {
			if d.Kind == lathe.DeltaCallStart {
				t.Error("a call was read where no tools were offered")
			}
		}
	}
}

func TestTagBodyIsBounded(t *testing.T) {
	t.Parallel()
	body := `{"name":"clock","arguments":{"a":"` + strings.Repeat("x", 220_000) + `"}}`
	text := "<tool_call>" + body + "</tool_call> more"
	got, f := speak(t, text, 100)
	emitted := show(got)
	if !strings.Contains(emitted, fmt.Sprintf("error tool_payload_too_large \"\" %d\n", len(text)-len(" more"))) {
		t.Errorf("no error for what is too large: %.200s", emitted[max(0, len(emitted)-200):])
	}
	if allText(f.Message) != text {
		t.Error("the text that was too large is not in the message")
	}
	for _, d := range got {
		if len(d.Text) > maxExcerpt && d.Kind == lathe.DeltaParseError {
			t.Error("the excerpt is not bounded")
		}
	}
}

// allText returns the text of a message with the calls that could not be read.
func allText(m lathe.Message) string {
	text := ""
	for _, p := range m.Parts {
		if t, ok := p.(lathe.Text); ok {
			text += t.Text
		}
	}
	return text
}

// However a text is cut, the same is said, and no byte of text that is not a call is lost.
func FuzzTags(f *testing.F) {
	f.Add("a <tool_call>clock</tool_call> b", uint8(3))
	f.Add("<tool_call>{\"name\":\"x\",\"args\":{\"a\":\"</tool_call>\"}}</tool_call>", uint8(1))
	f.Add("```\n<tool_call>x</tool_call>\n```<tool_call><tool_call>\xff</tool_call>", uint8(2))
	f.Add("<tool_call>weather\n<arg_key>city</arg_key><arg_value>\"</tool_call>", uint8(5))
	f.Fuzz(func(t *testing.T, text string, n uint8) {
		whole, fw := speak(t, text, max(1, len(text)))
		cut, fc := speak(t, text, int(n)+1)
		if diff := cmp.Diff(joinText(show(whole)), joinText(show(cut))); diff != "" {
			t.Fatalf("the cut matters (-whole +cut):\n%s", diff)
		}
		if len(fw.Message.Calls()) != len(fc.Message.Calls()) {
			t.Fatal("the message depends on the cut")
		}
		if !strings.Contains(text, "<") && fw.Message.Text() != text {
			t.Fatalf("text without tags changed to %q", fw.Message.Text())
		}
	})
}

// A call waits for the end of the answer, but not behind text without end.
func TestTagsDoNotWaitForEver(t *testing.T) {
	t.Parallel()
	text := "<tool_call>clock</tool_call>" + strings.Repeat(" word", maxBuffered/4) + "<tool_call>clock</tool_call>"
	source := &endless{text: text}
	m := Wrap(source, mustChain(t, List{Response: []string{tagCalls}}))
	calls, early := 0, false
	for d, err := range m.Generate(t.Context(), &lathe.Request{Tools: tools}) {
		if err != nil {
			t.Fatal(err)
		}
		if d.Kind == lathe.DeltaCallStart {
			calls++
			early = early || !source.done
		}
		if d.Kind == lathe.DeltaFinish && len(d.Finish.Message.Calls()) != 2 {
			t.Errorf("the message has %d calls, want 2", len(d.Finish.Message.Calls()))
		}
	}
	if calls != 2 || !early {
		t.Errorf("got %d calls, want 2, one of them before the end: %v", calls, early)
	}
}

// endless gives its text in pieces, and knows when it has given all.
type endless struct {
	text string
	done bool
}

func (*endless) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (e *endless) Generate(context.Context, *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		for i := 0; i < len(e.text); i += 1000 {
			if !yield(lathe.Delta{Kind: lathe.DeltaText, Text: e.text[i:min(i+1000, len(e.text))]}, nil) {
				return
			}
		}
		e.done = true
		yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: &lathe.Finish{Message: lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Text{Text: e.text}}}}}, nil)
	}
}

// A server that does not stream gives its text with the finish only.
func TestTagsOfAnAnswerWithoutDeltas(t *testing.T) {
	t.Parallel()
	message := lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Reasoning{Text: "r"}, lathe.Text{Text: "a <tool_call>clock</tool_call>"}}}
	got, f := answer(t, List{Response: []string{tagCalls}}, lathe.Delta{Kind: lathe.DeltaFinish, Finish: &lathe.Finish{Message: message, Reason: lathe.FinishStop}})
	if diff := cmp.Diff("text \"a\"\ncall 0 tag_call_1 clock\nend 0\n", show(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want := []lathe.Part{lathe.Reasoning{Text: "r"}, lathe.Text{Text: "a "}, lathe.ToolCall{ID: "tag_call_1", Name: "clock", Dialect: tagDialect, Recovered: true}}
	if diff := cmp.Diff(want, f.Message.Parts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(f.Faults) != 1 || f.Faults[0].Kind != faultTagCall || f.Faults[0].Count != 1 || f.Reason != lathe.FinishToolCalls {
		t.Errorf("faults %v, reason %s", f.Faults, f.Reason)
	}
	if len(message.Parts) != 2 {
		t.Error("the model's own message has changed")
	}
}
