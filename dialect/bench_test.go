package dialect_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
)

// transcript returns a harmony turn of about n bytes: reasoning, a call and an answer in turn,
// with `<` that begin no mark.
func transcript(n int) string {
	const (
		analysis = "The user asks for a table. If a < b and b < c then a < c; I compare <td> cells one by one, and write down what I find. "
		argument = `{"path":"index.html","mode":"write","lines":[1,2,3],"text":"<ul><li>one</li><li>two \"quoted\"</li></ul>\n`
		answer   = "Here is the table you asked for: every cell holds a number x with 0 <= x < 10, as the plan said it would. "
	)
	var b strings.Builder
	for b.Len() < n {
		b.WriteString("<|channel|>analysis<|message|>")
		b.WriteString(strings.Repeat(analysis, 30))
		b.WriteString("<|end|><|start|>assistant<|channel|>commentary to=functions.write_file <|constrain|>json<|message|>")
		b.WriteString(argument)
		b.WriteString(strings.Repeat(`<p class=\"x\">Some text of a page that the tool writes to a file.</p>\n`, 50))
		b.WriteString(`"}<|call|><|start|>assistant<|channel|>final<|message|>`)
		b.WriteString(strings.Repeat(answer, 30))
		b.WriteString("<|end|><|start|>assistant")
	}
	return b.String()
}

func BenchmarkHarmony(b *testing.B) {
	text := transcript(4 << 20)
	d, _ := dialect.Lookup("harmony")
	for _, size := range []int{8, 64, 4096, len(text)} {
		name := fmt.Sprintf("piece=%d", size)
		if size == len(text) {
			name = "piece=all"
		}
		b.Run(name, func(b *testing.B) {
			var deltas []lathe.Delta
			opts := &dialect.Options{Tools: []*lathe.ToolSpec{{Name: "write_file"}}}
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				p := d.NewParser(opts)
				for at := 0; at < len(text); at += size {
					deltas = p.Append(deltas[:0], text[at:min(at+size, len(text))])
				}
				deltas, _ = p.Flush(deltas[:0])
			}
		})
	}
}

// BenchmarkIndex is the floor: it only looks for the byte that marks begin with.
func BenchmarkIndex(b *testing.B) {
	text := transcript(4 << 20)
	b.SetBytes(int64(len(text)))
	n := 0
	for b.Loop() {
		for rest := text; ; n++ {
			i := strings.IndexByte(rest, '<')
			if i < 0 {
				break
			}
			rest = rest[i+1:]
		}
	}
	if n == 0 {
		b.Fatal("no marks")
	}
}
