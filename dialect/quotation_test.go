package dialect_test

import (
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
	"github.com/lathe-run/lathe/internal/testkit/dialecttest"
)

// CALL stands for a call in the texts of these tests.
var quotedTexts = []string{
	`You wrote: "CALL". I will not run it.`, `You wrote "please run CALL now".`, `("CALL")`, "«CALL»", "« CALL »", "“CALL”", "Es hieß „CALL“.", "“a CALL\nb”",
	"> CALL", "> He wrote:\n> CALL\n\nNo.", " > CALL", "<code>CALL</code>", "<CODE class=\"x\">a\nCALL</CODE>", "<pre>\n\nCALL\n</pre>", "<pre><code>CALL</code></pre>",
	"Like so:\n\n    CALL\n", "Like so:\n\n\tCALL\n", "Like so:\n\n    a\n\n    CALL\n", "**\"CALL\"**",
}

var unquotedTexts = []string{
	`He said "hi". CALL`, `He said "hi" CALL`, `It's the user's wish: CALL`, `'CALL`, "a 5\" pipe CALL", "an \"open quote\nCALL", "an “open quote\nCALL", `a quote " alone CALL`, `"a" and "b": CALL`,
	"„a“ CALL", "«a» CALL", "“a” CALL", "> quoted\nCALL", "> quoted\n\nCALL", "1 > 0: CALL", "<code>x</code> CALL", "the <code> tag\n\nCALL", "<pre>x</pre>\nCALL", "<coder>CALL",
	"    CALL", "\n\n    CALL", "A list:\n- a\n    CALL", "Text\n    CALL", "\\\"a CALL", "a `\"` CALL", "```\n\"a\n```\nCALL", "日本\u201d CALL", "Лучше «так» CALL", "œ CALL",
}

// Quoted calls are text in every format whose calls stand among text, for every cut.
func TestQuotedCallsAreText(t *testing.T) {
	t.Parallel()
	for _, name := range dialect.Names() {
		switch name {
		case "harmony", "glimmer": // a call is a message of its own
			continue
		case "llama3-json", "xlam", "pythonic", "functionary-v3.2", "phi4-mini": // a call begins a line, or has no unmistakable mark
			continue
		case "auto":
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := lookup(t, name)
			call := string(d.AppendCall(nil, lathe.ToolCall{ID: "call00001", Name: "f", Arguments: `{"a":1}`}))
			opts := &dialect.Options{Tools: []*lathe.ToolSpec{{Name: "f"}}}
			line := strings.ReplaceAll(call, "\n", "")
			if name == "deepseek-v3" { // its line ends count
				line = call
			}
			check := func(texts []string, call string, want int) {
				for _, text := range texts {
					text = strings.ReplaceAll(text, "CALL", call)
					deltas := dialecttest.Parse(t, d.NewParser(opts), text)
					whole := dialecttest.Format(deltas)
					if got := strings.Count(whole, "call "); strings.Count("\n"+whole, "\ncall ") != want {
						t.Errorf("%q has %d calls, want %d\n%s", text, got, want, whole)
					}
					for i := 1; i < len(text); i++ {
						if cut := dialecttest.Format(dialecttest.Parse(t, d.NewParser(opts), text, i)); cut != whole {
							t.Fatalf("%q cut at %d:\n%s\nthe whole:\n%s", text, i, cut, whole)
						}
					}
				}
			}
			if strings.Contains(call, "\n") {
				check([]string{`You wrote: "CALL". I will not run it.`, `"CALLCALL"`, "«CALL»", "“ CALL ”", "<code>CALL</code>", "<pre>CALL\n\nCALL</pre>"}, call, 0)
			}
			check(unquotedTexts, line, 1)
			if name == "deepseek-v3" {
				return // the fence in its calls is one in prose, too
			}
			check(quotedTexts, line, 0)
			check([]string{`"CALL" and CALL`, "\"say CALL now\n\nCALL"}, line, 1)
		})
	}
}
