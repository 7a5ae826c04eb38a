package wire

import (
	"testing"

	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/testdata"
)

// What has no copy of its own is what the literal says.
func TestParseStringOfCommonWords(t *testing.T) {
	testdata.CountsAllocations(t)
	for _, w := range []string{"user", "assistant", "model", "tool", "system", "text", "tool_use", "tool_result", "message", "input_text", "output_text", "function_call", "function_call_output"} {
		quoted := rawjson.AppendQuote(nil, w)
		if got := testing.AllocsPerRun(10, func() {
			if s, err := ParseString(quoted, "role"); err != nil || s != w {
				t.Errorf("ParseString(%s) = %q, %v", quoted, s, err)
			}
		}); got != 0 {
			t.Errorf("ParseString(%s) makes %v allocations", quoted, got)
		}
	}
	for raw, want := range map[string]string{`""`: "", `"User"`: "User", `"user "`: "user ", `"\u0075ser"`: "user", `"texts"`: "texts"} {
		if s, err := ParseString([]byte(raw), "role"); err != nil || s != want {
			t.Errorf("ParseString(%s) = %q, %v", raw, s, err)
		}
	}
}
