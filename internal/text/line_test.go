package text_test

import (
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/text"
)

func TestFirstLine(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{"": "", "one": "one", "one\ntwo\nthree": "one", "\ntwo": "", "one\r\ntwo": "one\r"} {
		if got := text.FirstLine(s); got != want {
			t.Errorf("FirstLine(%q) = %q, want %q", s, got, want)
		}
	}
}

func TestOneLine(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{"": "", "é b": "é b", "a\nb\r\n\x1b[2J": "a b   [2J", "a\u202eb\u2028c": "a b c", "a\xff\xfeb": "a\uFFFDb"} {
		if got := text.OneLine(s); got != want {
			t.Errorf("OneLine(%+q) = %+q, want %+q", s, got, want)
		}
	}
}

func TestExcerpt(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		s    string
		n    int
		want string
	}{{"", 0, ""}, {"abc", 3, "abc"}, {"abcd", 3, "abc … 1 bytes more"}, {"a€b", 3, "a … 4 bytes more"}, {"ab\xe2", 2, "ab … 1 bytes more"}, {strings.Repeat("x", 2048), 1024, strings.Repeat("x", 1024) + " … 1024 bytes more"}} {
		if got := text.Excerpt(tt.s, tt.n); got != tt.want {
			t.Errorf("Excerpt(%q, %d) = %q, want %q", tt.s, tt.n, got, tt.want)
		}
	}
}

func TestPlural(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0 calls", 1: "1 call", 2: "2 calls"} {
		if got := text.Plural(n, "call"); got != want {
			t.Errorf("Plural(%d) = %q, want %q", n, got, want)
		}
	}
}
