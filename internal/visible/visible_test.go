package visible

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
)

func TestTextAroundCalls(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{ // ¤ stands for a call
		"":                                 "",
		"plain":                            "plain",
		"\n plain text \n":                 "\n plain text \n",
		"a\n\n\n b":                        "a\n\n\n b",
		" \n":                              " \n",
		"¤":                                "",
		"¤\n¤\n":                           "",
		"¤\n\n\nanswer":                    "answer",
		"¤ \n¤\n\nanswer\n":                "answer\n",
		"¤ \n\ndone":                       "done",
		"¤\n    code":                      "    code",
		"¤ x":                              "x",
		"Let me see.\n\n¤":                 "Let me see.",
		"Let me see.\n¤\n":                 "Let me see.",
		"before ¤ after":                   "before after",
		"before ¤after":                    "before after",
		"before¤ after":                    "before after",
		"before¤after":                     "beforeafter",
		"a\n¤\nb":                          "a\nb",
		"a\n\n¤\nb":                        "a\n\nb",
		"a\n¤\n\nb":                        "a\n\nb",
		"a\n\n¤\n  b":                      "a\n\n  b",
		"a\n¤ b":                           "a\nb",
		"a\n¤\n¤\nb ¤":                     "a\nb",
		"  a ¤":                            "  a",
		strings.Repeat(" ", 5000) + "a":    strings.Repeat(" ", 5000) + "a",
		"a" + strings.Repeat("\n", 5000):   "a" + strings.Repeat("\n", 5000),
		"a¤" + strings.Repeat("\n", 5000):  "a",
		"a\n¤" + strings.Repeat(" ", 5000): "a",
	} {
		for _, n := range []int{len(in) + 1, 1, 2, 3, 7} {
			if got := shown(in, func() int { return n }); got != want {
				t.Errorf("%.40q in pieces of %d: got %.40q, want %.40q", in, n, got, want)
			}
		}
	}
}

// shown returns what a Text shows of in, where ¤ stands for a call, in pieces of size bytes.
func shown(in string, size func() int) string {
	var x Text
	var out strings.Builder
	for i, text := range strings.Split(in, "¤") {
		if i > 0 {
			x.Remove()
		}
		for text != "" {
			n := min(size(), len(text))
			out.WriteString(x.Add(text[:n]))
			text = text[n:]
		}
	}
	return out.String() + x.End()
}

// What is shown does not depend on the cut, and a message shows the same as its stream.
func TestStreamAndMessageShowTheSame(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"a", " ", "\n", "\n\n", "  b ", "\t", "¤", "¤", "!"}
	for range 20_000 {
		in := ""
		for range r.IntN(9) {
			in += pieces[r.IntN(len(pieces))]
		}
		whole := shown(in, func() int { return len(in) })
		if cut := shown(in, func() int { return 1 + r.IntN(3) }); cut != whole {
			t.Fatalf("%q: in pieces %q, whole %q", in, cut, whole)
		}
		var m lathe.Message
		var s Stream
		streamed := ""
		give := func(d lathe.Delta) { streamed += d.Text }
		for i, text := range strings.Split(in, "¤") {
			if i > 0 && i%2 == 0 {
				m.Parts = append(m.Parts, lathe.ToolCall{Dialect: "tags"})
				s.Pass(&lathe.Delta{Kind: lathe.DeltaCallStart}, give)
				s.Pass(&lathe.Delta{Kind: lathe.DeltaCallEnd}, give)
			} else if i > 0 {
				m.Parts = append(m.Parts, lathe.Text{Text: "<bad>", Unreadable: true}, lathe.ToolCall{Dialect: "tags", ParseError: lathe.CodePayloadParseError})
				s.Pass(&lathe.Delta{Kind: lathe.DeltaText, Text: "<bad>", Unreadable: true}, give)
				s.Pass(&lathe.Delta{Kind: lathe.DeltaParseError}, give)
			}
			if text != "" {
				m.Parts = append(m.Parts, lathe.Text{Text: text})
				s.Pass(&lathe.Delta{Kind: lathe.DeltaText, Text: text}, give)
			}
		}
		s.End(give)
		if got := String(&m); got != whole || streamed != whole {
			t.Fatalf("%q: the message shows %q, its stream %q, want %q", in, got, streamed, whole)
		}
	}
}

func TestNativeMessageIsUnchanged(t *testing.T) {
	t.Parallel()
	m := lathe.Message{Parts: []lathe.Part{lathe.Text{Text: "Let me see. \n"}, lathe.ToolCall{ID: "a", Name: "f"}}}
	if got := Parts(&m); &got[0] != &m.Parts[0] {
		t.Error("a copy")
	}
}
