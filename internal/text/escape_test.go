package text_test

import (
	"testing"
	"unicode"

	"github.com/lathe-run/lathe/internal/text"
)

func TestEscape(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "", "plain é": "plain é", "a\u034fb": `a\u034fb`, "a\u17b4b\u17b5": `a\u17b4b\u17b5`, "a\U000E0100b": `a\U000e0100b`, "a\xffb\x1b": "a\uFFFDb" + `\u001b`,
	} {
		if got := text.Escape(in, func(r rune) bool { return unicode.IsControl(r) || text.IsBlank(r) }); got != want {
			t.Errorf("Escape(%+q) = %+q, want %+q", in, got, want)
		}
	}
}
