package openai

import (
	"bytes"
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
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

func parseMessages(v []byte) ([]lathe.Message, *APIError) {
	if kind(v) != '[' {
		return nil, badRequest("messages", "Must be an array.")
	}
	var msgs []lathe.Message
	for el := range rawjson.Elements(v) {
		m, err := parseMessage(el)
		if err != nil {
			err.Param = "messages[" + strconv.Itoa(len(msgs)) + "]" + err.Param
			return nil, err
		}
		msgs = append(msgs, m)
	}
	return msgs, nil
}

// parseMessage reads one message of a request. Its errors name members from the message on.
func parseMessage(v []byte) (lathe.Message, *APIError) {
	var m lathe.Message
	if err := needObject(v, ""); err != nil {
		return m, err
	}
	raw, _ := rawjson.Get(v, "role")
	role, err := parseString(raw, ".role")
	if err != nil {
		return m, err
	}
	m.Role = lathe.Role(role)
	switch m.Role {
	case lathe.RoleSystem, lathe.RoleDeveloper, lathe.RoleUser, lathe.RoleAssistant, lathe.RoleTool:
	default:
		return m, badRequest(".role", "Must be system, developer, user, assistant or tool.")
	}
	var content, refusal, callID, calls []byte
	for key, v := range rawjson.Members(v) {
		if string(v) == "null" {
			continue
		}
		switch name := string(unquoted(key)); name {
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
			return m, badRequest(".function_call", "The old function calling is not supported: use tool_calls.")
		case "reasoning_content", "reasoning", "thinking":
			if m.Role != lathe.RoleAssistant || kind(v) != '"' {
				m.Extra = append(m.Extra, lathe.Member{Name: name, Value: bytes.Clone(v)})
			} else if text := string(unquoted(v)); text != "" {
				m.Parts = append(m.Parts, lathe.Reasoning{Text: text, Field: name})
			}
		default:
			m.Extra = append(m.Extra, lathe.Member{Name: name, Value: bytes.Clone(v)})
		}
	}
	if m.Role == lathe.RoleTool {
		return m, parseResult(&m, content, callID)
	}
	if content == nil && m.Role != lathe.RoleAssistant {
		return m, badRequest(".content", "This message needs content.")
	}
	if calls != nil && m.Role != lathe.RoleAssistant {
		return m, badRequest(".tool_calls", "Only an assistant message has calls.")
	}
	ps, err := parseContent(content, ".content")
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
	return m, parseCalls(&m, calls, ".tool_calls")
}

func parseResult(m *lathe.Message, content, callID []byte) *APIError {
	var r lathe.ToolResult
	var err *APIError
	if r.CallID, err = parseString(callID, ".tool_call_id"); err != nil {
		return err
	}
	ps, err := parseContent(content, ".content")
	if err != nil {
		return err
	}
	r.Content = (&lathe.Message{Parts: ps}).Text()
	for _, p := range ps {
		switch p := p.(type) {
		case lathe.Blob:
			r.Blobs = append(r.Blobs, p)
		default: // content has no other parts
		}
	}
	m.Parts = []lathe.Part{r}
	return nil
}

func parseCalls(m *lathe.Message, v []byte, at string) *APIError {
	if v == nil {
		return nil
	}
	if kind(v) != '[' {
		return badRequest(at, "Must be an array.")
	}
	i := 0
	for el := range rawjson.Elements(v) {
		c, err := parseCall(el, at+"["+strconv.Itoa(i)+"]")
		if err != nil {
			return err
		}
		m.Parts = append(m.Parts, c)
		i++
	}
	return nil
}

func parseCall(v []byte, at string) (lathe.ToolCall, *APIError) {
	var c lathe.ToolCall
	if err := needObject(v, at); err != nil {
		return c, err
	}
	var fn []byte
	for key, v := range rawjson.Members(v) {
		if string(v) == "null" {
			continue
		}
		var err *APIError
		switch name := string(unquoted(key)); name {
		case "id":
			c.ID, err = parseString(v, at+".id")
		case "type":
			if !rawjson.EqualKey(v, "function") {
				err = badRequest(at+".type", "Only calls of type function are supported.")
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
		return c, badRequest(at+".id", "A call needs an id.")
	}
	if err := needObject(fn, at+".function"); err != nil {
		return c, err
	}
	raw, _ := rawjson.Get(fn, "name")
	var err *APIError
	if c.Name, err = parseString(raw, at+".function.name"); err != nil {
		return c, err
	}
	raw, ok := rawjson.Get(fn, "arguments")
	if ok && string(raw) != "null" {
		c.Arguments, err = parseString(raw, at+".function.arguments")
	}
	return c, err
}

// parseContent reads a string or an array of parts. Nothing, and a string with nothing in it, is
// no part.
func parseContent(v []byte, at string) ([]lathe.Part, *APIError) {
	switch kind(v) {
	case 0:
		return nil, nil
	case '"':
		if text := string(unquoted(v)); text != "" {
			return []lathe.Part{lathe.Text{Text: text}}, nil
		}
		return nil, nil
	case '[':
	default:
		return nil, badRequest(at, "Must be a string or an array of parts.")
	}
	var ps []lathe.Part
	i := 0
	for el := range rawjson.Elements(v) {
		p, err := parsePart(el, at+"["+strconv.Itoa(i)+"]")
		if err != nil {
			return nil, err
		}
		ps = append(ps, p)
		i++
	}
	return ps, nil
}

func parsePart(v []byte, at string) (lathe.Part, *APIError) {
	if err := needObject(v, at); err != nil {
		return nil, err
	}
	raw, _ := rawjson.Get(v, "type")
	typ, err := parseString(raw, at+".type")
	if err != nil {
		return nil, err
	}
	switch typ {
	case "text":
		raw, _ := rawjson.Get(v, "text")
		text, err := parseString(raw, at+".text")
		return lathe.Text{Text: text}, err
	case "refusal":
		raw, _ := rawjson.Get(v, "refusal")
		text, err := parseString(raw, at+".refusal")
		return lathe.Refusal{Text: text}, err
	}
	b, err := parseBlob(v, at)
	if err != nil {
		return nil, err
	}
	return b, nil
}
