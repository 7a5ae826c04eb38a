package dialect

import (
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
)

// A token that ends the turn in the middle of a call is neither in the arguments nor in what users see. In a call that
// goes on after it, it is text.
func TestTurnEndInCallIsNoArgument(t *testing.T) {
	t.Parallel()
	for _, d := range table {
		if d.name == "harmony" { // whose tokens are marks of its own
			continue
		}
		for _, end := range append(turnEnds, "<|im_end|>\n", "<|im_end|><|endoftext|>", "<|eot_id|><|eot_id|>\n") {
			o := &Options{Tools: []*lathe.ToolSpec{{Name: "f", Schema: []byte(`{"type":"object","properties":{"a":{"type":"string"}}}`)}}}
			if d.name == "glimmer" {
				o.Prefix = " to=f<|message|>"
			}
			call := string(d.AppendCall(nil, lathe.ToolCall{ID: "call00001", Name: "f", Arguments: `{"a":"before@after"}`}))
			front, back, _ := strings.Cut(call, "@")
			cut := front + end
			for _, size := range []int{len(cut), 1, 3} {
				m, shown, _ := readPieces(d.NewParser(o), cut, size)
				calls := m.Calls()
				if len(calls) != 1 || !calls[0].Incomplete || !strings.HasSuffix(calls[0].Arguments, "before") || strings.TrimSpace(shown) != "" {
					t.Errorf("%s: %q in pieces of %d: %+v and %q", d.name, cut, size, calls, shown)
				}
			}
			if end[len(end)-1] == '\n' || contains(d, end) {
				continue
			}
			whole := front + end + back
			for _, size := range []int{len(whole), 1, 3} {
				m, _, _ := readPieces(d.NewParser(o), whole, size)
				if calls := m.Calls(); len(calls) != 1 || calls[0].Incomplete || !strings.Contains(calls[0].Arguments, "before"+end+"after") {
					t.Errorf("%s: %q in pieces of %d: %+v", d.name, whole, size, calls)
				}
			}
		}
	}
}

// The marks of harmony that end a turn are no part of the arguments that they cut off.
func TestMarkThatCutsHarmonyIsNoArgument(t *testing.T) {
	t.Parallel()
	for _, head := range []string{"<|channel|>commentary to=functions.f<|message|>", `<|channel|>tool<|message|>{"tool":"f","arguments":`} {
		for _, end := range []string{"<|call|>", "<|end|>", "<|return|>", "<|call|><|call|>"} {
			text := head + `{"a":"before` + end
			for _, size := range []int{len(text), 1, 3} {
				m, shown, _ := readPieces(lookupTest(t, "harmony").NewParser(nil), text, size)
				if calls := m.Calls(); len(calls) != 1 || !calls[0].Incomplete || calls[0].Arguments != `{"a":"before` || shown != "" {
					t.Errorf("%q in pieces of %d: %+v and %q", text, size, calls, shown)
				}
				m, _, _ = readPieces(lookupTest(t, "harmony").NewParser(nil), text+`after"}`, size)
				if calls := m.Calls(); len(calls) != 1 || !strings.HasPrefix(calls[0].Arguments, `{"a":"before`+end+`after"}`) {
					t.Errorf("%q and text in pieces of %d: %+v", text, size, calls)
				}
			}
		}
	}
}

// contains reports whether the token is a mark of the messages that the dialect's calls stand in.
func contains(d *Dialect, token string) bool {
	return d.name == "glimmer" && (strings.HasPrefix(token, "<|eom") || strings.HasPrefix(token, "<|eot|"))
}

// A beginning of a token is text in the end, whatever comes.
func TestTurnEndIsBufferedAlone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"a <|im_en", "a <|im_end", "a <|im_end|", "a [e~", "a [e~[e", "a <", "[", "<|<|im_end|", "a <|im_end|>b<|im", "</s></", "a<s>b</s>c"} {
		for size := 1; size <= len(text); size++ {
			if _, shown, _ := readPieces(lookupTest(t, "tags").NewParser(nil), text, size); shown != text {
				t.Errorf("%q in pieces of %d is shown as %q", text, size, shown)
			}
		}
	}
}

// The search by the first two bytes finds what a look at every byte and every token finds.
func TestTurnTailAgreesWithPlainSearch(t *testing.T) {
	t.Parallel()
	cut := func(s string) int {
		for i := range len(s) {
			for _, end := range turnEnds {
				if len(s)-i < len(end) && strings.HasPrefix(end, s[i:]) {
					return len(s) - i
				}
			}
		}
		return 0
	}
	fronts := []string{"", "a", "<", "[", ">", "text that goes on for more bytes than any token has ", "<|", "a<b"}
	found := 0
	for _, end := range turnEnds {
		for n := 0; n <= len(end); n++ {
			for _, front := range fronts {
				for _, back := range []string{"", "\n", " <", "x", "[", "<|"} {
					s := front + end[:n] + back
					if got, want := cutTurnEnd(s), cut(s); got != want {
						t.Errorf("%q ends in %d bytes of a token, want %d", s, got, want)
					}
					got, _ := turnTail(s)
					if want := cut(s); got < want {
						t.Errorf("%q has a tail of %d bytes, want at least %d", s, got, want)
					}
					if got > 0 {
						found++
					}
				}
				for _, next := range []string{"a", end[n:], "|", ""} {
					tail := front + end[:n]
					if k := cut(tail); k == 1 {
						tail = tail[len(tail)-1:]
						want := false
						for _, e := range turnEnds {
							rest, ok := strings.CutPrefix(e, tail)
							want = want || ok && (strings.HasPrefix(next, rest) || strings.HasPrefix(rest, next))
						}
						if got := continuesTurnEnd(tail, next); got != want {
							t.Errorf("%q continues %q: %v, want %v", next, tail, got, want)
						}
					}
				}
			}
		}
	}
	if found < 1000 {
		t.Errorf("%d texts have a tail, want more", found)
	}
}
