package openai

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// fewCalls is how many calls of one message are looked through for the one that a result answers.
const fewCalls = 8

// calledNames finds the names of calls by their ids, for results, which do not repeat them. Most results follow their calls.
type calledNames struct {
	before []lathe.Message   // the messages so far
	last   int               // the index of the last of them that has calls
	all    map[string]string // of all calls; nil until a result does not answer one of few calls in the last
}

// add adds the calls of the last message.
func (c *calledNames) add() {
	at := len(c.before) - 1
	for _, p := range c.before[at].Parts {
		if call, ok := p.(lathe.ToolCall); ok {
			c.last = at
			if c.all != nil {
				c.all[call.ID] = call.Name
			}
		}
	}
}

// of returns the name of the latest call with the id; "" if there is none.
func (c *calledNames) of(id string) string {
	if c.all == nil {
		if len(c.before) > 0 && len(c.before[c.last].Parts) <= fewCalls {
			name, found := "", false
			for _, p := range c.before[c.last].Parts {
				if call, ok := p.(lathe.ToolCall); ok && call.ID == id {
					name, found = call.Name, true
				}
			}
			if found {
				return name
			}
		}
		c.all = map[string]string{}
		for i := range c.before {
			for _, p := range c.before[i].Parts {
				if call, ok := p.(lathe.ToolCall); ok {
					c.all[call.ID] = call.Name
				}
			}
		}
	}
	return c.all[id]
}

func (r *reader) parseMessages(v []byte) ([]lathe.Message, *APIError) {
	if kind(v) != '[' {
		return nil, wire.BadRequest("messages", "Must be an array.")
	}
	n := 0
	for range r.index.Elements(v) {
		n++
	}
	msgs := make([]lathe.Message, 0, min(n, len(v)/200)) // most messages are longer
	for el := range r.index.Elements(v) {
		m, err := r.parseMessage(el)
		if err != nil {
			err.Param = "messages[" + strconv.Itoa(len(msgs)) + "]" + err.Param
			return nil, err
		}
		msgs = append(msgs, m)
		r.called.before = msgs
		r.called.add()
	}
	return msgs, nil
}

// parseMessage reads one message of a request. Its errors name members from the message on.
func (r *reader) parseMessage(v []byte) (lathe.Message, *APIError) {
	var m lathe.Message
	if err := wire.NeedObject(v, ""); err != nil {
		return m, err
	}
	raw, _ := r.index.Get(v, "role")
	role, err := wire.ParseString(raw, ".role")
	if err != nil {
		return m, err
	}
	m.Role = lathe.Role(role)
	switch m.Role {
	case lathe.RoleSystem, lathe.RoleDeveloper, lathe.RoleUser, lathe.RoleAssistant, lathe.RoleTool:
	default:
		err := wire.BadRequest(".role", "Must be system, developer, user, assistant or tool.")
		if role != "function" || r.foreign(err) != nil {
			return m, err
		}
	}
	var content, refusal, callID, calls []byte
	for key, v := range r.index.Members(v) {
		name, err := wire.MemberName(key, messageNames, "")
		if err != nil {
			err.Param = "." + err.Param
			return m, err
		}
		if string(v) == "null" {
			continue
		}
		switch name {
		case "role":
		case "content":
			content = v
		case "name":
			if m.Name, err = wire.ParseString(v, ".name"); err != nil {
				return m, err
			}
		case "refusal":
			refusal = v
		case "tool_call_id":
			callID = v
		case "tool_calls":
			calls = v
		case "function_call":
			if err := r.foreign(wire.BadRequest(".function_call", "The old function calling is not supported: use tool_calls.")); err != nil {
				return m, err
			}
		case "reasoning_content", "reasoning", "thinking":
			if m.Role != lathe.RoleAssistant || kind(v) != '"' {
				m.Extra = append(m.Extra, lathe.Member{Name: name, Value: bytes.Clone(v)})
			} else if text := rawjson.Text(v); text != "" {
				m.Parts = append(m.Parts, lathe.Reasoning{Text: text, Field: name})
			}
		default:
			m.Extra = append(m.Extra, lathe.Member{Name: name, Value: bytes.Clone(v)})
		}
	}
	if m.Role == lathe.RoleTool {
		return m, r.parseResult(&m, content, callID)
	}
	if content == nil && m.Role != lathe.RoleAssistant {
		return m, wire.BadRequest(".content", "This message needs content.")
	}
	if calls != nil && m.Role != lathe.RoleAssistant {
		return m, wire.BadRequest(".tool_calls", "Only an assistant message has calls.")
	}
	ps, err := r.parseContent(content, ".content")
	if err != nil {
		return m, err
	}
	if m.Parts == nil {
		m.Parts = ps
	} else {
		m.Parts = append(m.Parts, ps...)
	}
	if refusal != nil {
		text, err := wire.ParseString(refusal, ".refusal")
		if err != nil {
			return m, err
		}
		m.Parts = append(m.Parts, lathe.Refusal{Text: text})
	}
	return m, r.parseCalls(&m, calls, ".tool_calls")
}

