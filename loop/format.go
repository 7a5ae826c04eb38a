package loop

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe/internal/schema"
)

// FormatPath is the entry in [lathe.Finish].Dropped that reports a response format which was not sent, because the server does not accept
// it together with tools.
const FormatPath = "sampling.response_format"

// A responseFormat is the format that the answer of a run must have. It is immutable.
type responseFormat struct {
	source  json.RawMessage // the value in [lathe.Sampling]
	schema  *schema.Lazy
	checked bool // a run whose answer does not match must not end `answered`
}

var anyObject, anyValue = json.RawMessage(`{"type":"object"}`), json.RawMessage(`true`)

// responseFormat parses a response format. It returns nil if the answer is plain text, or the type of the format is unknown.
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
	if json.Unmarshal(source, &in) != nil { // the server reports the error
		return nil
	}
	f := &responseFormat{source: bytes.Clone(source)}
	var text json.RawMessage
	switch in.Type {
	case "json_object":
		text = anyObject
	case "json_schema":
		text = in.JSONSchema.Schema
		strict := in.JSONSchema.Strict == nil || *in.JSONSchema.Strict
		f.checked = strict && len(text) > 0
	default:
		return nil
	}
	var err error
	if f.schema, err = schema.CompileLazily(text); err != nil { // the schema is one that Lathe cannot check: only the server checks it
		f.checked = false
		if f.schema, err = schema.CompileLazily(anyValue); err != nil {
			return nil
		}
	}
	l.lastFormat.Store(f)
	return f
}

// maxAnswerViolations is the maximum number of violations in the text for the model.
const maxAnswerViolations = 10

// violation returns how a text violates the format; "" if it matches.
func (f *responseFormat) violation(text string) string {
	return f.describe(text, func(pointer string) string { return pointer })
}

// rules returns what violation returns, without text of the answer: a member that the schema does not name is *.
func (f *responseFormat) rules(text string) string {
	return f.describe(text, func(pointer string) string {
		steps := strings.Split(pointer, "/")
		for i, step := range steps {
			if step != "" && !isIndex(step) && !f.contains(step) {
				steps[i] = "*"
			}
		}
		return strings.Join(steps, "/")
	})
}

// isIndex reports whether a step of a JSON pointer is an index. A number above 999,999 counts as a name of the answer.
func isIndex(step string) bool {
	n, err := strconv.Atoi(step)
	return err == nil && n <= 999_999
}

// contains reports whether the source of the format contains the member name that a step of a JSON pointer stands for.
func (f *responseFormat) contains(step string) bool {
	name, _ := json.Marshal(strings.NewReplacer("~1", "/", "~0", "~").Replace(step)) // a string has a JSON form
	return bytes.Contains(f.source, name)
}

// describe returns the violations of a text, with the place of each in the form that place returns for its JSON pointer.
func (f *responseFormat) describe(text string, place func(pointer string) string) string {
	found := f.schema.Schema().Validate([]byte(text))
	var said []string
	for _, v := range found[:min(len(found), maxAnswerViolations)] {
		said = append(said, cmp.Or(place(v.Pointer), "the text")+" "+v.Message)
	}
	return strings.Join(said, "; ")
}
