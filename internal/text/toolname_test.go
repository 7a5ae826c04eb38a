package text_test

import (
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/text"
)

// A name that is too long is cut, and two that differ only behind the cut stay different.
func TestToolNameShortensByOneRule(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", text.MaxToolName)
	for _, tt := range []struct{ name, remote, want string }{
		{"a", "b", "a"}, {long, "b", long},
		{long + "1", "abc", long[:55] + "_ba7816bf"}, // the SHA-256 of abc begins with ba7816bf
		{long + "2", "other", long[:55] + "_" + text.Digest("other")},
	} {
		if got := text.ToolName(tt.name, tt.remote); got != tt.want || len(got) > text.MaxToolName {
			t.Errorf("ToolName(%q, %q): got %q, want %q", tt.name, tt.remote, got, tt.want)
		}
	}
}
