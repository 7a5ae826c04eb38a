package places

import (
	"testing"

	"github.com/lathe-run/lathe"
)

// Reasoning of turns that the server put into a conversation has the place of the client's reasoning that it is, of the message in whose place it is, or of
// the member that stands for the conversation.
func TestReasoningOfReplacedMessagesHasAPlace(t *testing.T) {
	t.Parallel()
	said := func(parts ...lathe.Part) lathe.Message { return lathe.Message{Role: lathe.RoleAssistant, Parts: parts} }
	thinks := func(text, data string) lathe.Part { return lathe.Reasoning{Text: text, Data: data} }
	text := func(text string) lathe.Part { return lathe.Text{Text: text} }
	call := lathe.ToolCall{ID: "s1", Name: "calculator"}
	result := lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: "s1"}}}
	hi, and := lathe.User("hi"), lathe.User("and?")
	turns := []lathe.Message{said(thinks("One.", "a"), call), result, said(thinks("Two.", "b"), text("Done."))}
	for name, tt := range map[string]struct {
		wire   lathe.Wire
		body   string
		parsed []lathe.Message
		run    []lathe.Message
		want   map[string]string
	}{
		"one text for two turns": {lathe.WireOpenAIChat, `{"messages":[{"role":"user","content":"hi"},{"role":"assistant","reasoning_content":"One.Two.","content":"Done."},{"role":"user","content":"and?"}]}`,
			[]lathe.Message{hi, said(thinks("One.Two.", ""), text("Done.")), and}, []lathe.Message{hi, turns[0], turns[1], turns[2], and},
			map[string]string{"messages[1].parts[0]": "messages[1].reasoning_content", "messages[3].parts[0]": "messages[1].reasoning_content", "messages[4].parts[0]": "messages[2].content"}},
		"two members": {lathe.WireOpenAIChat, `{"messages":[{"role":"user","content":"hi"},{"role":"assistant","reasoning":"a","reasoning_content":"b","content":"Done."}]}`,
			[]lathe.Message{hi, said(thinks("a", ""), thinks("b", ""), text("Done."))}, nil,
			map[string]string{"messages[1].parts[0]": "messages[1].reasoning", "messages[1].parts[1]": "messages[1].reasoning_content"}},
		"blocks of the same text": {lathe.WireMessages, `{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"thinking","thinking":"One.","signature":""},{"type":"redacted_thinking","data":"x"},{"type":"thinking","thinking":"One.","signature":"b"},{"type":"text","text":"Done."}]},{"role":"user","content":"and?"}]}`,
			[]lathe.Message{hi, said(thinks("One.", ""), thinks("", "x"), thinks("One.", "b"), text("Done.")), and}, []lathe.Message{hi, said(thinks("One.", "a"), call), result, said(thinks("One.", "b"), text("Done.")), and},
			map[string]string{"messages[1].parts[0]": "messages[1].content[0]", "messages[3].parts[0]": "messages[1].content[2]"}},
		"without reasoning": {lathe.WireMessages, `{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"Done."},{"role":"user","content":"and?"}]}`,
			[]lathe.Message{hi, said(text("Done.")), and}, []lathe.Message{hi, turns[0], turns[1], turns[2], and},
			map[string]string{"messages[1].parts[0]": "messages[1]", "messages[3].parts[0]": "messages[1]"}},
		"two messages without reasoning": {lathe.WireMessages, `{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"A"},{"role":"assistant","content":"B"},{"role":"user","content":"and?"}]}`,
			[]lathe.Message{hi, said(text("A")), said(text("B")), and}, []lathe.Message{hi, turns[0], turns[1], turns[2], and},
			map[string]string{"messages[1].parts[0]": "messages"}},
		"a stored response": {lathe.WireResponses, `{"previous_response_id":"resp_1","input":[{"role":"user","content":"and?"}]}`,
			[]lathe.Message{and}, []lathe.Message{hi, turns[0], turns[1], turns[2], and},
			map[string]string{"messages[1].parts[0]": "previous_response_id", "messages[4].parts[0]": "input[0].content"}},
	} {
		run := tt.run
		if run == nil {
			run = tt.parsed
		}
		at := Of(tt.wire, []byte(tt.body), tt.parsed, run)
		for path, want := range tt.want {
			if got := at(path); got != want {
				t.Errorf("%s: %s is at %s, want %s", name, path, got, want)
			}
		}
	}
}
