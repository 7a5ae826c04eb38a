package uistream

import (
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// transport parses the body of assistant-ui's transport: the state that earlier streams produced, and commands with new messages and
// results. The conversation is that of the state after the commands.
func (p *parser) transport(o wire.Object) {
	s := &State{into: -1}
	p.out.State = s
	hasMessages := false
	if o.Get("state") != nil {
		state := o.Object("state", names)
		hasMessages = state.Get("messages") != nil
		if hasMessages {
			p.readState(s, state)
		}
	}
	if !hasMessages {
		s.set([]byte("[]"), "messages")
	}
	atMost(o, "commands", "commands", "max_messages", p.limits.MaxMessages)
	for el := range o.Elements("commands") {
		p.command(s, p.Object("", el, names))
	}
	if w := p.thread.waiting(); w != nil && s.count > 0 {
		s.into = s.count - 1 // its calls have received answers, so the stream continues the message
	}
}

// readState parses the messages of a state and records the places of its calls.
func (p *parser) readState(s *State, state wire.Object) {
	p.messages(state)
	p.places(s, state.Get("messages"))
}

// places records the places of the calls in a state, the number of messages, and the number of parts of the last message.
func (p *parser) places(s *State, messages []byte) {
	s.calls = map[string]place{}
	for m := range rawjson.Elements(messages) {
		parts := rawjson.At(m, "parts")
		s.parts = 0
		if rawjson.Kind(parts) == '[' {
			for part := range rawjson.Elements(parts) {
				if id, ok := rawjson.Get(part, "toolCallId"); ok && id[0] == '"' {
					s.calls[rawjson.Text(id)] = place{s.count, s.parts}
				}
				s.parts++
			}
		}
		s.count++
	}
}

// A Resume is a page's request for the stream of a conversation after a lost connection.
type Resume struct {
	ID    string // id of the conversation, or of a run
	State *State // state of the page; nil: it has none
}

// ParseResume parses the request of a page of assistant-ui's transport that continues a lost stream. The error is a *[RequestError].
func ParseResume(body []byte, limits Limits) (*Resume, error) {
	p := &parser{Reader: wire.NewReader(body), limits: limits, out: &Request{}}
	out := &Resume{}
	if err := p.parse(func(o wire.Object) {
		p.head(o)
		out.ID = p.out.ID
		if out.ID == "" {
			o.Fail("threadId", "It is required: it names the conversation.")
		}
		if rawjson.Kind(o.Get("state")) != '{' { // the page has no state
			return
		}
		out.State = &State{into: -1}
		state := o.Object("state", names)
		if rawjson.Kind(state.Get("messages")) != '[' {
			out.State.set([]byte("[]"), "messages")
			return
		}
		p.readState(out.State, state)
		out.State.calls = nil
		if !p.thread.closed {
			out.State.run = p.thread.lastRun
		}
	}); err != nil {
		return nil, err
	}
	return out, nil
}

func (p *parser) command(s *State, o wire.Object) {
	switch o.OptString("type") {
	case "add-message":
		m := o.Object("message", names)
		if m.OptString("role") != string(lathe.RoleUser) {
			m.Fail("role", "A page adds messages of the user.")
		}
		p.message(m)
		s.set(rawjson.AppendCompact(nil, o.Get("message")), "messages", itoa(s.count))
		s.count++
		s.parts = 0
	case "add-tool-result":
		p.toolResult(s, o)
	default:
		o.Fail("type", "A command is add-message or add-tool-result.")
	}
}

// toolResult parses the result of a call to a tool of the page.
func (p *parser) toolResult(s *State, o wire.Object) {
	content := p.limits.output(o, "result")
	r := resultOf(content, string(o.Get("isError")) == "true")
	p.answer(o, r)
	where, ok := s.calls[r.CallID]
	switch {
	case !ok:
	case r.IsError:
		s.set(wire.Quoted(content), where.path("errorText")...)
		s.set([]byte(`"output-error"`), where.path("state")...)
	default:
		s.set(outputValue(content), where.path("output")...)
		s.set([]byte(`"output-available"`), where.path("state")...)
	}
}
