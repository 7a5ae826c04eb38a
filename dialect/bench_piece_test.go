package dialect_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
)

// pieceDialects are a dialect of each form, and the slowest of its form where they differ.
var pieceDialects = []string{"harmony", "tags", "hermes", "qwen3-coder", "glm", "glimmer", "pythonic", "lfm2", "gemma4", "auto"}

// BenchmarkPieces reads about 8 KiB in pieces of 8 bytes: text with marks of Markdown and HTML in it, and a call with HTML as its argument.
// bench/compare counts the allocations and instructions of one operation.
func BenchmarkPieces(b *testing.B) {
	const size, piece = 8 << 10, 8
	const line = "If a < b and b < c, then it's so: the \"cell\" of `code` holds a number x with 0 <= x < 10, as the plan said it would be.\n"
	const argument = `<p class=\"x\">Some text of a page, a < b && c > d, that it's to write.</p>\n`
	prose := strings.Repeat(line, size/len(line))
	arguments := `{"path":"index.html","text":"` + strings.Repeat(argument, size/len(argument)) + `"}`
	tools := []*lathe.ToolSpec{{Name: "write", Schema: json.RawMessage(
		`{"type":"object","properties":{"path":{"type":"string"},"text":{"type":"string"}}}`)}}
	for _, name := range pieceDialects {
		d, ok := dialect.Lookup(name)
		if !ok {
			b.Fatalf("no dialect %q", name)
		}
		call := string(d.AppendCall(nil, lathe.ToolCall{Name: "write", Arguments: arguments}))
		text := prose
		switch name {
		case "harmony":
			text = "<|channel|>final<|message|>" + prose + "<|return|>"
		case "glimmer":
			text = "<|message|>" + prose + "<|eot|>"
			call = " to=write<|message|>" + call + "<|eot|>"
		}
		for _, c := range []struct {
			name, text string
			calls      int
		}{{"text", text, 0}, {"arguments", call, 1}} {
			b.Run(name+"/"+c.name, func(b *testing.B) {
				opts := &dialect.Options{Tools: tools, MaxPayloadBytes: 2 * len(c.text)}
				deltas := make([]lathe.Delta, 0, 64)
				b.SetBytes(int64(len(c.text)))
				b.ReportAllocs()
				for b.Loop() {
					p, calls := d.NewParser(opts), 0
					for at := 0; at <= len(c.text); at += piece {
						if deltas = deltas[:0]; at+piece < len(c.text) {
							deltas = p.Append(deltas, c.text[at:at+piece])
						} else {
							deltas, _ = p.Flush(p.Append(deltas, c.text[at:]))
						}
						for i := range deltas {
							if deltas[i].Kind == lathe.DeltaCallEnd && !deltas[i].Incomplete {
								calls++
							}
						}
					}
					if calls != c.calls {
						b.Fatalf("%d calls, want %d", calls, c.calls)
					}
				}
			})
		}
	}
}
