package gemini

import (
	"crypto/sha256"
	"encoding/hex"
	"reflect"
	"slices"
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/callid"
	"github.com/lathe-run/lathe/internal/wire"
)

// A conversation converts contents to messages. Consecutive contents of the model are one message, since some clients store each
// chunk of a stream as a content. The results of a step follow its calls in the order of the calls, for any order in the request.
// Other parts of the user follow the results.
type conversation struct {
	r        *reader
	messages []lathe.Message
	calls    []clientCall     // of the last message of the model
	byID     map[string][]int // calls without a result, by the id that the client uses
	byName   map[string][]int // the same, by name, and all of them under ""
	after    []lathe.Message
	ids      callid.Unique
	n        int // calls
}

// A clientCall is a call in the history of a client.
type clientCall struct {
	sent, id, name string // sent is the id that the client uses; "": none
	results        []lathe.Message
}

// parseContents reads the conversation.
func (r *reader) parseContents(v []byte) *wire.APIError {
	if wire.Kind(v) != '[' {
		return wire.BadRequest("contents", "Must be an array of contents.")
	}
	c := &conversation{r: r, messages: r.Messages, byID: map[string][]int{}, byName: map[string][]int{}}
	i := 0
	for range r.index.Elements(v) {
		i++
	}
	c.messages = slices.Grow(c.messages, min(i, len(v)/200)) // most contents are longer
	i = 0
	for el := range r.index.Elements(v) {
		dropped := len(r.Dropped)
		if err := c.add(el); err != nil {
			return wire.Within(wire.Element("contents", i), err)
		}
		if len(r.Dropped) > dropped {
			wire.PathsWithin(wire.Element("contents", i), r.Dropped[dropped:])
		}
		i++
	}
	c.endStep()
	c.endMessage()
	r.Messages = c.messages
	if i == 0 {
		return wire.BadRequest("contents", "There must be at least one content.")
	}
	if len(c.messages) == 0 {
		return wire.BadRequest("contents", "All contents are empty.")
	}
	return nil
}

// add adds a content. Its errors, and the paths that it drops, begin at the content.
func (c *conversation) add(v []byte) *wire.APIError {
	var few fewMembers
	members, err := contentNames.read(few[:0], c.r.index, v, "")
	if err != nil {
		return err
	}
	role := "user"
	var parts []byte
	var extra []lathe.Member
	for i := range members {
		switch m := &members[i]; m.name {
		case "role":
			role, err = wire.ParseString(m.value, m.name)
		case "parts":
			parts = m.value
		default:
			extra = append(extra, m.kept())
		}
		if err != nil {
			return err
		}
	}
	if parts == nil {
		parts = []byte("[]")
	}
	switch role {
	case "model":
		return c.addModel(parts, extra)
	case "user", "function", "":
		return c.addUser(parts, extra)
	}
	return wire.BadRequest("role", "Must be user or model.")
}

// addModel adds a content of the model. It extends the last message if that is also one of the model.
func (c *conversation) addModel(parts []byte, extra []lathe.Member) *wire.APIError {
	c.endStep()
	n := len(c.messages)
	if n == 0 || c.messages[n-1].Role != lathe.RoleAssistant {
		c.calls = nil
		clear(c.byID)
		clear(c.byName)
		c.messages = append(c.messages, lathe.Message{Role: lathe.RoleAssistant, Wire: lathe.WireGemini})
		n++
	}
	m := &c.messages[n-1]
	if k := len(m.Parts); k > 0 && isSignature(m.Parts[k-1]) {
		m.Parts = append(m.Parts, lathe.Text{}) // which endMessage removed
	}
	m.Extra = append(m.Extra, extra...)
	seen := 0
	err := c.r.eachPart(parts, "parts", func(v []byte) *wire.APIError {
		seen++
		p, err := parsePart(c.r.index, v)
		if err != nil {
			return err
		}
		p.signature = opened(p.signature)
		return c.addModelPart(m, &p)
	})
	if seen == 0 {
		c.r.Drop("")
	}
	if len(m.Parts) == 0 {
		c.messages = c.messages[:n-1]
	}
	return err
}

