package text_test

import (
	"testing"
	"unicode/utf8"

	"github.com/lathe-run/lathe/internal/text"
)

func TestCutEndsBetweenCharacters(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		s    string
		n    int
		want string
	}{
		{"", 0, ""}, {"abc", 3, "abc"}, {"abc", 4, "abc"}, {"abc", 2, "ab"}, {"abc", 0, ""},
		{"aé", 3, "aé"}, {"aé", 2, "a"}, {"é", 1, ""}, {"a€b", 4, "a€"}, {"a€b", 3, "a"}, {"a€b", 2, "a"},
		{"😀", 3, ""}, {"a😀", 4, "a"}, {"a😀", 5, "a😀"},
		{"a\x80\x80\x80\x80\x80", 5, "a\x80\x80\x80\x80"}, // not UTF-8: nothing is gained by leaving out more
	} {
		if got := text.Cut(tt.s, tt.n); got != tt.want {
			t.Errorf("Cut(%q, %d): got %q, want %q", tt.s, tt.n, got, tt.want)
		}
		if got := string(text.Cut([]byte(tt.s), tt.n)); got != tt.want {
			t.Errorf("Cut of the bytes %q, %d: got %q, want %q", tt.s, tt.n, got, tt.want)
		}
	}
	if got := text.Clip("a€b", 3); got != "a…" {
		t.Errorf("Clip: got %q", got)
	}
	if got := text.Clip("a€", 4); got != "a€" {
		t.Errorf("Clip of a text that fits: got %q", got)
	}
}

func TestFirstSentence(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"": "", "One": "One", "One.": "One.", "One. Two.": "One.", "v1.2 is one. Two.": "v1.2 is one.", "\n One\nTwo. Three.": "One", "One.\r\nTwo. Three.": "One.",
	} {
		if got := text.FirstSentence(s); got != want {
			t.Errorf("FirstSentence(%q): got %q, want %q", s, got, want)
		}
	}
}

// cutReference decodes character by character. A byte that begins no character is one by itself; an incomplete character
// at the end of s is one.
func cutReference(s string, n int) string {
	end := 0
	for end < len(s) {
		_, size := utf8.DecodeRuneInString(s[end:])
		if !utf8.FullRuneInString(s[end:]) {
			size = len(s) - end
		}
		if end+size > n {
			break
		}
		end += size
	}
	return s[:end]
}

func FuzzCut(f *testing.F) {
	f.Add("a€😀é", 3)
	f.Add("\xff\x80\x80\x80", 3)
	f.Add("é\x80z", 2)
	f.Add("ab\xe2\x82", 3)
	f.Fuzz(func(t *testing.T, s string, n int) {
		if n < 0 {
			return
		}
		n %= len(s) + 2
		want := cutReference(s, n)
		if got := text.Cut(s, n); got != want {
			t.Errorf("Cut(%q, %d) is %q, want %q", s, n, got, want)
		}
		if got := text.Cut([]byte(s), n); string(got) != want {
			t.Errorf("Cut of the bytes %q, %d is %q, want %q", s, n, got, want)
		}
		if want != s {
			want += "…"
		}
		if got := text.Clip(s, n); got != want {
			t.Errorf("Clip(%q, %d) is %q, want %q", s, n, got, want)
		}
	})
}
