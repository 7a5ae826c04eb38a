package openai

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/lathe-run/lathe"
)

// TestForeignMembersAreListedAndNotSent: what a message or tool keeps of another wire is in the list of what is dropped,
// and not in the request.
func TestForeignMembersAreListedAndNotSent(t *testing.T) {
	mark := []lathe.Member{member("cache_control", `{"type":"ephemeral"}`)}
	seven := 7
	req := &lathe.Request{
		Tools: []*lathe.ToolSpec{{Name: "f", Wire: lathe.WireMessages, Extra: []lathe.Member{member("strict", "true"), member("defer_loading", "true")}},
			{Name: "g", Extra: []lathe.Member{member("own", "1")}}},
		HostedTools: []json.RawMessage{json.RawMessage(`{"type":"web_search"}`)},
		Sampling:    lathe.Sampling{TopK: &seven, ReasoningBudget: &seven, ReasoningSummary: "auto"},
		Messages: []lathe.Message{
			{Role: lathe.RoleUser, Wire: lathe.WireMessages, Extra: mark, Parts: []lathe.Part{
				lathe.Text{Text: "a", Extra: mark},
				lathe.Opaque{JSON: json.RawMessage(`{"type":"document"}`)},
				lathe.Blob{URL: "https://x.invalid/a.pdf", MediaType: "application/pdf"},
				lathe.Blob{URL: "https://x.invalid/a.png", Raw: json.RawMessage(`{"type":"image"}`)}}},
			{Role: lathe.RoleAssistant, Wire: lathe.WireMessages, Parts: []lathe.Part{
				lathe.Reasoning{Text: "r", Field: "thinking", Data: "sig", Entry: "m"},
				lathe.ToolCall{ID: "c", Name: "f", Arguments: "{}", Extra: []lathe.Member{member("caller", "{}")}}}},
			{Role: lathe.RoleTool, Wire: lathe.WireMessages, Parts: []lathe.Part{lathe.ToolResult{CallID: "c", Content: "x", Extra: mark}}},
			{Role: lathe.RoleUser, Extra: mark, Parts: []lathe.Part{lathe.Opaque{JSON: json.RawMessage(`{"type":"own"}`)}}},
		},
	}
	body, got := Upstream{}.AppendRequest(nil, req, &EncodeOptions{ReasoningField: ReasoningSame, Entry: "m"})
	want := []string{"sampling.reasoning_budget", "sampling.reasoning_summary", "sampling.top_k", "tools[0].defer_loading",
		"messages[0].cache_control", "messages[0].parts[0].cache_control", "messages[0].parts[1]", "messages[0].parts[2]", "messages[0].parts[3].raw",
		"messages[1].parts[0]", "messages[1].parts[1].caller", "messages[2].parts[0].cache_control"}
	if !slices.Equal(got, want) {
		t.Errorf("dropped\n%q, want\n%q", got, want)
	}
	const sent = `{"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}},"strict":true}},` +
		`{"type":"function","function":{"name":"g","parameters":{"type":"object","properties":{}}},"own":1},{"type":"web_search"}],"messages":[` +
		`{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"https://x.invalid/a.png"}}]},` +
		`{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},` +
		`{"role":"tool","tool_call_id":"c","content":"x"},` +
		`{"role":"user","content":[{"type":"own"}],"cache_control":{"type":"ephemeral"}}]}`
	if string(body) != sent {
		t.Errorf("sent\n%s, want\n%s", body, sent)
	}
}

// TestReasoningIsSentToItsOwnEntryAlone: reasoning goes to the model that wrote it, or to any where that is not known.
func TestReasoningIsSentToItsOwnEntryAlone(t *testing.T) {
	msgs := []lathe.Message{{Role: lathe.RoleAssistant, Parts: []lathe.Part{
		lathe.Reasoning{Text: "mine", Field: "reasoning_content", Entry: "a"}, lathe.Text{Text: "x"}}}}
	msgs[0].Extra = []lathe.Member{member("reasoning_details", `[{"data":"sealed"}]`), member("annotations", `[]`)}
	for _, c := range []struct{ entry, field, want string }{
		{"a", ReasoningSame, `{"role":"assistant","content":"x","reasoning_content":"mine","reasoning_details":[{"data":"sealed"}],"annotations":[]}`},
		{"b", ReasoningSame, `{"role":"assistant","content":"x","annotations":[]}`},
		{"b", "reasoning", `{"role":"assistant","content":"x","annotations":[]}`},
		{"a", "", `{"role":"assistant","content":"x","reasoning_details":[{"data":"sealed"}],"annotations":[]}`},
	} {
		opts := &EncodeOptions{ReasoningField: c.field, Entry: c.entry}
		body, dropped := AppendMessages(nil, msgs, opts), appendDropped(nil, msgs, opts)
		if string(body) != c.want {
			t.Errorf("entry %s, field %q: %s", c.entry, c.field, body)
		}
		if listed := len(dropped) == 2; listed != (c.entry == "b") {
			t.Errorf("entry %s, field %q: dropped %q", c.entry, c.field, dropped)
		}
	}
}

// TestSamplingOfAllWires: the penalties are sent, and top_k where the model's server takes it.
func TestSamplingOfAllWires(t *testing.T) {
	k, f := 3, 0.5
	req := &lathe.Request{Sampling: lathe.Sampling{TopK: &k, PresencePenalty: &f, FrequencyPenalty: &f}}
	body, dropped := Upstream{}.AppendRequest(nil, req, &EncodeOptions{TopK: true})
	if want := `{"top_k":3,"presence_penalty":0.5,"frequency_penalty":0.5,"messages":[]}`; string(body) != want || dropped != nil {
		t.Errorf("%s, dropped %q", body, dropped)
	}
}

func member(name, value string) lathe.Member {
	return lathe.Member{Name: name, Value: json.RawMessage(value)}
}