func (c *conversation) addModelPart(m *lathe.Message, p *rawPart) *wire.APIError {
	if p.thought && (p.data == "text" || p.data == "") {
		if p.text == "" && p.signature == "" {
			c.r.Drop("")
			return nil
		}
		for i := range p.rest {
			c.r.Drop(p.rest[i].Name)
		}
		m.Parts = appendThought(m.Parts, p.text, p.signature)
		return nil
	}
	if p.data == "" && p.signature == "" && len(p.rest) == 0 {
		c.r.Drop("")
		return nil
	}
	if p.signature != "" {
		m.Parts = append(m.Parts, lathe.Reasoning{Field: fieldSignature, Data: p.signature})
	}
	switch {
	case p.data == "text", p.data == "" && len(p.rest) == 0:
		if p.text != "" || p.signature != "" || len(p.rest) > 0 {
			m.Parts = append(m.Parts, lathe.Text{Text: p.text, Extra: p.rest})
		}
	case p.data == "functionCall":
		call, err := c.r.parseCall(p)
		if err != nil {
			return err
		}
		c.number(&call)
		m.Parts = append(m.Parts, call)
	case p.data == "functionResponse":
		return wire.BadRequest(p.data, "A result belongs into a content of the user.")
	case !p.thought && (p.data == "inlineData" || p.data == "fileData"):
		b, err := p.blob()
		if err != nil {
			return err
		}
		m.Parts = append(m.Parts, b)
	default:
		m.Parts = append(m.Parts, p.opaque())
	}
	return nil
}

// appendThought appends a thought to the parts of a message. A signature without text belongs to the thought before it.
func appendThought(parts []lathe.Part, text, signature string) []lathe.Part {
	if n := len(parts); n > 0 && text == "" {
		if last, ok := parts[n-1].(lathe.Reasoning); ok && last.Field == fieldThought && last.Data == "" {
			last.Data = signature
			parts[n-1] = last
			return parts
		}
	}
	return append(parts, lathe.Reasoning{Text: text, Field: fieldThought, Data: signature})
}

// number gives a call of the history an id that no earlier call has: the one that the client sent, or one that is derived from
// the position of the call, so that it stays the same while the conversation grows.
func (c *conversation) number(call *lathe.ToolCall) {
	sent := call.ID
	c.n++
	if call.ID == "" {
		call.ID = madeID("request", c.n, call.Name)
	}
	call.ID = c.ids.Call(call.ID)
	at := len(c.calls)
	c.calls = append(c.calls, clientCall{sent: sent, id: call.ID, name: call.Name})
	if sent == "" {
		sent = call.ID // that some clients may know from the stream
	}
	c.byID[sent] = append(c.byID[sent], at)
	c.byName[call.Name] = append(c.byName[call.Name], at)
	c.byName[""] = append(c.byName[""], at)
}

// madeID derives the id of a call that has none. Equal arguments give equal ids.
func madeID(of string, n int, name string) string {
	sum := sha256.Sum256([]byte(of + "\x00" + strconv.Itoa(n) + "\x00" + name))
	return "call_" + hex.EncodeToString(sum[:12])
}

