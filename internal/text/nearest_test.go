package text

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	words := []string{"max_iterations", "max_total_tool_calls", "tool_choice", "enforced", "a"}
	for in, want := range map[string]string{
		"max_iteration": "max_iterations", "MAX_ITERATIONS": "max_iterations", "max_itertaions": "max_iterations", "tool_choise": "tool_choice",
		"enforce": "enforced", "zebra": "", "": "", "b": "", strings.Repeat("a", maxBytes+1): "",
	} {
		if got := Nearest(in, words); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"ab", "ba", 1}, {"kitten", "sitting", 3}, {"abc", "abc", 0}} {
		if got := Distance(tt.a, tt.b); got != tt.want || Distance(tt.b, tt.a) != tt.want {
			t.Errorf("distance of %q and %q: got %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestSuggest(t *testing.T) {
	t.Parallel()
	names := []string{"calculator", "state_get", "state_patch", "state_put", "state_del", "wire"}
	for word, want := range map[string]string{
		"calclator": "did you mean calculator?",
		"stat":      "did you mean state_get or state_patch or state_put?",
		"wier":      "did you mean wire?",
		"file":      "none",
		"zebra":     "none",
		"":          "none",
	} {
		if got := Suggest(word, names, "none"); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
}
