package openai

import (
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// However long the text is and wherever its escapes lie, it is decoded as the JSON package decodes it.
func TestTextDecodesEscapesAtAnyPlace(t *testing.T) {
	t.Parallel()
	escapes := []string{`\"`, `\\`, `\n`, `\/`, `\t`, `\"\"`, "\\u00e9", `\u0041`, "é", "\x7f", `\\\"x`}
	for length := range 40 {
		for at := range length + 1 {
			for _, esc := range escapes {
				for _, pad := range []string{"", strings.Repeat("y", 256-length-4), strings.Repeat("y", 256)} {
					plain := strings.Repeat("x", length)
					body := plain[:at] + esc + plain[at:] + pad
					want, err := rawjson.AppendUnquote(nil, []byte(`"`+body+`"`))
					if err != nil {
						t.Fatal(err)
					}
					var x text
					var d damage
					if got := x.add([]byte(body), &d); got != string(want) || d != (damage{}) {
						t.Fatalf("%q: got %q, want %q, damage %+v", body, got, want, d)
					}
				}
			}
		}
	}
}

func TestTokensReadsWhatServersWrite(t *testing.T) {
	t.Parallel()
	tests := map[string]int64{"0": 0, "7": 7, "150": 150, "007": 7, "999999999999999999": 999999999999999999, `"12"`: 12, "12.0": 12, "1e3": 1000,
		"1000000000000000000": 1000000000000000000, "-5": -1, "x": -1, "": -1, "1x": -1, "9223372036854775808": -1, "null": -1}
	for text, want := range tests {
		got, ok := tokens([]byte(text))
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("%s: %d, %v", text, got, ok)
		}
	}
}
