package gemini

import (
	"crypto/sha256"
	"encoding/hex"
	"reflect"
	"slices"
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/callid"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// A conversation converts contents to messages. Consecutive contents of the model become one message, since some clients store each chunk
// of a stream as a content. The results of a step follow its calls in the order of the calls, whatever their order in the request. Other
// parts of the user follow the results.
//
// A step is an assistant message and what the user answers. While it is read, its calls are in calls, their results in these calls, and
// other messages of the user in after. endStep moves the results and these messages to messages when the next content of the model begins.
type conversation struct {
	r        *reader
	messages []lathe.Message
	calls    []clientCall    // calls in the last assistant message
	after    []lathe.Message // what follows the results of the last calls
	ids      callid.Unique
	count    int // number of calls so far

	// Indexes in calls, in the order of the calls: by the id that the client uses, and by name. Under the name "" are all calls, for results
	// without a name. A call that has a result may still be in a list: nextCall skips it.
	byID, byName map[string][]int
}

// A clientCall is a call in the history of a client.
type clientCall struct {
	sent, id, name string // sent: id that the client uses; "": none
	results        []lathe.Message
}

// readContents reads the conversation.
func (r *reader) readContents(body wire.Object) {
	if rawjson.Kind(body.Get("contents")) != '[' {
		body.Fail("contents", "Must be an array of contents.")
	}
	messages := slices.Grow(r.Messages, r.MessageEstimate())
	c := &conversation{r: r, messages: messages, byID: map[string][]int{}, byName: map[string][]int{}}
	for el := range body.Elements("contents") {
		c.add(r.object("", el, contentNames))
	}
	c.endStep()
	endMessage(c.messages)
	r.Messages = c.messages
	if wire.EmptyArray(body.Get("contents")) {
		body.Fail("contents", "There must be at least one content.")
	}
	if len(c.messages) == 0 {
		body.Fail("contents", "All contents are empty.")
	}
}

// add adds a content.
func (c *conversation) add(o wire.Object) {
	role := o.OptString("role")
	o.Skip("parts")
	extra := o.Rest()
	switch role {
	case "model":
		c.addModel(o, extra)
	case "user", "function", "":
		c.addUser(o, extra)
	default:
		o.Fail("role", "Must be user or model.")
	}
}

// addModel adds a content of the model. If the last message is from the model, its parts are added to that message.
func (c *conversation) addModel(o wire.Object, extra []lathe.Member) {
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
	m.Extra = append(m.Extra, extra...)
	seen := false
	for p := range c.r.parts(o) {
		seen = true
		p.signature = opened(p.signature)
		c.addModelPart(m, &p)
	}
	if !seen {
		c.dropElement()
	}
	if len(m.Parts) == 0 {
		c.messages = c.messages[:n-1]
	}
}

// dropElement records the element that is being read as dropped: a part or, outside of the loop over the parts, a content.
func (c *conversation) dropElement() { c.r.Drop("") }

// addModelPart adds a part to m, the last message. A signature is added before the data that it belongs to.
func (c *conversation) addModelPart(m *lathe.Message, p *rawPart) {
	if p.thought && (p.data == "text" || p.data == "") {
		c.addThought(m, p)
		return
	}
	isEmpty := p.text == "" && p.signature == "" && len(p.rest) == 0
	switch {
	case isEmpty && p.data == "":
		c.dropElement()
		return
	case isEmpty && p.data == "text":
		return
	case p.signature != "":
		m.Parts = append(m.Parts, lathe.Reasoning{Field: fieldSignature, Data: p.signature})
	}
	switch {
	case p.data == "text", p.data == "" && len(p.rest) == 0: // a signature alone counts as that of an empty text
		m.Parts = append(m.Parts, lathe.Text{Text: p.text, Extra: p.rest})
	case p.data == "functionCall":
		call := c.r.call(p)
		c.assignID(&call)
		m.Parts = append(m.Parts, call)
	case p.data == "functionResponse":
		c.r.Fail(p.data, "A result belongs into a content of the user.")
	case !p.thought && p.hasBlob():
		m.Parts = append(m.Parts, c.r.blob(p))
	default:
		m.Parts = append(m.Parts, lathe.Opaque{JSON: p.raw()})
	}
}

// addThought adds a part with thought set that is a text or has no data.
func (c *conversation) addThought(m *lathe.Message, p *rawPart) {
	if p.text == "" && p.signature == "" {
		c.dropElement()
		return
	}
	for _, member := range p.rest {
		c.r.Drop(member.Name)
	}
	m.Parts = appendThought(m.Parts, p.text, p.signature)
}

// appendThought appends a thought to parts. A signature without text is set in the thought before it.
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

// assignID assigns an id to a call of the history that no earlier call has: the one that the client sent, or one derived from the position of
// the call, which stays the same while the conversation grows.
func (c *conversation) assignID(call *lathe.ToolCall) {
	sent := call.ID
	c.count++
	if call.ID == "" {
		call.ID = madeID("request", c.count, call.Name)
	}
	call.ID = c.ids.Call(call.ID)
	at := len(c.calls)
	c.calls = append(c.calls, clientCall{sent: sent, id: call.ID, name: call.Name})
	if sent == "" {
		sent = call.ID // some clients know it from the stream
	}
	c.byID[sent] = append(c.byID[sent], at)
	c.byName[call.Name] = append(c.byName[call.Name], at)
	c.byName[""] = append(c.byName[""], at)
}

// madeID derives an id for a call without one. Equal arguments give equal ids.
func madeID(of string, n int, name string) string {
	sum := sha256.Sum256([]byte(of + "\x00" + strconv.Itoa(n) + "\x00" + name))
	return "call_" + hex.EncodeToString(sum[:12])
}

// addUser adds a content of the user: its results, and one message with all other parts.
func (c *conversation) addUser(o wire.Object, extra []lathe.Member) {
	m := lathe.Message{Role: lathe.RoleUser, Wire: lathe.WireGemini, Extra: extra}
	seen := false
	for p := range c.r.parts(o) {
		seen = true
		if p.signature != "" {
			c.r.Drop(fieldSignature)
			p.signature, p.whole = "", without(p.whole, fieldSignature)
		}
		switch {
		case p.data == "functionResponse":
			c.addResult(c.r.result(&p))
		case p.data == "functionCall":
			c.r.Fail(p.data, "A call belongs into a content of the model.")
		case p.hasBlob():
			m.Parts = append(m.Parts, c.r.blob(&p))
		case p.data == "text":
			m.Parts = append(m.Parts, lathe.Text{Text: p.text, Extra: p.rest})
		case p.data == "" && len(p.rest) == 0:
			c.dropElement()
		default:
			m.Parts = append(m.Parts, lathe.Opaque{JSON: p.raw()})
		}
	}
	if len(m.Parts) > 0 {
		c.after = append(c.after, m)
	} else {
		for _, m := range extra {
			c.r.Drop(m.Name)
		}
	}
	if !seen {
		c.dropElement()
	}
}

// addResult assigns a result to its call: the first call without a result that has the id of the result or, if the result has no id, its
// name. Some clients send neither id nor name; their results are assigned in the order of the calls.
func (c *conversation) addResult(t lathe.ToolResult) {
	index, key := c.byID, t.CallID
	if key == "" {
		index, key = c.byName, t.Name
	}
	to := c.nextCall(index, key)
	if to == nil {
		if t.CallID == "" {
			if t.Name == "" {
				c.r.Fail("functionResponse.name", "A result needs the name of its function.")
			}
			t.CallID = madeID("result", c.count, t.Name)
		}
		c.after = append(c.after, resultMessage(t)) // the caller refuses a result without a call
		return
	}
	t.CallID, t.Name = to.id, to.name
	m := resultMessage(t)
	if slices.ContainsFunc(to.results, func(sent lathe.Message) bool { return reflect.DeepEqual(sent, m) }) {
		c.dropElement() // Gemini CLI sends the results of a resumed conversation twice
		return
	}
	to.results = append(to.results, m)
}

// nextCall returns the first call under a key of index that has no result. If all have one, it returns the last call if the client sent an
// id for it, since the result may be a repeated one, else nil. Calls before that are removed from the key, so that each is skipped once.
func (c *conversation) nextCall(index map[string][]int, key string) *clientCall {
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

// endStep ends the last assistant message and appends the results of its calls, then the other messages of the user. If there are neither,
// the message may be continued.
func (c *conversation) endStep() {
	end := len(c.messages)
	for i := range c.calls {
		c.messages = append(c.messages, c.calls[i].results...)
		c.calls[i].results = nil
	}
	c.messages, c.after = append(c.messages, c.after...), nil
	if len(c.messages) > end {
		endMessage(c.messages[:end])
	}
}

// endMessage removes an empty text at the end of the last message if it is from the assistant: addModelPart adds it as the text of a
// signature.
func endMessage(messages []lathe.Message) {
	if n := len(messages); n > 0 && messages[n-1].Role == lathe.RoleAssistant {
		messages[n-1].Parts = trimEmpty(messages[n-1].Parts)
	}
}

// trimEmpty removes an empty text at the end of parts, unless it is the only part.
func trimEmpty(parts []lathe.Part) []lathe.Part {
	if n := len(parts); n > 1 {
		if t, ok := parts[n-1].(lathe.Text); ok && t.Text == "" && len(t.Extra) == 0 {
			return parts[:n-1]
		}
	}
	return parts
}
