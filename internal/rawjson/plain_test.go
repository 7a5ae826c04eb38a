package rawjson

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestPlainString(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "a", "plain", strings.Repeat("long text of many words ", 9), "Köln", "日本語", "\u2028", "a\nb", "a\tb", `a\nb`, `\`, "\xff", "ab\xe2\x82", "\x7f"} {
		for _, front := range []string{"", `{"a":`} {
			for _, back := range []string{`"`, `",`, `"}` + "\n", ""} {
				b := []byte(front + `"` + text + back)
				end, plain := PlainString(b, len(front)+1)
				want := back != "" && utf8.ValidString(text) && !strings.ContainsAny(text, "\n\t\\")
				if plain != want || plain && end != len(front)+len(text)+2 {
					t.Errorf("%q: %d %v, want %v", b, end, plain, want)
				}
			}
		}
	}
}
