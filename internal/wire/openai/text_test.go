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
				for _, pad := range []string{"", strings.Repeat("y", maxPlainEscapes-length-4), strings.Repeat("y", maxPlainEscapes)} {
					plain := strings.Repeat("x", length)
					body := plain[:at] + esc + plain[at:] + pad
					want, err := rawjson.AppendUnquote(nil, []byte(`"`+body+`"`))
					if err != nil {
						t.Fatal(err)
					}
					var x text
					var d damage
					if got := x.add([]byte(body), false, &d); got != string(want) || d != (damage{}) {
						t.Fatalf("%q: got %q, want %q, damage %+v", body, got, want, d)
					}
				}
			}
		}
	}
}

// A body that decodePlain does not take is left to the general way.
func TestDecodePlainRefuses(t *testing.T) {
	t.Parallel()
	var dst [maxPlainEscapes + 8]byte
	for _, body := range []string{"é", "0123456789\xff", `\`, `0123456\`, `\u0041`, `\x`, "\\\x80", `01234567\u0041`} {
		if n := decodePlain(&dst, []byte(body)); n != -1 {
			t.Errorf("%q: %d", body, n)
		}
	}
	full := strings.Repeat("z", maxPlainEscapes)
	if n := decodePlain(&dst, []byte(full)); n != maxPlainEscapes || string(dst[:n]) != full {
		t.Errorf("the longest body: %d", n)
	}
}
