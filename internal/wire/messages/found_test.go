package messages_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/destination"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/messages"
)

// With thinking_binding keep, the definitions of found tools stand behind the result that found them: the list of tools and the messages
// before it stay as they were, also in later requests.
func TestFoundToolsStandBehindTheirSearch(t *testing.T) {
	t.Parallel()
	spec := func(name string) *lathe.ToolSpec {
		return &lathe.ToolSpec{Name: name, Description: "does " + name, Schema: json.RawMessage(`{"type":"object"}`)}
	}
	search, one, two, own := spec("tool_search"), spec("one"), spec("two"), spec("own")
	call := func(id, name string) lathe.Part {
		return lathe.ToolCall{ID: id, Name: name, Arguments: `{"query":"x"}`}
	}
	result := func(id, name, content string) lathe.Message {
		return lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: id, Name: name, Content: content}}}
	}
	think := lathe.Reasoning{Text: "hm", Field: "thinking", Data: "sig", Entry: "x"}
	asks := func(parts ...lathe.Part) lathe.Message {
		return lathe.Message{Role: lathe.RoleAssistant, Wire: lathe.WireMessages, Parts: append([]lathe.Part{think}, parts...)}
	}
	history := []lathe.Message{lathe.User("go"),
		asks(call("a", "tool_search"), call("b", "own")), result("a", "tool_search", `{"tools":[{"name":"two"},{"name":"gone"}],"more":[{"name":"one"}]}`), result("b", "own", "{}"),
		asks(call("c", "tool_search")), result("c", "tool_search", `{"tools":[{"name":"one"},{"name":"two"}],"more":[]}`),
		asks(call("d", "one")), result("d", "one", "{}"), asks(lathe.Text{Text: "done"}), lathe.User("thanks")}
	type body struct{ Tools, Messages []json.RawMessage }
	encode := func(binding string, n int, tools ...*lathe.ToolSpec) (b body) {
		raw, dropped := messages.Codec{}.AppendRequest(nil, &lathe.Request{Model: "m", Tools: tools, Messages: history[:n]},
			&wire.EncodeOptions{Entry: "x", Takes: destination.Row{ThinkingBinding: binding}})
		if err := json.Unmarshal(raw, &b); err != nil || len(dropped) > 0 {
			t.Fatalf("%v, dropped %q: %s", err, dropped, raw)
		}
		return b
	}
	text := func(list []json.RawMessage) string {
		var all []string
		for _, m := range list {
			all = append(all, string(m))
		}
		return strings.Join(all, "\n")
	}
	before := encode(destination.Keep, 1, own, search)
	for _, later := range []body{encode(destination.Keep, 4, own, search, two), encode(destination.Keep, 6, own, search, two, one), encode(destination.Keep, 10, own, search, two, one)} {
		if text(later.Tools) != text(before.Tools) || !strings.HasPrefix(text(later.Messages), text(before.Messages)+"\n") {
			t.Errorf("%s\n%s\nafter\n%s\n%s", text(later.Tools), text(later.Messages), text(before.Tools), text(before.Messages))
		}
		before = later
	}
	all := text(before.Messages)
	if first, second := strings.Index(all, `"definition":{"name":"two"`), strings.Index(all, `"definition":{"name":"one"`); first < 0 || second < first ||
		strings.Count(all, "tool_addition") != 2 || !strings.Contains(all, `{"role":"system","content":[{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"name":"two","description":"does two","input_schema":{"type":"object"}}}}]}`) {
		t.Errorf("the additions are %s", all)
	}
	if appended := encode(destination.DropBlock, 4, own, search, two); len(appended.Tools) != 3 || strings.Contains(text(appended.Messages), "tool_addition") {
		t.Errorf("drop_block: %s", text(appended.Messages))
	}
	if betas := messages.Betas(&lathe.Request{Tools: []*lathe.ToolSpec{search, two}, Messages: history}, &destination.Row{ThinkingBinding: destination.Keep}, nil); len(betas) != 2 {
		t.Errorf("betas %q", betas)
	}
}
