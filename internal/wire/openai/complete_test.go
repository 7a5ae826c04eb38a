package openai

import (
	"fmt"
	"strings"
	"testing"
)

// answerBody is an answer of n bytes of text and a call with as many bytes of arguments.
func answerBody(i, n int) string {
	word := strings.Repeat(string(rune('a'+i%26)), n)
	return fmt.Sprintf(`{"id":"r%d","model":"m%d","choices":[{"message":{"role":"assistant","content":"t%s","reasoning":"r%[3]s",`+
		`"tool_calls":[{"id":"c%[1]d","type":"function","function":{"name":"f%[1]d","arguments":"{\"k\":\"%[3]s\"}"}},`+
		`{"id":"d%[1]d","type":"function","function":{"name":"g","arguments":""}}]},"finish_reason":"tool_calls"}]}`, i, i, word)
}

func TestCompleteGivesTheDeltasOfAStream(t *testing.T) {
	t.Parallel()
	deltas, _, err := NewAssembler(nil).Complete(nil, []byte(answerBody(0, 0)))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, d := range deltas {
		fmt.Fprintf(&text, "%d %d %s %s %s\n", d.Kind, d.Index, d.ID, d.Name, d.Text)
	}
	const want = "2 0   r\n1 0   t\n5 0 c0 f0 \n6 0   {\"k\":\"\"}\n7 0   \n5 1 d0 g \n7 1   \n"
	if text.String() != want {
		t.Errorf("deltas:\n%s\nwant:\n%s", &text, want)
	}
}
