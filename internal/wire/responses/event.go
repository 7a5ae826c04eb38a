package responses

import "github.com/lathe-run/lathe/internal/rawjson"

// An ev is an event: the raw values of the members that the assembler reads. A member is nil if it is absent or null.
type ev struct {
	typ                         []byte
	index, content, summary, id []byte
	delta, text                 []byte // of a piece, and of a whole
	item, part, response        []byte
	number, padding             []byte // of the event
}

// read parses an event in one pass. known is a string that it may contain, or nil. It returns false if data is not a JSON object.
func (e *ev) read(data []byte, known rawjson.Known) bool {
	i := rawjson.SkipSpace(data, 0)
	if i == len(data) || data[i] != '{' {
		return false
	}
	i = rawjson.SkipSpace(data, i+1)
	if i < len(data) && data[i] == '}' {
		return rawjson.SkipSpace(data, i+1) == len(data)
	}
	for i < len(data) && data[i] == '"' {
		keyEnd, err := rawjson.Scan(data, i)
		if err != nil {
			return false
		}
		from := rawjson.SkipSpace(data, keyEnd)
		if from == len(data) || data[from] != ':' {
			return false
		}
		from = rawjson.SkipSpace(data, from+1)
		end, err := known.Scan(data, from)
		if err != nil {
			return false
		}
		e.set(data[i:keyEnd], data[from:end])
		switch i = rawjson.SkipSpace(data, end); {
		case i == len(data):
			return false
		case data[i] == '}':
			return rawjson.SkipSpace(data, i+1) == len(data)
		case data[i] != ',':
			return false
		}
		i = rawjson.SkipSpace(data, i+1)
	}
	return false
}

// set keeps one member, if it is read and not null.
func (e *ev) set(key, v []byte) {
	if v[0] == 'n' {
		return
	}
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
	case `"sequence_number"`:
		e.number = v
	case `"obfuscation"`:
		e.padding = v
	case `"item"`:
		e.item = v
	case `"part"`:
		e.part = v
	case `"response"`:
		e.response = v
	}
}
