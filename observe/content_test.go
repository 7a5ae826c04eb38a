package observe

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.opentelemetry.io/otel/attribute"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/testdata"
)

// contentOf returns the texts of attributes by name.
func contentOf(attrs []attribute.KeyValue) map[string]string {
	out := map[string]string{}
	for _, kv := range attrs {
		out[string(kv.Key)] = kv.Value.String()
	}
	return out
}

// wholeRequest is a request with every kind of part.
func wholeRequest(w lathe.Wire) *event.ModelRequest {
	return &event.ModelRequest{Wire: w, Messages: []lathe.Message{lathe.System("Be brief."),
		{Role: lathe.RoleUser, Parts: []lathe.Part{lathe.Text{Text: "Hi."}, lathe.Blob{MediaType: "image/png", Data: []byte("12345")},
			lathe.Blob{MediaType: "application/pdf", URL: "https://example.com/a.pdf"}, lathe.Opaque{JSON: json.RawMessage(`{"type":"x"}`)}}},
		{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Reasoning{Text: "Hm."}, lathe.ToolCall{ID: "c", Name: "t", Arguments: `{"a":1}`}, lathe.ToolCall{ID: "d", Name: "t", Arguments: `{`}}},
		{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: "c", Content: "1"}}}},
		Tools: []*lathe.ToolSpec{{Name: "t", Description: "adds", Schema: json.RawMessage(`{"type":"object"}`)}, {Name: "u"}}}
}

const (
	instructionParts = `[{"type":"text","content":"Be brief."}]`
	otherMessages    = `{"role":"user","parts":[{"type":"text","content":"Hi."},{"type":"blob","mime_type":"image/png","modality":"image","bytes":5},{"type":"uri","mime_type":"application/pdf","modality":"document","uri":"https://example.com/a.pdf"}]},` +
		`{"role":"assistant","parts":[{"type":"reasoning","content":"Hm."},{"type":"tool_call","id":"c","name":"t","arguments":{"a":1}},{"type":"tool_call","id":"d","name":"t"}]},` +
		`{"role":"tool","parts":[{"type":"tool_call_response","id":"c","response":"1"}]}]`
)

// The texts of spans have the form of the conventions. Instructions are apart where the wire has them apart.
func TestSpanMessages(t *testing.T) {
	t.Parallel()
	got := contentOf(appendRequest(nil, wholeRequest(lathe.WireMessages)))
	if got[attrInstructions] != instructionParts || got[attrMessages] != "["+otherMessages ||
		got[attrDefinitions] != `[{"type":"function","name":"t","description":"adds","parameters":{"type":"object"}},{"type":"function","name":"u"}]` {
		t.Errorf("%v", got)
	}
	for _, w := range []lathe.Wire{"", lathe.WireOpenAIChat} {
		got = contentOf(appendRequest(nil, wholeRequest(w)))
		if _, apart := got[attrInstructions]; apart || got[attrMessages] != `[{"role":"system","parts":`+instructionParts+"},"+otherMessages {
			t.Errorf("%q: %v", w, got)
		}
	}
	for _, c := range []struct {
		calls  bool
		reason lathe.FinishReason
		want   string
	}{{false, lathe.FinishStop, "stop"}, {true, lathe.FinishToolCalls, "tool_call"}, {true, lathe.FinishLength, "length"}, {false, lathe.FinishContentFilter, "content_filter"}, {false, lathe.FinishUnknown, "stop"}} {
		m := lathe.Assistant("Yes.")
		if c.calls {
			m.Parts = append(m.Parts, lathe.ToolCall{ID: "c", Name: "t", Arguments: "{}"})
		}
		if got := contentOf(appendAnswer(nil, &m, c.reason))[attrAnswer]; !strings.HasSuffix(got, `"finish_reason":"`+c.want+`"}]`) {
			t.Errorf("%v: %s", c, got)
		}
	}
}

// The texts of spans satisfy the JSON schemas of the conventions, which viewers such as Phoenix are generated from.
func TestSpanContentSatisfiesTheSchemas(t *testing.T) {
	t.Parallel()
	answer := lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Text{Text: "Yes."}, lathe.ToolCall{ID: "c", Name: "t", Arguments: "{}"}}}
	content := contentOf(appendAnswer(appendRequest(nil, wholeRequest(lathe.WireResponses)), &answer, lathe.FinishToolCalls))
	for name, file := range map[string]string{attrMessages: "gen-ai-input-messages.json", attrAnswer: "gen-ai-output-messages.json",
		attrInstructions: "gen-ai-system-instructions.json", attrDefinitions: "gen-ai-tool-definitions.json"} {
		f, err := os.Open(testdata.Dir(t, "otel-genai", file))
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(f)
		_ = f.Close()
		if err != nil {
			t.Fatal(err)
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource(file, doc); err != nil {
			t.Fatal(err)
		}
		schema, err := c.Compile(file)
		if err != nil {
			t.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(content[name]))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := schema.Validate(v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := schema.Validate([]any{map[string]any{"parts": "x"}}); err == nil {
			t.Errorf("%s accepts anything", file)
		}
	}
}

// A long conversation is shortened to its last messages, and a text that cannot be shortened is left out: a span has at
// most 256 KiB of each.
func TestSpanContentIsBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 100<<10)
	r := &event.ModelRequest{Messages: []lathe.Message{lathe.User(long), lathe.Assistant("b" + long), lathe.User("c" + long)},
		Tools: []*lathe.ToolSpec{{Name: "t", Description: strings.Repeat("d", maxSpanContent)}}}
	got := contentOf(appendRequest(nil, r))
	if n := len(got[attrMessages]); n > maxSpanContent || n < 200<<10 || !json.Valid([]byte(got[attrMessages])) || got[attrOmitted] != "1" ||
		!strings.HasPrefix(got[attrMessages], `[{"role":"assistant","parts":[{"type":"text","content":"b`) {
		t.Errorf("%d bytes, %s messages omitted", n, got[attrOmitted])
	}
	if _, has := got[attrDefinitions]; has || got[attrOmittedBytes] == "" {
		t.Errorf("definitions of %s bytes", got[attrOmittedBytes])
	}
}

// Spans name the server of a model by its host and its port, as numbers and without brackets.
func TestSpansNameTheServer(t *testing.T) {
	t.Parallel()
	for server, want := range map[string][2]string{"api.example.com:443": {"api.example.com", "443"}, "[::1]:8080": {"::1", "8080"}, "": {}} {
		got := contentOf(appendServer(nil, server))
		if got[attrServer] != want[0] || got[attrPort] != want[1] {
			t.Errorf("%q: %v", server, got)
		}
	}
}
