package guest

import (
	"testing"

	"github.com/lathe-run/lathe"
)

// The total is the one that the server reports, and the sum if it reports none.
func TestUsageIsAsReported(t *testing.T) {
	t.Parallel()
	for total, want := range map[int64]string{0: "7", 5: "5", 9: "9"} {
		got := string(usage(&lathe.Usage{InputTokens: 3, OutputTokens: 4, TotalTokens: total}))
		if want := `{"completion_tokens":4,"prompt_tokens":3,"total_tokens":` + want + `}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
