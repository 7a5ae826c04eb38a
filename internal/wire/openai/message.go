package openai

import (
	"bytes"
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// nameResults gives each tool result the name of the call that it answers, which the wire does not
// repeat.
func nameResults(msgs []lathe.Message) {
	var names map[string]string
	for i := range msgs {
		for j, p := range msgs[i].Parts {
			switch p := p.(type) {
			case lathe.ToolCall:
				if names == nil {
					names = map[string]string{}
				}
				names[p.ID] = p.Name
			case lathe.ToolResult:
				p.Name = names[p.CallID]
				msgs[i].Parts[j] = p
			default: // no name
			}
		}
	}
}

var roleKey = []byte(`"role"`)

func (r *reader) parseMessages(v []byte) ([]lathe.Message, *APIError) {
	if kind(v) != '[' {
		return nil, wire.BadRequest("messages", "Must be an array.")
	}
	msgs := make([]lathe.Message, 0, min(bytes.Count(v, roleKey), len(v)/200)) // most messages are longer
	for el := range r.index.Elements(v) {
		m, err := r.parseMessage(el)
		if err != nil {
			err.Param = "messages[" + strconv.Itoa(len(msgs)) + "]" + err.Param
			return nil, err
		}
		msgs = append(msgs, m)
	}
	return msgs, nil
}

// parseMessage reads one message of a request. Its errors name members from the message on.
func (r *reader) parseMessage(v []byte) (lathe.Message, *APIError) {
	var m lathe.Message
	if err := needObject(v, ""); err != nil {
		return m, err
	}
	raw, _ := r.index.Get(v, "role")
	role, err := parseString(raw, ".role")
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
		if err := wire.RejectAmbiguousKey(key, messageNames, ""); err != nil {
			err.Param = "." + err.Param
			return m, err
		}
		if string(v) == "null" {
			continue
		}
		switch name := messageNames.Text(key); name {
		case "role":
		case "content":
			content = v
		case "name":
			if m.Name, err = parseString(v, ".name"); err != nil {
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
	m.Parts = append(m.Parts, ps...)
	if refusal != nil {
		text, err := parseString(refusal, ".refusal")
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
	if res.CallID, err = parseString(callID, ".tool_call_id"); err != nil {
		return err
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
	if err := needObject(v, ""); err != nil {
		return c, err
	}
	var fn []byte
	custom := false
	for key, v := range r.index.Members(v) {
		if err := wire.RejectAmbiguousKey(key, callNames, ""); err != nil {
			err.Param = "." + err.Param
			return c, err
		}
		if string(v) == "null" {
			continue
		}
		var err *APIError
		switch name := callNames.Text(key); name {
		case "id":
			c.ID, err = parseString(v, ".id")
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
	if err := needObject(fn, ".function"); err != nil {
		return c, err
	}
	var name, arguments []byte
	var more []lathe.Member
	for key, v := range r.index.Members(fn) {
		if err := wire.RejectAmbiguousKey(key, callNames, ".function"); err != nil {
			return c, err
		}
		switch text := callNames.Text(key); {
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
	if c.Name, err = parseString(name, ".function.name"); err == nil && arguments != nil {
		c.Arguments, err = parseString(arguments, ".function.arguments")
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
	if err := needObject(v, at); err != nil {
		return nil, err
	}
	plain := true // it has no members but type and text
	var raw, text []byte
	for key, v := range r.index.Members(v) {
		if err := wire.RejectAmbiguousKey(key, partNames, at); err != nil {
			return nil, err
		}
		switch partNames.Text(key) {
		case "type":
			raw = v
		case "text":
			text = v
		default:
			plain = false
		}
	}
	typ, err := parseString(raw, at+".type")
	if err != nil {
		return nil, err
	}
	if plain && typ == "text" {
		text, err := parseString(text, at+".text")
		return lathe.Text{Text: text}, err
	}
	if inner, ok := rawjson.Get(v, typ); ok {
		if err := wire.RejectAmbiguousMember(inner, partNames, at+"."+typ); err != nil {
			return nil, err
		}
	}
	switch typ {
	case "text":
		text, err := parseString(text, at+".text")
		return lathe.Text{Text: text, Extra: members(v, "type", "text")}, err
	case "refusal":
		r.drop(v, "messages"+at, "type", "refusal")
		raw, _ := rawjson.Get(v, "refusal")
		text, err := parseString(raw, at+".refusal")
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
func members(obj []byte, except ...string) (out []lathe.Member) {
next:
	for key, v := range rawjson.Members(obj) {
		for _, name := range except {
			if rawjson.EqualKey(key, name) {
				continue next
			}
		}
		if string(v) != "null" {
			out = append(out, lathe.Member{Name: rawjson.Text(key), Value: bytes.Clone(v)})
		}
	}
	return out
}

// innerMember is the name under which further members of a function object are kept. See [lathe.ToolSpec].Extra.
const innerMember = "function"

// appendInner appends the further members of a function object as one member, if there are some.
func appendInner(dst, inner []lathe.Member) []lathe.Member {
	if len(inner) == 0 {
		return dst
	}
	return append(dst, lathe.Member{Name: innerMember, Value: append(wire.AppendMembers([]byte{'{'}, inner, nothing), '}')})
}

func nothing(string) bool { return false }

// appendExtraInner appends the further members of a function object that extra keeps.
func appendExtraInner(dst []byte, extra []lathe.Member, known func(string) bool) []byte {
	for _, m := range extra {
		if m.Name == innerMember {
			dst = wire.AppendMembers(dst, members(m.Value), known)
		}
	}
	return dst
}
