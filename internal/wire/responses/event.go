package responses

import (
	"github.com/lathe-run/lathe/internal/rawjson"
)

// A streamEvent is an event: the encoded values of the members that the assembler reads. A value is nil if the member is absent or null.
type streamEvent struct {
	typ                         []byte
	index, content, summary, id []byte
	delta, text                 []byte // delta: a piece of text; text: the complete text
	item, part, response        []byte
	isEnd                       bool // the type ends with ".done"; set by the assembler
}

// read parses an event. It returns false if data is not a JSON object.
func (e *streamEvent) read(data []byte) bool {
	object, ok := rawjson.Object(data)
	for key, v := range rawjson.Members(object) {
		if v[0] != 'n' {
			e.set(key, v)
		}
	}
	return ok
}

// set sets the field for a member, if there is one.
func (e *streamEvent) set(key, v []byte) {
	switch string(key) {
	case `"type"`:
		if v[0] == '"' {
			e.typ = v
		}
	case `"output_index"`:
		e.index = v
	case `"content_index"`:
		e.content = v
	case `"summary_index"`:
		e.summary = v
	case `"item_id"`:
		e.id = v
	case `"delta"`:
		e.delta = v
	case `"text"`, `"refusal"`, `"arguments"`, `"input"`:
		e.text = v
	case `"item"`:
		e.item = v
	case `"part"`:
		e.part = v
	case `"response"`:
		e.response = v
	}
}
