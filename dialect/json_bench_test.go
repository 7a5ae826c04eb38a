package dialect_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
)

// callOf returns text and one call whose arguments are about n bytes long.
func callOf(d *dialect.Dialect, n int) string {
	const line = `<p class=\"x\">Some text of a page that the tool writes to a file, {braces} and [brackets].</p>\n`
	args := `{"path": "index.html", "lines": [1, 2, 3], "text": "` + strings.Repeat(line, n/len(line)+1) + `"}`
	text := "I write the file now.\n"
	if d.Name() == "functionary-v3.2" {
		text = "all\n" + text
	}
	return string(d.AppendCall([]byte(text), lathe.ToolCall{Name: "write_file", Arguments: args}))
}

func BenchmarkJSON(b *testing.B) {
	for _, name := range append([]string{"tags"}, jsonNames...) {
		d, _ := dialect.Lookup(name)
		for _, size := range []int{64 << 10, 1 << 20} {
			text := callOf(d, size)
			for _, piece := range []int{8, 4096, len(text)} {
				label := fmt.Sprint(piece)
				if piece == len(text) {
					label = "all"
				}
				b.Run(fmt.Sprintf("%s/args=%dk/piece=%s", name, size>>10, label), func(b *testing.B) {
					var deltas []lathe.Delta
					opts := &dialect.Options{Tools: []*lathe.ToolSpec{{Name: "write_file"}}}
					if name == "tags" { // it bounds the whole payload
						opts.MaxPayloadBytes = len(text)
					}
					b.SetBytes(int64(len(text)))
					b.ReportAllocs()
					for b.Loop() {
						p := d.NewParser(opts)
						for at := 0; at < len(text); at += piece {
							deltas = p.Append(deltas[:0], text[at:min(at+piece, len(text))])
						}
						deltas, _ = p.Flush(deltas[:0])
					}
				})
			}
		}
	}
}

// BenchmarkJSONText reads text without calls, as most of a model's text is.
func BenchmarkJSONText(b *testing.B) {
	text := strings.Repeat("If a < b and b < c then [a, c] holds: the {set} of `code` is 3 [TOOL wide.\n", 1<<14)
	for _, name := range []string{"hermes", "llama3-json", "xlam", "mistral", "kimi-k2"} {
		d, _ := dialect.Lookup(name)
		b.Run(name, func(b *testing.B) {
			var deltas []lathe.Delta
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				p := d.NewParser(nil)
				for at := 0; at < len(text); at += 8 {
					deltas = p.Append(deltas[:0], text[at:min(at+8, len(text))])
				}
				deltas, _ = p.Flush(deltas[:0])
			}
		})
	}
}
