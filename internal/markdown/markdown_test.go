package markdown

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// render returns the output for a text that is cut into pieces of n bytes.
func render(t testing.TB, text string, n int, colour bool) string {
	t.Helper()
	var out strings.Builder
	w := New(&out, colour)
	for len(text) > 0 {
		n := min(n, len(text))
		if err := w.WriteString(text[:n]); err != nil {
			t.Fatal(err)
		}
		text = text[n:]
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestRendersWhatModelsWrite(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, text, plain, colour string }{
		{"text stays", "One, two.\n\nThree.", "One, two.\n\nThree.", "One, two.\n\nThree."},
		{"headings", "# One\n### Two **b**\n#no", "# One\n### Two b\n#no", "\x1b[1mOne\x1b[22m\n\x1b[1mTwo b\x1b[22m\n#no"},
		{"emphasis", "a **b** *c* _d_ ***e*** ~~f~~.", "a b c d e f.", "a \x1b[1mb\x1b[22m \x1b[3mc\x1b[23m \x1b[3md\x1b[23m \x1b[1m\x1b[3me\x1b[23m\x1b[22m \x1b[9mf\x1b[29m."},
		{"emphasis in emphasis", "**a *b* `c`**", "a b `c`", "\x1b[1ma \x1b[3mb\x1b[23m \x1b[36mc\x1b[39m\x1b[22m"},
		{"no emphasis", "2 * 3 * 4, snake_case_name, *args, **kw", "2 * 3 * 4, snake_case_name, *args, **kw", "2 * 3 * 4, snake_case_name, *args, **kw"},
		{"a mark that never closes", "**open\nnext", "**open\nnext", "**open\nnext"},
		{"escapes", `\*a\* \q`, `*a* \q`, `*a* \q`},
		{"code spans", "use `a*b*c` and ``x`y``", "use `a*b*c` and `x`y`", "use \x1b[36ma*b*c\x1b[39m and \x1b[36mx`y\x1b[39m"},
		{"lists", "- a\n  - b\n* c **d**\n1. e\n10) f\n- [ ] g", "• a\n  • b\n• c d\n1. e\n10) f\n• [ ] g", ""},
		{"rules and dashes", "---\n- - -\n-\n--x\n", "────────────────\n────────────────\n-\n--x\n", ""},
		{"quotes", "> a **b**\n>> - c", "│ a b\n││ • c", ""},
		{"code", "```go\n*a* := **b\n```\nafter", "```go\n*a* := **b\n```\nafter", "\x1b[2m```go\x1b[22m\n\x1b[36m*a* := **b\x1b[39m\n\x1b[2m```\x1b[22m\nafter"},
		{"code that does not end", "~~~\n# no heading\n``` no end\n", "~~~\n# no heading\n``` no end\n", ""},
		{"a code span of three", "```x``` y", "`x` y", ""},
		{"links", "see [the page](https://a.example/x) or [b] (c), ![alt](u)", "see the page (https://a.example/x) or [b] (c), image: alt (u)", "see the page (\x1b[4mhttps://a.example/x\x1b[24m) or [b] (c), image: alt (\x1b[4mu\x1b[24m)"},
		{"a link that shows another address", "[https://good.example](https://evil.example)", "https://good.example (https://evil.example)", ""},
		{"a table", "| Name | n |\n|:--|--:|\n| a **b** | 1 |\n| 漢字 | 20 |\nafter", "Name   n\n────────\na b    1\n漢字  20\nafter", ""},
		{"a table at the end", "| a | b |\n|---|:-:|\n| x \\| y | z |\n", "a      b\n────────\nx | y  z\n", ""},
		{"no table", "| a | b\ntext", "| a | b\ntext", ""},
		{"a table that is cut off", "| a |\n|---|\n| x", "a\n─\nx", ""},
		{"line ends of Windows", "a\r\nb\r\n", "a\nb\n", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := render(t, tc.text, len(tc.text), false); got != tc.plain {
				t.Errorf("plain: got\n%q, want\n%q", got, tc.plain)
			}
			if got := render(t, tc.text, 1, true); tc.colour != "" && got != tc.colour {
				t.Errorf("colour: got\n%q, want\n%q", got, tc.colour)
			}
		})
	}
}

