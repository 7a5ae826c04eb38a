package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
)

// JSON on a terminal has nothing that drives it, and says the same.
func TestJSONOnATerminalShowsEverything(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"plain ä 日本 😀", "s\u009b31m\u202e", "zero\u200bwidth\ufeff", "tag\U000e0041", "del\x7f", "nbsp\u00a0", "bad\xff"} {
		var out bytes.Buffer
		enc := json.NewEncoder(jsonTerminal{&out})
		enc.SetEscapeHTML(false)
		if err := enc.Encode(map[string]string{"session_id": s}); err != nil {
			t.Fatal(err)
		}
		var back map[string]string
		if err := json.Unmarshal(out.Bytes(), &back); err != nil {
			t.Fatalf("%q: %v", out.String(), err)
		}
		if want := strings.ToValidUTF8(s, "\ufffd"); back["session_id"] != want {
			t.Errorf("%q reads back as %q", want, back["session_id"])
		}
		for _, r := range out.String() {
			if r != '\n' && !unicode.IsPrint(r) {
				t.Errorf("%q: the terminal gets %U", s, r)
			}
		}
	}
}
