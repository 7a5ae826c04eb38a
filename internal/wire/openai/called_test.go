package openai

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
)

// A result gets the name of the latest call before it with its id, however many calls a message has and wherever it is.
func TestResultsHaveTheNamesOfTheirCalls(t *testing.T) {
	t.Parallel()
	for _, perMessage := range []int{1, 2, 8, 9, 20} {
		var b strings.Builder
		b.WriteString(`{"model":"m","messages":[{"role":"tool","tool_call_id":"c0","content":"early"}`)
		want := []string{""}
		names := map[string]string{}
		for i := range 30 {
			b.WriteString(`,{"role":"assistant","tool_calls":[`)
			for k := range perMessage {
				id, name := fmt.Sprint("c", (i+k)%7), fmt.Sprintf("f%d_%d", i, k) // ids repeat
				names[id] = name
				if k > 0 {
					b.WriteByte(',')
				}
				fmt.Fprintf(&b, `{"id":%q,"type":"function","function":{"name":%q,"arguments":"{}"}}`, id, name)
			}
			b.WriteString(`]}`)
			for k := range 3 { // of this message, of earlier ones, and of none
				id := fmt.Sprint("c", (i+2*k)%8)
				fmt.Fprintf(&b, `,{"role":"tool","tool_call_id":%q,"content":[{"type":"text","text":"x"}]}`, id)
				want = append(want, names[id])
			}
		}
		b.WriteString(`]}`)
		req, err := ParseRequest([]byte(b.String()))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range req.Messages {
			if m.Role == lathe.RoleTool {
				got = append(got, m.Parts[0].(lathe.ToolResult).Name)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%d calls: %v, want %v", perMessage, got, want)
		}
	}
}