// What is shown of a text appears as soon as its form is known, not at the end of the line.
func TestStreams(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	w := New(&out, false)
	for _, step := range [][2]string{{"Hello, ", "Hello, "}, {"**wor", "Hello, "}, {"ld**", "Hello, "}, {" and", "Hello, world and"}, {"\n- x", "Hello, world and\n• x"}} {
		if err := w.WriteString(step[0]); err != nil || out.String() != step[1] {
			t.Errorf("after %q: %q, %v; want %q", step[0], out.String(), err, step[1])
		}
	}
}

func TestTextAfterFlushBeginsAnew(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	w := New(&out, false)
	for _, text := range []string{"```\ncode", "**a", "- b"} {
		if err := errors.Join(w.WriteString(text), w.Flush()); err != nil {
			t.Fatal(err)
		}
		out.WriteByte('\n')
	}
	if got, want := out.String(), "```\ncode\n**a\n• b\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// hostile are texts whose spans, tables and lines never end.
func hostile() []string {
	var out []string
	for _, unit := range []string{"*a", "**", "[", "[a](", "`", "``a", "|", "| a |\n", "> ", "- ", "#", "_a_", "\\", "!", "![", "~~a", " ", "*a *b **c ", "|-|\n", "~~~\n"} {
		out = append(out, strings.Repeat(unit, 200_000/len(unit)))
	}
	return out
}

// No text makes the writer slow, or makes it hold more than its limits.
func TestHostileTextsAreBounded(t *testing.T) {
	t.Parallel()
	for _, text := range hostile() {
		held := 0
		var out strings.Builder
		w := New(&out, true)
		began := time.Now()
		for i := 0; i < len(text); i += 1000 {
			if err := w.WriteString(text[i:min(i+1000, len(text))]); err != nil {
				t.Fatal(err)
			}
			held = max(held, len(w.held)+len(w.text.held)+w.size)
		}
		if limit := maxTable + maxSpan + maxLine; held > limit {
			t.Errorf("%.10q…: %d bytes were held, the limit is %d", text, held, limit)
		}
		t.Logf("%.10q…: %v, %d held", text, time.Since(began), held)
	}
}

func TestLongLineStartsNoCodeBlock(t *testing.T) {
	t.Parallel()
	for _, length := range []int{maxLine - 1, maxLine, maxLine + 1} {
		text := "```" + strings.Repeat("x", length-len("```")) + "\n"
		if got := render(t, text, len(text), false); got != text {
			t.Errorf("a line of %d bytes is rendered as %d bytes", length, len(got)-1)
		}
	}
}

func TestReportsTheErrorOfItsOutput(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	w := New(writerFunc(func([]byte) (int, error) { return 0, broken }), false)
	if err := w.WriteString("text"); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// letters returns the letters and digits of a text: what no rendering may lose or add.
func letters(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		if strings.HasPrefix(s, "\x1b[") {
			_, s, _ = strings.Cut(s, "m")
			continue
		}
		if c := s[0]; c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c >= 0x80 {
			b.WriteByte(c)
		}
		s = s[1:]
	}
	return b.String()
}

func FuzzWriter(f *testing.F) {
	for _, text := range hostile() {
		f.Add(text[:50], uint8(3))
	}
	f.Add("# a\n\n| a | b |\n|---|---|\n| **c** | `d` |\n\n```go\nx\n```\n- [e](f)\n> g", uint8(7))
	f.Fuzz(func(t *testing.T, text string, n uint8) {
		if strings.ContainsRune(text, '\x1b') {
			t.Skip("the caller escapes it")
		}
		whole := render(t, text, max(1, len(text)), true)
		if cut := render(t, text, int(n)+1, true); cut != whole {
			t.Errorf("cut after %d bytes:\n%q\nwhole:\n%q", n+1, cut, whole)
		}
		plain := render(t, text, max(1, len(text)), false)
		if strings.ContainsRune(plain, '\x1b') {
			t.Errorf("an escape sequence without colour: %q", plain)
		}
		if on, off := strings.Count(whole, "\x1b[1m"), strings.Count(whole, "\x1b[22m"); on+strings.Count(whole, "\x1b[2m") != off {
			t.Errorf("%d begin, %d end: %q", on, off, whole)
		}
		if !strings.Contains(text, "|") && !strings.Contains(text, "![") { // cells without a column and the word image
			mark := strings.NewReplacer("│", "", "•", "", "─", "")
			if got, want := letters(mark.Replace(plain)), letters(mark.Replace(text)); got != want {
				t.Errorf("of %q is shown %q", want, got)
			}
		}
	})
}
