package openai

import (
	"bytes"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// A value is the JSON text of a value in a chunk. It shares the memory of the chunk, and is nil if the member is missing.
type value []byte

// ok reports whether there is a value other than null.
func (v value) ok() bool { return len(v) > 0 && v[0] != 'n' }

func (v value) isString() bool { return kind(v) == '"' }

// full reports whether v is a non-empty string.
func (v value) full() bool { return v.isString() && len(v) > 2 }

// body returns the bytes between the quotes of a string, not unescaped, and any other value unchanged.
func (v value) body() []byte {
	if v.isString() {
		return v[1 : len(v)-1]
	}
	return v
}

// A parsedChunk contains the members that are read from a chunk or from a whole completion. If an object has a member twice, the last one
// is used.
type parsedChunk struct {
	id, model, usage, xgroq, failure, object value
	choices                                  value
	hasChoices                               bool // choices is an array

	escaped      bool // the chunk has backslashes, and so names may have
	dups         int  // number of repeated members
	badCalls     int  // number of values with a wrong type: tool_calls itself, or its elements
	extraChoices int  // number of elements of choices that are not used

	taken bool // a choice was read
	choice
}

// A choice contains the members that are read from the first choice.
type choice struct {
	index, finish, choiceUsage, choiceError value
	delta, message                          value
	whole                                   bool // the choice has a message and no delta; then delta is the message
	content, refusal, role                  value
	toolCalls, functionCall                 value
	legacy                                  *piece // content of functionCall
	reasoning                               [len(reasoningFields)]value
	pieces                                  []piece
	extra                                   []extraMember
}

// reasoningFields are the members in which servers send reasoning, the most frequent first.
var reasoningFields = [...]string{"reasoning_content", "reasoning", "thinking"}

// A piece is one element of tool_calls.
type piece struct {
	index, id, typ, function, name, args value
	extra                                []extraMember
}

type extraMember struct {
	key   string
	value value
}

// read parses the members of b. It returns false if b is not one JSON object; the values must then not be used.
func (c *parsedChunk) read(b []byte) bool {
	*c = parsedChunk{choice: choice{pieces: c.pieces[:0], extra: c.extra[:0]}, escaped: bytes.IndexByte(b, '\\') >= 0}
	object, ok := rawjson.Object(b)
	for key, v := range rawjson.Members(object) {
		switch string(c.name(key)) {
		case "choices":
			c.set(&c.choices, v)
		case "id":
			c.set(&c.id, v)
		case "model":
			c.set(&c.model, v)
		case "usage":
			c.set(&c.usage, v)
		case "error":
			c.set(&c.failure, v)
		case "object":
			c.set(&c.object, v)
		case "x_groq":
			c.set(&c.xgroq, v)
		}
	}
	c.hasChoices = kind(c.choices) == '['
	for el := range rawjson.Elements(c.choices) {
		c.readElement(el)
	}
	return ok
}

// set stores the value of a member, and counts the member if it is repeated.
func (c *parsedChunk) set(to *value, v value) {
	if *to != nil {
		c.dups++
	}
	*to = v
}

// readElement reads one element of choices. Only the first element whose index is 0 or missing is used; others are counted.
func (c *parsedChunk) readElement(v value) {
	if c.taken || kind(v) != '{' {
		c.extraChoices++
		return
	}
	c.readChoice(v)
	if c.index.ok() && string(c.index.body()) != "0" {
		c.choice = choice{}
		c.extraChoices++
		return
	}
	c.taken = true
	if kind(c.delta) != '{' {
		c.delta, c.whole = nil, kind(c.message) == '{'
	}
	if c.whole {
		c.delta = c.message
	}
	c.readDelta()
	c.readCalls()
}

func (c *parsedChunk) readChoice(v value) {
	for key, v := range rawjson.Members(v) {
		switch string(c.name(key)) {
		case "delta":
			c.set(&c.delta, v)
		case "message":
			c.set(&c.message, v)
		case "index":
			c.set(&c.index, v)
		case "finish_reason":
			c.set(&c.finish, v)
		case "usage":
			c.set(&c.choiceUsage, v)
		case "error":
			c.set(&c.choiceError, v)
		}
	}
}

func (c *parsedChunk) readDelta() {
	for key, v := range rawjson.Members(c.delta) {
		switch string(c.name(key)) {
		case "content":
			c.set(&c.content, v)
		case "tool_calls":
			c.set(&c.toolCalls, v)
		case reasoningFields[0]:
			c.set(&c.reasoning[0], v)
		case reasoningFields[1]:
			c.set(&c.reasoning[1], v)
		case reasoningFields[2]:
			c.set(&c.reasoning[2], v)
		case "refusal":
			c.set(&c.refusal, v)
		case "function_call":
			c.set(&c.functionCall, v)
		case "role":
			c.set(&c.role, v)
		case "index", "name": // they have no meaning here
		default:
			c.extra = appendExtra(c.extra, key, v)
		}
	}
}

// readCalls reads function_call and the elements of tool_calls. Some servers send one call in place of an array.
func (c *parsedChunk) readCalls() {
	if kind(c.functionCall) == '{' {
		legacy := c.function(c.functionCall)
		c.legacy = &legacy
	}
	switch kind(c.toolCalls) {
	case '[':
		for el := range rawjson.Elements(c.toolCalls) {
			c.readCall(el)
		}
	case '{':
		c.readCall(c.toolCalls)
	case 0, 'n': // missing or null
	default:
		c.badCalls++
	}
}

// readCall reads one element of tool_calls.
func (c *parsedChunk) readCall(v value) {
	if kind(v) != '{' {
		c.badCalls++
		return
	}
	var p piece
	for key, v := range rawjson.Members(v) {
		switch string(c.name(key)) {
		case "index":
			c.set(&p.index, v)
		case "id":
			c.set(&p.id, v)
		case "type":
			c.set(&p.typ, v)
		case "function":
			c.set(&p.function, v)
		case "name":
			c.set(&p.name, v)
		case "arguments":
			c.set(&p.args, v)
		default:
			p.extra = appendExtra(p.extra, key, v)
		}
	}
	if kind(p.function) == '{' {
		fn := c.function(p.function)
		if fn.name != nil {
			p.name = fn.name
		}
		if fn.args != nil {
			p.args = fn.args
		}
	}
	c.pieces = append(c.pieces, p)
}

// function returns the name and the arguments in a function object. Other members are ignored.
func (c *parsedChunk) function(v value) (p piece) {
	for key, v := range rawjson.Members(v) {
		switch string(c.name(key)) {
		case "name":
			c.set(&p.name, v)
		case "arguments":
			c.set(&p.args, v)
		}
	}
	return p
}

// appendExtra appends a member that has no field. A null is dropped.
func appendExtra(extra []extraMember, key []byte, v value) []extraMember {
	if !v.ok() {
		return extra
	}
	return append(extra, extraMember{rawjson.Text(key), v})
}

// name returns the text of a member's name, whose literal is key.
func (c *parsedChunk) name(key []byte) []byte {
	if c.escaped && bytes.IndexByte(key, '\\') >= 0 {
		return unquoted(key)
	}
	return key[1 : len(key)-1]
}

// inBandError returns the error that the chunk obj reports, or nil.
func (c *parsedChunk) inBandError(obj []byte) error {
	hasError := c.failure.ok() && !emptyValue(c.failure)
	isChunk := c.hasChoices || c.usage.ok() || c.id.ok()
	switch {
	case !hasError && c.choiceError.ok():
		if kind(c.choiceError) == '{' {
			return errorObject(c.choiceError)
		}
		return &APIError{Message: boundedText(c.choiceError)}
	case hasError || !isChunk || c.object.ok() && rawjson.EqualKey(c.object, "error"):
		if e, ok := readError(obj); ok {
			return e
		}
	case c.finish.ok() && rawjson.EqualKey(c.finish, "error"):
		return &APIError{Message: "the server ended the answer with an error"}
	}
	return nil
}

// emptyDelta reports whether the choice has a delta without members.
func (c *choice) emptyDelta() bool {
	return !c.whole && len(c.delta) > 0 && rawjson.SkipSpace(c.delta, 1) == len(c.delta)-1
}

// unquoted returns the text of a string literal.
func unquoted(quoted []byte) []byte { return rawjson.AppendUnquoteLossy(nil, quoted) }