// addUser adds a content of the user: its results, and a message of all other parts.
func (c *conversation) addUser(parts []byte, extra []lathe.Member) *wire.APIError {
	c.endMessage()
	m := lathe.Message{Role: lathe.RoleUser, Wire: lathe.WireGemini, Extra: extra}
	seen := 0
	err := c.r.eachPart(parts, "parts", func(v []byte) *wire.APIError {
		seen++
		p, err := parsePart(c.r.index, v)
		if err != nil {
			return err
		}
		if p.signature != "" {
			c.r.Drop(fieldSignature)
			p.signature, p.whole = "", without(p.whole, fieldSignature)
		}
		switch p.data {
		case "functionResponse":
			t, err := c.r.parseResult(&p)
			if err != nil {
				return err
			}
			return c.answer(t)
		case "functionCall":
			return wire.BadRequest(p.data, "A call belongs into a content of the model.")
		case "inlineData", "fileData":
			b, err := p.blob()
			if err != nil {
				return err
			}
			m.Parts = append(m.Parts, b)
		case "text":
			m.Parts = append(m.Parts, lathe.Text{Text: p.text, Extra: p.rest})
		case "":
			if len(p.rest) == 0 {
				c.r.Drop("")
				return nil
			}
			fallthrough
		default:
			m.Parts = append(m.Parts, p.opaque())
		}
		return nil
	})
	if len(m.Parts) > 0 {
		c.after = append(c.after, m)
	} else {
		for i := range extra {
			c.r.Drop(extra[i].Name)
		}
	}
	if seen == 0 {
		c.r.Drop("")
	}
	return err
}

// answer adds a result to its call: the call with the id of the result, or, if the result has no id, the first call with its
// name that has no result. Some clients send neither: their results are in the order of the calls.
func (c *conversation) answer(t lathe.ToolResult) *wire.APIError {
	var to *clientCall
	if t.CallID != "" {
		to = c.first(c.byID, t.CallID)
	} else {
		to = c.first(c.byName, t.Name)
	}
	if to == nil {
		if t.CallID == "" {
			if t.Name == "" {
				return wire.BadRequest("functionResponse.name", "A result needs the name of its function.")
			}
			t.CallID = madeID("result", c.n, t.Name)
		}
		c.after = append(c.after, resultMessage(t)) // for the caller to refuse
		return nil
	}
	t.CallID, t.Name = to.id, to.name
	m := resultMessage(t)
	if slices.ContainsFunc(to.results, func(sent lathe.Message) bool { return reflect.DeepEqual(sent, m) }) {
		c.r.Drop("") // Gemini CLI sends the results of a resumed conversation twice
		return nil
	}
	to.results = append(to.results, m)
	return nil
}

// first returns the first call under a key of index that has no result, or a call that has one if all calls do.
func (c *conversation) first(index map[string][]int, key string) *clientCall {
	calls := index[key]
	for len(calls) > 1 && len(c.calls[calls[0]].results) > 0 {
		calls = calls[1:]
	}
	if len(calls) == 0 {
		return nil
	}
	index[key] = calls
	call := &c.calls[calls[0]]
	if len(call.results) > 0 && call.sent == "" {
		return nil
	}
	return call
}

func resultMessage(t lathe.ToolResult) lathe.Message {
	return lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{t}, Wire: lathe.WireGemini}
}

// endStep adds the results of the last calls, followed by the other messages of the user.
func (c *conversation) endStep() {
	for i := range c.calls {
		c.messages = append(c.messages, c.calls[i].results...)
		c.calls[i].results = nil
	}
	c.messages, c.after = append(c.messages, c.after...), nil
}

// endMessage removes an empty text at the end of a message of the model, which only carried a signature.
func (c *conversation) endMessage() {
	if n := len(c.messages); n > 0 && c.messages[n-1].Role == lathe.RoleAssistant {
		c.messages[n-1].Parts = trimEmpty(c.messages[n-1].Parts)
	}
}

func isSignature(p lathe.Part) bool {
	t, ok := p.(lathe.Reasoning)
	return ok && t.Field == fieldSignature
}

// trimEmpty removes an empty text at the end.
func trimEmpty(parts []lathe.Part) []lathe.Part {
	if n := len(parts); n > 1 {
		if t, ok := parts[n-1].(lathe.Text); ok && t.Text == "" && len(t.Extra) == 0 {
			return parts[:n-1]
		}
	}
	return parts
}
