package openai

import (
	"bytes"
	"slices"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// A value is a value of a chunk as it is written, a part of the chunk's bytes. It is nil for a member that is missing.
type value []byte

// ok reports whether there is a value other than null.
func (v value) ok() bool { return len(v) > 0 && v[0] != 'n' }

func (v value) isString() bool { return kind(v) == '"' }

// full reports whether v is a string that is not empty.
func (v value) full() bool { return v.isString() && len(v) > 2 }

// body returns what stands between the quotes of a string, and any other value as it is.
func (v value) body() []byte {
	if v.isString() {
		return v[1 : len(v)-1]
	}
	return v
}

// A parsedChunk has the members that count of a chunk or of a whole completion. Of a member that comes twice in one object the last counts.
type parsedChunk struct {
	dups     int // members that came twice
	badCalls int // values of a wrong type: tool_calls itself, or elements of it

	id, model, usage, xgroq, failure, object value
	choices                                  value
	hasChoices                               bool
	extraChoices                             int

	taken bool // a choice was taken
	choice
}

// A choice is what counts of the first choice.
type choice struct {
	index, finish, choiceUsage, choiceError value
	delta, message                          value
	whole                                   bool // it is a message
	content, refusal, role                  value
	toolCalls                               value
	legacy                                  *piece // function_call
	reasoning                               [len(reasoningFields)]value
	pieces                                  []piece
	extra                                   []extraMember
}

// reasoningFields are the members that servers send reasoning in, the likeliest first.
var reasoningFields = [...]string{"reasoning_content", "reasoning", "thinking"}

// A piece is one element of tool_calls.
type piece struct {
	index, id, typ, name, args value
	extra                      []extraMember
}

type extraMember struct {
	key   string
	value value
}

// read takes b apart. It reports whether b is one JSON object: only then may the values be used.
func (c *parsedChunk) read(b []byte) bool {
	*c = parsedChunk{choice: choice{pieces: c.pieces[:0], extra: c.extra[:0]}}
	end, err := rawjson.Scan(b, 0)
	if err != nil || b[rawjson.SkipSpace(b, 0)] != '{' || rawjson.SkipSpace(b, end) != len(b) {
		return false
	}
	c.members(b, (*parsedChunk).top)
	c.hasChoices = kind(c.choices) == '['
	for el := range rawjson.Elements(c.choices) {
		c.element(el)
	}
	return true
}

// members has take read the members of an object. take reports whether the member is one of those that count: these are to come once.
func (c *parsedChunk) members(obj []byte, take func(c *parsedChunk, name []byte, v value) bool) {
	var few [16][]byte
	seen := few[:0]
	for key, v := range rawjson.Members(obj) {
		name := key[1 : len(key)-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			name = unquoted(key)
		}
		if !take(c, name, v) {
			continue
		}
		if slices.ContainsFunc(seen, func(other []byte) bool { return bytes.Equal(other, name) }) {
			c.dups++
		}
		seen = append(seen, name)
	}
}

func (c *parsedChunk) top(name []byte, v value) bool {
	switch string(name) {
	case "choices":
		c.choices = v
	case "id":
		c.id = v
	case "model":
		c.model = v
	case "usage":
		c.usage = v
	case "error":
		c.failure = v
	case "object":
		c.object = v
	case "x_groq":
		c.xgroq = v
	default:
		return false
	}
	return true
}

// element reads one element of choices. The first whose index is 0 or not said is taken.
func (c *parsedChunk) element(v value) {
	if c.taken || kind(v) != '{' {
		c.extraChoices++
		return
	}
	c.choice = choice{pieces: c.pieces[:0], extra: c.extra[:0]}
	c.members(v, (*parsedChunk).inChoice)
	if c.index.ok() && string(c.index.body()) != "0" {
		c.choice = choice{pieces: c.pieces[:0], extra: c.extra[:0]}
		c.extraChoices++
		return
	}
	c.taken = true
	if c.delta == nil {
		c.delta, c.whole = c.message, c.message != nil
	}
	c.members(c.delta, (*parsedChunk).inDelta)
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

func (c *parsedChunk) inChoice(name []byte, v value) bool {
	switch string(name) {
	case "delta":
		if kind(v) == '{' {
			c.delta = v
		}
	case "message":
		if kind(v) == '{' {
			c.message = v
		}
	case "index":
		c.index = v
	case "finish_reason":
		c.finish = v
	case "usage":
		c.choiceUsage = v
	case "error":
		c.choiceError = v
	default:
		return false
	}
	return true
}

func (c *parsedChunk) inDelta(name []byte, v value) bool {
	switch string(name) {
	case "content":
		c.content = v
	case "tool_calls":
		c.toolCalls = v
	case "reasoning_content":
		c.reasoning[0] = v
	case "reasoning":
		c.reasoning[1] = v
	case "thinking":
		c.reasoning[2] = v
	case "refusal":
		c.refusal = v
	case "function_call":
		if c.legacy = nil; kind(v) == '{' {
			c.legacy = &piece{}
			c.members(v, (*parsedChunk).inLegacy)
		}
	case "role":
		c.role = v
	case "index", "name":
		return false
	default:
		c.extra = appendExtra(c.extra, name, v)
		return false
	}
	return true
}

func appendExtra(extra []extraMember, name []byte, v value) []extraMember {
	if !v.ok() {
		return extra
	}
	return append(extra, extraMember{string(name), v})
}

// call reads one element of tool_calls.
func (c *parsedChunk) call(v value) {
	if kind(v) != '{' {
		c.badCalls++
		return
	}
	c.pieces = append(c.pieces, piece{})
	c.members(v, (*parsedChunk).inCall)
}

func (c *parsedChunk) last() *piece { return &c.pieces[len(c.pieces)-1] }

func (c *parsedChunk) inCall(name []byte, v value) bool {
	p := c.last()
	switch string(name) {
	case "index":
		p.index = v
	case "id":
		p.id = v
	case "type":
		p.typ = v
	case "function":
		if kind(v) == '{' {
			p.name, p.args = nil, nil
			c.members(v, (*parsedChunk).inFunction)
		}
	default:
		if !p.function(name, v) {
			p.extra = appendExtra(p.extra, name, v)
			return false
		}
	}
	return true
}

func (c *parsedChunk) inFunction(name []byte, v value) bool { return c.last().function(name, v) }

func (c *parsedChunk) inLegacy(name []byte, v value) bool { return c.legacy.function(name, v) }

func (p *piece) function(name []byte, v value) bool {
	switch string(name) {
	case "name":
		p.name = v
	case "arguments":
		p.args = v
	default:
		return false
	}
	return true
}

// emptyDelta reports whether the choice has a delta that says nothing.
func (c *choice) emptyDelta() bool {
	return !c.whole && len(c.delta) > 0 && rawjson.SkipSpace(c.delta, 1) == len(c.delta)-1
}

// unquoted returns the text of a string literal.
func unquoted(quoted []byte) []byte { return rawjson.AppendUnquoteLossy(nil, quoted) }
