package dialect

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testdata"
)

// hostileJSON are texts that are repeated without end, after the beginnings of blocks.
var hostileJSON = []string{
	"a", " ", "\n", "<", "<|", "{", "[", "`", "```json\n", "{\"", "[{", "{\"name\": \"f\"", "{\"name\": \"f\", \"arguments\": {}}", "{\"parameters\": [",
	"<tool_call>", "</tool_call>", "<tool_call>{", "[TOOL_CALLS]", "[TOOL_CALLS]" + strings.Repeat("a", 300), "[TOOL_CALLS][", "[ARGS]", "[THINK]", "[/THINK]",
	"<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<｜tool▁call▁begin｜>f<｜tool▁sep｜>", "<｜tool▁calls▁end｜>",
	"<|tool_calls_section_begin|>", "<|tool_call_begin|>f:0", "<|tool_call_end|>", "<|START_ACTION|>[", "<|END_ACTION|>", "</co: 0",
	"<|tools_prefix|>[{\"a\"", "<function=", ">>>f\n", ">>>", "<|python_tag|>f.call(", "<|python_tag|>f.call(a=\"", "a=1,", "{\"function\": {", "functools[", "<|tool_call:begin|>", "<think>", ",", ";", "]", "}", `\"`, "\"",
}

// Whatever the text, each byte is looked at a bounded number of times, and what is buffered, and
// what is said, does not grow beyond it.
func TestJSONWorkIsLinear(t *testing.T) {
	t.Parallel()
	const n, payload = 1 << 11, 512
	leads := []string{"", "<tool_call>", "<tool_call>{\"arguments\": \"", "[TOOL_CALLS]", "<｜tool▁calls▁begin｜>", "<|tool_calls_section_begin|><|tool_call_begin|>f:0<|tool_call_argument_begin|>{",
		"<|START_ACTION|>[", "{\"name\": \"f\", \"parameters\": {}}"}
	o := &Options{Tools: []*lathe.ToolSpec{{Name: "f"}}, MaxPayloadBytes: payload}
	for _, d := range jsonDialects {
		for _, unit := range hostileJSON {
			for _, lead := range leads {
				text := lead + strings.Repeat(unit, n/len(unit))
				for _, size := range []int{1, len(text)} {
					p := d.NewParser(o).(*jsonParser)
					var deltas []lathe.Delta
					emitted, most := 0, 0
					for at := 0; at < len(text); at += size {
						deltas = p.Append(deltas[:0], text[at:min(at+size, len(text))])
						for _, d := range deltas {
							emitted += len(d.Text)
						}
						most = max(most, cap(p.raw), cap(p.object.earlyArgs), cap(p.gap), cap(p.partial), cap(p.object.name), cap(p.object.id))
					}
					deltas, _ = p.Flush(deltas[:0])
					for _, d := range deltas {
						emitted += len(d.Text)
					}
					if p.looked > 40*len(text) || emitted > 4*len(text) || most > 3*(payload+maxHeadBytes) {
						t.Errorf("%s: %q and %q in pieces of %d: %d looks, %d bytes said, %d held for %d bytes",
							d.name, lead, unit, size, p.looked, emitted, most, len(text))
					}
				}
			}
		}
	}
}

// A token inside of arguments costs no memory. (Not parallel: it counts allocations.)
func TestJSONTokensAreFree(t *testing.T) {
	testdata.CountsAllocations(t)
	for _, d := range jsonDialects {
		p := d.NewParser(&Options{Tools: []*lathe.ToolSpec{{Name: "f"}}})
		text := string(d.AppendCall(nil, lathe.ToolCall{Name: "f", Arguments: `{"text": "` + strings.Repeat("x", 2*maxToolPayload)}))
		text = text[:strings.LastIndexByte(text, 'x')]
		deltas := p.Append(nil, text)
		if got := testing.AllocsPerRun(100, func() {
			for _, piece := range []string{"some ", "wor", "ds, <b>", "{é} ", `\`, `n`, " </", "[TOOL"} {
				deltas = p.Append(deltas[:0], piece)
			}
		}); got != 0 {
			t.Errorf("%s: %v allocations", d.name, got)
		}
	}
}

// Text that is full of beginnings of calls does not come as a delta for each.
func TestSmallTextsAreJoined(t *testing.T) {
	t.Parallel()
	const n = 1 << 16
	for _, name := range []string{"xlam", "llama3-json", "functionary-v3.2"} {
		d, _ := Lookup(name)
		for _, unit := range []string{"[{", "[{\"", "{\"", ">>>f\n"} {
			text := strings.Repeat(unit, n/len(unit))
			p := d.NewParser(&Options{Tools: []*lathe.ToolSpec{{Name: "g"}}})
			deltas := p.Append(nil, text)
			deltas, _ = p.Flush(deltas)
			var emitted strings.Builder
			for _, d := range deltas {
				emitted.WriteString(d.Text)
			}
			if emitted.String() != text || len(deltas) > 100 {
				t.Errorf("%s: %q: %d deltas that say %d of %d bytes", name, unit, len(deltas), emitted.Len(), len(text))
			}
		}
	}
}

// max_payload_bytes bounds a call from its opening mark to the end of its JSON, to the byte, for every cut. What is in
// the strings of a longer one is no call.
func TestJSONCallsHavePayloadLimit(t *testing.T) {
	t.Parallel()
	o := &Options{Tools: []*lathe.ToolSpec{{Name: "f"}}}
	for _, d := range jsonDialects {
		inner := string(d.AppendCall(nil, lathe.ToolCall{ID: "call00001", Name: "f", Arguments: `{}`}))
		quoted, _ := json.Marshal(inner)
		write := func(fill int) string {
			args := `{"a":"` + strings.Repeat("x", fill) + string(quoted[1:len(quoted)-1]) + `"}`
			return string(d.AppendCall(nil, lathe.ToolCall{ID: "call00001", Name: "f", Arguments: args}))
		}
		text := write(200)
		limit := strings.LastIndexByte(text, '}') + 1
		for _, more := range []int{-1, 0, 1, 300} {
			text := write(200 + more)
			want := ""
			if more > 0 {
				want = string(lathe.CodePayloadTooLarge)
			}
			for _, size := range []int{1, 7, len(text)} {
				o.MaxPayloadBytes = limit
				p := d.NewParser(o)
				var c Collector
				for at := 0; at < len(text); at += size {
					c.AddAll(p.Append(nil, text[at:min(at+size, len(text))]))
				}
				deltas, _ := p.Flush(nil)
				c.AddAll(deltas)
				m := c.Message()
				calls := m.Calls()
				if len(calls) != 1 || string(calls[0].ParseError) != want {
					t.Errorf("%s: %d bytes over the limit of %d, in pieces of %d: %+v, want %q", d.name, more, limit, size, calls, want)
				}
			}
		}
	}
}
