package responses

import (
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/wire"
)

// A server of this wire gets the calls of the client's own kinds of tools, and the items that bring tools, as they came, and the
// definitions of these tools only there.
func TestItemsOfTheClientAreSentAsTheyCame(t *testing.T) {
	t.Parallel()
	items := []string{
		`{"type":"local_shell_call","id":"lsh_1","call_id":"c1","status":"completed","action":{"type":"exec","command":["ls"]}}`,
		`{"type":"local_shell_call_output","id":"o_1","call_id":"c1","output":"out"}`,
		`{"type":"computer_call","call_id":"c2","action":{"type":"screenshot"},"pending_safety_checks":[]}`,
		`{"type":"computer_call_output","call_id":"c2","output":{"type":"computer_screenshot","image_url":"data:image/png;base64,AAAA"}}`,
		`{"type":"additional_tools","role":"developer","tools":[{"type":"function","name":"late","parameters":{"type":"object","properties":{}}}]}`,
		`{"type":"tool_search_call","call_id":"s1","execution":"client","arguments":{"query":"q"}}`,
		`{"type":"tool_search_output","call_id":"s1","execution":"client","tools":[{"type":"function","name":"late"},{"type":"custom","name":"later"}]}`,
		`{"type":"custom_tool_call","call_id":"c3","name":"later","input":"text"}`,
		`{"type":"custom_tool_call_output","call_id":"c3","output":"done"}`,
	}
	parsed, err := Codec{}.ParseRequest([]byte(`{"model":"m","tools":[{"type":"function","name":"first"}],"input":[` + strings.Join(items, ",") + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range parsed.Tools {
		names = append(names, tool.Name)
	}
	if got := strings.Join(names, " "); got != "first late later" {
		t.Errorf("the tools are %s", got)
	}
	body, dropped := Codec{}.AppendRequest(nil, &parsed.Request, nil)
	for _, item := range items {
		if !strings.Contains(string(body), item) {
			t.Errorf("there is no %s in\n%s", item, body)
		}
	}
	if n := strings.Count(string(body), `"name":"late"`); n != 2 || len(dropped) > 0 || strings.Contains(string(body), wire.ItemMember) {
		t.Errorf("late is defined %d times, dropped is %q:\n%s", n, dropped, body)
	}
}
