package responses

import (
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
)

// A request to compact a conversation has no tools and no form of the answer, and lists those that were given.
func TestParseCompactionIgnoresToolsAndForm(t *testing.T) {
	req, err := Codec{}.ParseCompaction([]byte(`{"model":"m","input":"hi","tools":[{"type":"function","name":"f"},{"type":"web_search"}],"tool_choice":"required",
		"parallel_tool_calls":true,"text":{"format":{"type":"json_object"},"verbosity":"low"},"include":["x"],"max_output_tokens":5,"reasoning":{"effort":"low"},"prompt_cache_key":"k"}`))
	if err != nil {
		t.Fatal(err)
	}
	if len(req.Tools)+len(req.Hosted) != 0 || req.ToolChoice.Mode != "" || req.ParallelToolCalls != nil || req.Sampling.MaxTokens != nil || req.Sampling.ResponseFormat != nil || req.Sampling.ReasoningEffort != "low" {
		t.Errorf("got %+v", req)
	}
	if got := strings.Join(req.Dropped, " "); got != "tools tool_choice parallel_tool_calls max_output_tokens text include" {
		t.Errorf("dropped %s", got)
	}
	if len(req.Unknown) != 1 || req.Unknown[0].Name != "prompt_cache_key" {
		t.Errorf("unknown %v", req.Unknown)
	}
}

// The answer to a compaction is that of the published schema.
func TestCompactionMatchesSchema(t *testing.T) {
	body := AppendCompaction(nil, &Compaction{ID: "1", Created: 5, Sealed: "lathe1.x", Kept: []lathe.Message{
		{Role: lathe.RoleUser, Wire: lathe.WireResponses, Parts: []lathe.Part{lathe.Text{Text: "a"}, lathe.Blob{MediaType: "image/png", Data: []byte("x")}}}}})
	openResponses(t).validate(t, "CompactResource", body)
	item := `{"type":"compaction","id":"cmp_1_1","encrypted_content":"lathe1.x"}`
	if !strings.Contains(string(body), `"id":"msg_1_0"`) || !strings.Contains(string(body), `"cmp_1_1"`) || CompactionContent([]byte(item)) != "lathe1.x" {
		t.Errorf("got %s", body)
	}
	for _, other := range []string{`{"type":"reasoning","encrypted_content":"lathe1.x"}`, `{"type":"compaction"}`, `{"type":"compaction","encrypted_content":5}`} {
		if got := CompactionContent([]byte(other)); got != "" {
			t.Errorf("%s: %q", other, got)
		}
	}
}