func (r *reader) parseResult(m *lathe.Message, content, callID []byte) *APIError {
	var res lathe.ToolResult
	var err *APIError
	if res.CallID, err = wire.ParseString(callID, ".tool_call_id"); err != nil {
		return err
	}
	res.Name = r.called.of(res.CallID)
	if kind(content) == '"' {
		res.Content = rawjson.Text(content)
		m.Parts = []lathe.Part{res}
		return nil
	}
	ps, err := r.parseContent(content, ".content")
	if err != nil {
		return err
	}
	res.Content = (&lathe.Message{Parts: ps}).Text()
	for _, p := range ps {
		switch p := p.(type) {
		case lathe.Text:
			res.Extra = append(res.Extra, p.Extra...) // of equal names the last is sent
		case lathe.Blob:
			res.Blobs = append(res.Blobs, p)
		default: // content has no other parts
		}
	}
	m.Parts = []lathe.Part{res}
	return nil
}

func (r *reader) parseCalls(m *lathe.Message, v []byte, at string) *APIError {
	if v == nil {
		return nil
	}
	if kind(v) != '[' {
		return wire.BadRequest(at, "Must be an array.")
	}
	i := 0
	for el := range r.index.Elements(v) {
		c, err := r.parseCall(el, at, i)
		if err != nil {
			err.Param = wire.Element(at, i) + err.Param
			return err
		}
		m.Parts = append(m.Parts, c)
		i++
	}
	return nil
}

// parseCall reads the call with index i of the array at the path at. Its errors name members from the call on.
func (r *reader) parseCall(v []byte, at string, i int) (lathe.ToolCall, *APIError) {
	var c lathe.ToolCall
	if err := wire.NeedObject(v, ""); err != nil {
		return c, err
	}
	var fn []byte
	custom := false
	for key, v := range r.index.Members(v) {
		name, err := wire.MemberName(key, callNames, "")
		if err != nil {
			err.Param = "." + err.Param
			return c, err
		}
		if string(v) == "null" {
			continue
		}
		switch name {
		case "id":
			c.ID, err = wire.ParseString(v, ".id")
		case "type":
			if custom = !rawjson.EqualKey(v, "function"); custom {
				if err = r.foreign(wire.BadRequest(wire.Element(at, i)+".type", "Only calls of type function are supported.")); err != nil {
					err.Param = ".type"
				}
			}
		case "function":
			fn = v
		case "index":
		default:
			c.Extra = append(c.Extra, lathe.Member{Name: name, Value: bytes.Clone(v)})
		}
		if err != nil {
			return c, err
		}
	}
	if c.ID == "" {
		return c, wire.BadRequest(".id", "A call needs an id.")
	}
	if custom { // not read: what its type says is in Extra
		c.Name = "custom"
		return c, nil
	}
	if err := wire.NeedObject(fn, ".function"); err != nil {
		return c, err
	}
	var name, arguments []byte
	var more []lathe.Member
	for key, v := range r.index.Members(fn) {
		text, err := wire.MemberName(key, callNames, ".function")
		if err != nil {
			return c, err
		}
		switch {
		case text == "name":
			name = v
		case string(v) == "null":
		case text == "arguments":
			arguments = v
		default:
			more = append(more, lathe.Member{Name: text, Value: bytes.Clone(v)})
		}
	}
	c.Extra = appendInner(c.Extra, more)
	var err *APIError
	if c.Name, err = wire.ParseString(name, ".function.name"); err == nil && arguments != nil {
		c.Arguments, err = wire.ParseString(arguments, ".function.arguments")
	}
	return c, err
}

