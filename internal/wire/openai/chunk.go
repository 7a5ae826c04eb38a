package openai

import (
	"bytes"
	"slices"

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
	dups     int // number of repeated members
	badCalls int // number of values with a wrong type: tool_calls itself, or its elements

	id, model, usage, xgroq, failure, object value
	choices                                  value
	hasChoices                               bool
	extraChoices                             int

	taken bool // a choice was read
	choice
}

// A choice contains the members that are read from the first choice.
type choice struct {
	index, finish, choiceUsage, choiceError value
	delta, message                          value
	whole                                   bool // the choice has a message and not a delta
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
	*c = parsedChunk{choice: choice{pieces: c.pieces[:0], extra: c.extra[:0]}}
	object, ok := rawjson.Object(b)
	c.members(object, nil, []place{{"choices", &c.choices}, {"id", &c.id}, {"model", &c.model}, {"usage", &c.usage}, {"error", &c.failure},
		{"object", &c.object}, {"x_groq", &c.xgroq}})
	c.hasChoices = kind(c.choices) == '['
	for el := range rawjson.Elements(c.choices) {
		c.element(el)
	}
	return ok
}

// A place says where the value of the member with this name is stored.
type place struct {
	name string
	to   *value
}

// members sets the values of the known members of a valid object, and counts repeated ones. If rest is not nil, it appends the other members
// that are not null to rest.
func (c *parsedChunk) members(obj []byte, rest *[]extraMember, known []place) {
	for key, v := range rawjson.Members(obj) {
		name := key[1 : len(key)-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			name = unquoted(key)
		}
		i := slices.IndexFunc(known, func(p place) bool { return string(name) == p.name })
		switch {
		case i >= 0:
			if *known[i].to != nil {
				c.dups++
			}
			*known[i].to = v
		case rest != nil && value(v).ok():
			*rest = append(*rest, extraMember{rawjson.Text(key), v})
		}
	}
}

// element reads one element of choices. Only the first element whose index is 0 or missing is used; others are counted.
func (c *parsedChunk) element(v value) {
	if c.taken || kind(v) != '{' {
		c.extraChoices++
		return
	}
	c.members(v, nil, []place{{"delta", &c.delta}, {"message", &c.message}, {"index", &c.index}, {"finish_reason", &c.finish},
		{"usage", &c.choiceUsage}, {"error", &c.choiceError}})
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
	var index, name value // which have no meaning
	c.members(c.delta, &c.extra, []place{{"content", &c.content}, {"tool_calls", &c.toolCalls}, {reasoningFields[0], &c.reasoning[0]},
		{reasoningFields[1], &c.reasoning[1]}, {reasoningFields[2], &c.reasoning[2]}, {"refusal", &c.refusal}, {"function_call", &c.functionCall},
		{"role", &c.role}, {"index", &index}, {"name", &name}})
	if kind(c.functionCall) == '{' {
		legacy := c.function(c.functionCall)
		c.legacy = &legacy
	}
	switch kind(c.toolCalls) {
	case '[':
		for el := range rawjson.Elements(c.toolCalls) {
			c.call(el)
		}
	case '{':
		c.call(c.toolCalls)
	case 0, 'n':
	default:
		c.badCalls++
	}
}

// call reads one element of tool_calls.
func (c *parsedChunk) call(v value) {
	if kind(v) != '{' {
		c.badCalls++
		return
	}
	var p piece
	c.members(v, &p.extra, []place{{"index", &p.index}, {"id", &p.id}, {"type", &p.typ}, {"function", &p.function}, {"name", &p.name}, {"arguments", &p.args}})
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
	c.members(v, nil, []place{{"name", &p.name}, {"arguments", &p.args}})
	return p
}

// emptyDelta reports whether the choice has a delta without members.
func (c *choice) emptyDelta() bool {
	return !c.whole && len(c.delta) > 0 && rawjson.SkipSpace(c.delta, 1) == len(c.delta)-1
}

// unquoted returns the text of a string literal.
func unquoted(quoted []byte) []byte { return rawjson.AppendUnquoteLossy(nil, quoted) }
