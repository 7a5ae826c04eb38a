package observe

import (
	"encoding/json"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// maxSpanContent is the maximum length of one attribute with content, in bytes. Collectors refuse larger spans.
const maxSpanContent = 256 << 10

// appendRequest appends the content of a request to a model. Unless the wire is that of chat completions, instructions are an attribute
// apart from the messages, as the conventions require.
func appendRequest(attrs []attribute.KeyValue, r *event.ModelRequest) []attribute.KeyValue {
	messages := r.Messages
	if r.Wire != "" && r.Wire != lathe.WireOpenAIChat {
		n := 0
		for n < len(messages) && (messages[n].Role == lathe.RoleSystem || messages[n].Role == lathe.RoleDeveloper) {
			n++
		}
		if n > 0 {
			parts := []genAIPart{}
			for i := range n {
				parts = append(parts, genAIParts(&messages[i])...)
			}
			attrs = appendWhole(attrs, attrInstructions, parts)
		}
		messages = messages[n:]
	}
	attrs = appendMessages(attrs, messages)
	if len(r.Tools) > 0 {
		attrs = appendWhole(attrs, attrDefinitions, genAITools(r.Tools))
	}
	return attrs
}

// appendMessages appends the last messages of a conversation that fit into maxSpanContent, and the number of omitted ones.
func appendMessages(attrs []attribute.KeyValue, messages []lathe.Message) []attribute.KeyValue {
	size, first := 2, len(messages)
	texts := make([]string, len(messages))
	for ; first > 0; first-- {
		m := &messages[first-1]
		texts[first-1] = jsonText(genAIMessage{Role: string(m.Role), Parts: genAIParts(m)})
		if size += len(texts[first-1]) + 1; size > maxSpanContent {
			break
		}
	}
	if first > 0 {
		attrs = append(attrs, attribute.Int(attrOmitted, first))
	}
	return append(attrs, attribute.String(attrMessages, "["+strings.Join(texts[first:], ",")+"]"))
}

// appendAnswer appends the message of a model and its finish reason in the words of the conventions.
func appendAnswer(attrs []attribute.KeyValue, m *lathe.Message, reason lathe.FinishReason) []attribute.KeyValue {
	finish := string(reason)
	switch {
	case len(m.Calls()) > 0 && reason != lathe.FinishLength && reason != lathe.FinishContentFilter:
		finish = "tool_call"
	case reason == "" || reason == lathe.FinishToolCalls || reason == lathe.FinishUnknown:
		finish = "stop"
	}
	return appendWhole(attrs, attrAnswer, []genAIMessage{{Role: string(m.Role), Parts: genAIParts(m), Finish: finish}})
}

// appendWhole appends the JSON form of v. If it is longer than maxSpanContent, it appends the length instead.
func appendWhole(attrs []attribute.KeyValue, name string, v any) []attribute.KeyValue {
	text := jsonText(v)
	if len(text) > maxSpanContent {
		return append(attrs, attribute.Int(attrOmittedBytes, len(text)))
	}
	return append(attrs, attribute.String(name, text))
}

func jsonText(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "null" // cannot happen: strings and valid JSON have a JSON form
	}
	return string(b)
}

// A genAIMessage is a message in the JSON form of the conventions.
type genAIMessage struct {
	Role  string      `json:"role"`
	Parts []genAIPart `json:"parts"`
	// Finish is required for output messages of a model.
	Finish string `json:"finish_reason,omitempty"`
}

type genAIPart struct {
	Type      string          `json:"type"`
	Content   *string         `json:"content,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Response  *string         `json:"response,omitempty"`
	MediaType string          `json:"mime_type,omitempty"`
	Modality  string          `json:"modality,omitempty"`
	URI       string          `json:"uri,omitempty"`
	Bytes     int             `json:"bytes,omitempty"` // size of a blob, whose data is omitted
}

func genAIParts(m *lathe.Message) []genAIPart {
	parts := []genAIPart{}
	for _, p := range m.Parts {
		switch p := p.(type) {
		case lathe.Text:
			parts = append(parts, genAIPart{Type: "text", Content: &p.Text})
		case lathe.Reasoning:
			parts = append(parts, genAIPart{Type: "reasoning", Content: &p.Text})
		case lathe.Refusal:
			parts = append(parts, genAIPart{Type: "text", Content: &p.Text})
		case lathe.ToolCall:
			part := genAIPart{Type: "tool_call", ID: p.ID, Name: p.Name}
			if args := strings.TrimSpace(p.Arguments); json.Valid([]byte(args)) {
				part.Arguments = json.RawMessage(args)
			}
			parts = append(parts, part)
		case lathe.ToolResult:
			parts = append(parts, genAIPart{Type: "tool_call_response", ID: p.CallID, Response: &p.Content})
		case lathe.Blob:
			parts = append(parts, genAIBlob(&p))
		case lathe.Opaque: // has no text
		}
	}
	return parts
}

// genAIBlob returns a part with the URL of an image or file, or with its size if it has no URL.
func genAIBlob(b *lathe.Blob) genAIPart {
	part := genAIPart{Type: "blob", MediaType: b.MediaType, Modality: "document"}
	if kind, _, _ := strings.Cut(b.MediaType, "/"); kind == "image" || kind == "audio" || kind == "video" {
		part.Modality = kind
	}
	if b.URL != "" && !strings.HasPrefix(strings.ToLower(b.URL), "data:") {
		part.Type, part.URI = "uri", b.URL
		return part
	}
	part.Bytes = b.Size()
	return part
}

// A genAITool is the definition of a tool in the JSON form of the conventions.
type genAITool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

func genAITools(specs []*lathe.ToolSpec) []genAITool {
	out := make([]genAITool, len(specs))
	for i, s := range specs {
		out[i] = genAITool{Type: toolFunction, Name: s.Name, Description: s.Description}
		if json.Valid(s.Schema) {
			out[i].Parameters = s.Schema
		}
	}
	return out
}