// parseContent reads a string or an array of parts. Nothing, and a string with nothing in it, is
// no part.
func (r *reader) parseContent(v []byte, at string) ([]lathe.Part, *APIError) {
	switch kind(v) {
	case 0:
		return nil, nil
	case '"':
		if text := rawjson.Text(v); text != "" {
			return []lathe.Part{lathe.Text{Text: text}}, nil
		}
		return nil, nil
	case '[':
	default:
		return nil, wire.BadRequest(at, "Must be a string or an array of parts.")
	}
	var ps []lathe.Part
	i := 0
	for el := range r.index.Elements(v) {
		p, err := r.parsePart(el, at+"["+strconv.Itoa(i)+"]")
		if err != nil {
			return nil, err
		}
		ps = append(ps, p)
		i++
	}
	return ps, nil
}

func (r *reader) parsePart(v []byte, at string) (lathe.Part, *APIError) {
	if err := wire.NeedObject(v, at); err != nil {
		return nil, err
	}
	plain := true // it has no members but type and text
	var raw, text []byte
	for key, v := range r.index.Members(v) {
		name, err := wire.MemberName(key, partNames, at)
		if err != nil {
			return nil, err
		}
		switch name {
		case "type":
			raw = v
		case "text":
			text = v
		default:
			plain = false
		}
	}
	typ, err := wire.ParseString(raw, at+".type")
	if err != nil {
		return nil, err
	}
	if plain && typ == "text" {
		text, err := wire.ParseString(text, at+".text")
		return lathe.Text{Text: text}, err
	}
	if inner, ok := rawjson.Get(v, typ); ok {
		if err := wire.RejectAmbiguousMember(inner, partNames, at+"."+typ); err != nil {
			return nil, err
		}
	}
	switch typ {
	case "text":
		text, err := wire.ParseString(text, at+".text")
		return lathe.Text{Text: text, Extra: members(v, "type", "text")}, err
	case "refusal":
		r.drop(v, "messages"+at, "type", "refusal")
		raw, _ := rawjson.Get(v, "refusal")
		text, err := wire.ParseString(raw, at+".refusal")
		return lathe.Refusal{Text: text}, err
	}
	b, err := parseBlob(v, at)
	if err != nil && err.Param == at+".type" && r.foreign(err) == nil {
		return lathe.Blob{Raw: bytes.Clone(v)}, nil
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

// members returns copies of the members of obj that are not among the names given and not null.
func members(obj []byte, except ...string) []lathe.Member {
	return wire.OtherMembers(nil, obj, except...)
}

// innerMember is the name under which further members of a function object are kept. See [lathe.ToolSpec].Extra.
const innerMember = "function"

// appendInner appends the further members of a function object as one member, if there are some.
func appendInner(dst, inner []lathe.Member) []lathe.Member {
	if len(inner) == 0 {
		return dst
	}
	return append(dst, lathe.Member{Name: innerMember, Value: json.RawMessage(wire.JSON("{").Members(inner, nothing).Lit("}"))})
}

func nothing(string) bool { return false }

// appendExtraInner appends the further members of a function object that extra keeps.
func appendExtraInner(dst wire.JSON, extra []lathe.Member, known func(string) bool) wire.JSON {
	for _, m := range extra {
		if m.Name == innerMember {
			dst = dst.Members(members(m.Value), known)
		}
	}
	return dst
}
