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

func TestAppendSimple(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "a", strings.Repeat("long text of many words ", 9), "Köln", "日本語", "a\nb", `a\nb`, `\"`, `a\\`, `\/\b\f\r\t`, `é\n日本`, `\u0041`, `\x`, `\`, "\xff", `a\n` + "\xe2\x82",
		strings.Repeat(`{\"key\":`, 20), strings.Repeat("1234567", 9) + `\`, "1234567\x1f", "\x7f~ !#[]", "12345678日本語12345678" + `\t` + "\xc3\xa9"} {
		for _, front := range []string{"", `{"a":`} {
			for _, back := range []string{`"`, `",`, `"}` + "\n", `"}` + strings.Repeat(" ", 20), ""} {
				b := []byte(front + `"` + text + back)
				out, end, ok := AppendSimple([]byte("before"), b, len(front)+1)
				unquoted, err := AppendUnquote([]byte("before"), []byte(`"`+text+`"`))
				want := err == nil && back != "" && !strings.Contains(text, `\u`)
				if ok != want || ok && (end != len(front)+len(text)+2 || string(out) != string(unquoted)) {
					t.Errorf("%q: %q %d %v, want %q %v", b, out, end, ok, unquoted, want)
				}
			}
		}
	}
}
