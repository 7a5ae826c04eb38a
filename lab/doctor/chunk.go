package doctor

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire/openai"
)

// A piece is one element of tool_calls as it was received, such as
//
//	{"index":0,"id":"call_1","type":"function","function":{"name":"get_weather","arguments":"{\"city\""}}
type piece struct {
	chunk    int    // number of the chunk that contains it
	index    string // JSON text; "": none
	id       string
	hasID    bool
	name     string
	hasType  bool
	args     form
	argsText string
}

// A form is the JSON form of arguments.
type form uint8

const (
	formNone form = iota
	formNull
	formText
	formObject
)

// readEvent parses the data of one event.
func (x *reader) readEvent(a *answer, data []byte) {
	data = bytes.TrimSpace(data)
	switch {
	case len(data) == 0:
		x.find("empty-line")
		return
	case string(data) == "[DONE]":
		a.done = true
		return
	}
	if !isObject(data) {
		x.find("malformed-line")
		return
	}
	if hasError(data) {
		a.failed = true
		id := "error-in-band"
		if a.chunks == 0 {
			id = "error-in-band-first"
		}
		x.find(id, openai.ParseError(0, data).Message)
		return
	}
	x.readChunk(a, data, "delta")
}

// readChunk parses a chunk, or a whole completion. The content of its choices is in the given member.
func (x *reader) readChunk(a *answer, data []byte, member string) {
	a.chunks++
	some := false
	for c := range rawjson.Elements(rawjson.At(data, "choices")) {
		if !is(c, '{') {
			continue
		}
		if i := rawjson.At(c, "index"); i != nil && string(i) != "0" {
			x.find("n-choices")
			continue
		}
		some = true
		x.readChoice(a, c, member)
	}
	if u := rawjson.At(data, "usage"); is(u, '{') {
		a.usage++
		if n, err := strconv.Atoi(string(rawjson.At(u, "completion_tokens"))); err == nil {
			a.completion = n
		}
		if some {
			a.usageEarly++
		}
	}
}

func (x *reader) readChoice(a *answer, choice []byte, member string) {
	if f := rawjson.At(choice, "finish_reason"); is(f, '"') {
		a.finishes = append(a.finishes, rawjson.Text(f))
	}
	before := len(a.pieces)
	text := ""
	for key, v := range rawjson.Members(rawjson.At(choice, member)) {
		switch name := rawjson.Text(key); name {
		case "role":
			a.role = a.role || is(v, '"')
		case "content":
			if is(v, '"') {
				text = rawjson.Text(v)
			}
		case "reasoning", "reasoning_content", "thinking":
			if is(v, '"') && len(v) > 2 {
				a.thought = true
				x.find(strings.ReplaceAll(name, "_", "-"))
			}
		case "function_call":
			if is(v, '{') {
				a.legacy = true
				x.find("function-call")
			}
		case "tool_calls":
			x.readCalls(a, v)
		}
	}
	calls := len(a.pieces) > before
	if text != "" && a.stream && !a.whole {
		switch {
		case calls:
			x.find("text-with-calls")
		case before > 0 && strings.TrimSpace(text) != "":
			x.find("text-after-calls")
		}
	}
	a.text.WriteString(text)
}

func (x *reader) readCalls(a *answer, v []byte) {
	switch {
	case is(v, '{'):
		x.find("tool-calls-object")
		a.pieces = append(a.pieces, readPiece(v, a.chunks))
	case is(v, '['):
		for e := range rawjson.Elements(v) {
			if is(e, '{') {
				a.pieces = append(a.pieces, readPiece(e, a.chunks))
			}
		}
	}
}

func readPiece(e []byte, chunk int) piece {
	p := piece{chunk: chunk, id: rawjson.TextAt(e, "id"), hasID: is(rawjson.At(e, "id"), '"'), hasType: is(rawjson.At(e, "type"), '"'),
		name: rawjson.TextAt(e, "function", "name")}
	if i := rawjson.At(e, "index"); !is(i, 'n') {
		p.index = string(i)
	}
	args := rawjson.At(e, "function", "arguments")
	switch rawjson.Kind(args) {
	case 0:
	case '"':
		p.args, p.argsText = formText, rawjson.Text(args)
	case 'n':
		p.args = formNull
	default:
		p.args, p.argsText = formObject, string(args)
	}
	return p
}

// isObject reports whether data is one JSON object. Duplicate members and invalid text are allowed: the assembler reports them.
func isObject(data []byte) bool {
	end, err := rawjson.Scan(data, 0)
	return err == nil && end == len(data) && is(data, '{')
}

func is(v []byte, first byte) bool { return rawjson.Kind(v) == first }
