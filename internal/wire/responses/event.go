package responses

import (
	"github.com/lathe-run/lathe/internal/rawjson"
)

// An ev is an event: the encoded values of the members that the assembler reads. A value is nil if the member is absent or null.
type ev struct {
	typ                         []byte
	index, content, summary, id []byte
	delta, text                 []byte // delta: a piece of text; text: the complete text
	item, part, response        []byte
}

// read parses an event. It returns false if data is not a JSON object.
func (e *ev) read(data []byte) bool {
	end, err := rawjson.Scan(data, 0)
	if err != nil || rawjson.SkipSpace(data, end) != len(data) || data[rawjson.SkipSpace(data, 0)] != '{' {
		return false
	}
	for key, v := range rawjson.Members(data) {
		if v[0] != 'n' {
			e.set(key, v)
		}
	}
	return true
}

// set sets the field for a member, if there is one.
func (e *ev) set(key, v []byte) {
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
