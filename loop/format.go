package loop

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/lathe-run/lathe/internal/schema"
)

// FormatPath is the path by which Dropped of a [lathe.Finish] says that the response format was not sent: the destination does not take it
// beside tools.
const FormatPath = "sampling.response_format"

// A responseFormat is the format that the answer of a run must have. It is never changed.
type responseFormat struct {
	source  json.RawMessage // as [lathe.Sampling] has it
	schema  *schema.Lazy
	checked bool // the run may not end answered with another answer
}

var anyObject, anyValue = json.RawMessage(`{"type":"object"}`), json.RawMessage(`true`)

// responseFormat returns the format; nil if the answer is plain text, or of a type that is not known.
func (l *Loop) responseFormat(source json.RawMessage) *responseFormat {
	if len(source) == 0 {
		return nil
	}
	if last := l.lastFormat.Load(); last != nil && bytes.Equal(last.source, source) {
		return last
	}
	var in struct {
		Type       string `json:"type"`
		JSONSchema struct {
			Schema json.RawMessage `json:"schema"`
			Strict *bool           `json:"strict"`
		} `json:"json_schema"`
	}
	if json.Unmarshal(source, &in) != nil { // its server says so
		return nil
	}
	f := &responseFormat{source: bytes.Clone(source)}
	text := anyObject
	switch in.Type {
	case "json_object":
	case "json_schema":
		text, f.checked = in.JSONSchema.Schema, len(in.JSONSchema.Schema) > 0 && (in.JSONSchema.Strict == nil || *in.JSONSchema.Strict)
	default:
		return nil
	}
	var err error
	if f.schema, err = schema.CompileLazily(text); err != nil { // the server judges schemas that Lathe cannot check
		f.checked = false
		if f.schema, err = schema.CompileLazily(anyValue); err != nil {
			return nil
		}
	}
	l.lastFormat.Store(f)
	return f
}

// maxAnswerViolations bounds the violations of a schema that a model reads.
const maxAnswerViolations = 10

// violation returns in which ways a text does not have the format; "" if it has it.
func (f *responseFormat) violation(text string) string {
	found := f.schema.Schema().Validate([]byte(text))
	if len(found) == 0 {
		return ""
	}
	var said []string
	for _, v := range found[:min(len(found), maxAnswerViolations)] {
		place := "the text"
		if v.Pointer != "" {
			place = v.Pointer
		}
		said = append(said, place+" "+v.Message)
	}
	return strings.Join(said, "; ")
}
