package uistream

import (
	"fmt"
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// transport reads the body of assistant-ui's transport: the state that earlier streams produced,
// and new messages and results as commands. Its conversation is that of the state with the commands applied.
func (p *parser) transport(req fields) error {
	s := &State{into: -1}
	p.out.State = s
	state := fields{}
	if raw := req["state"]; raw != nil && string(raw) != "null" {
		var err error
		if state, err = object(raw, "state"); err != nil {
			return err
		}
	}
	switch messages := state["messages"]; {
	case messages == nil || string(messages) == "null":
		s.set([]byte("[]"), "messages")
	default:
		if err := p.messages(messages, "state.messages"); err != nil {
			return err
		}
		p.places(s, messages)
	}
	raw := req["commands"]
	if len(raw) == 0 || raw[0] != '[' {
		return wrong("commands", "It must be an array.")
	}
	i := -1
	for e := range rawjson.Elements(raw) {
		i++
		at := fmt.Sprintf("commands[%d]", i)
		if i >= p.limits.MaxMessages {
			return &RequestError{Param: "commands", Limit: "max_messages", Message: fmt.Sprintf("There are more commands than max_messages, which is %d.", p.limits.MaxMessages)}
		}
		f, err := object(e, at)
		if err == nil {
			err = p.command(s, f, at)
		}
		if err != nil {
			return err
		}
	}
	if w := p.thread.waiting(); w != nil && s.count > 0 {
		s.into = s.count - 1 // its calls have got answers: the message goes on
	}
	return nil
}

// places records the places of the calls in a state, and the number of parts of its last message.
func (p *parser) places(s *State, messages []byte) {
	s.calls = map[string]place{}
	for m := range rawjson.Elements(messages) {
		parts, _ := rawjson.Get(m, "parts")
		s.parts = 0
		if len(parts) > 0 && parts[0] == '[' {
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

// A Resume is a page's request to receive the stream of a conversation again.
type Resume struct {
	ID    string // of the conversation, or of a run
	State *State // that the page holds; nil: none
}

// ParseResume reads the request of a page of assistant-ui's transport for a lost stream. The
// error is a *[RequestError].
func ParseResume(body []byte, limits Limits) (*Resume, error) {
	p := &parser{limits: limits.withDefaults(), out: &Request{}}
	if err := rawjson.Check(body, rawjson.Limits{}); err != nil {
		return nil, wrong("body", "The body is not strict JSON: %v.", err)
	}
	req, err := object(body, "body")
	if err == nil {
		err = p.head(req)
	}
	if err != nil {
		return nil, err
	}
	out := &Resume{ID: p.out.ID}
	if out.ID == "" {
		return nil, wrong("threadId", "It is required: it names the conversation.")
	}
	state, err := object(req["state"], "state")
	if err != nil {
		return out, nil //nolint:nilerr // a page without a state
	}
	out.State = &State{into: -1}
	messages := state["messages"]
	if len(messages) == 0 || messages[0] != '[' {
		out.State.set([]byte("[]"), "messages")
		return out, nil
	}
	if err := p.messages(messages, "state.messages"); err != nil {
		return nil, err
	}
	p.places(out.State, messages)
	if out.State.calls = nil; !p.thread.closed {
		out.State.run = p.thread.lastRun
	}
	return out, nil
}

func (p *parser) command(s *State, f fields, at string) error {
	typ, err := f.text("type", at+".type")
	if err != nil {
		return err
	}
	switch typ {
	case "add-message":
		m, err := object(f["message"], at+".message")
		if err != nil {
			return err
		}
		if role, err := m.text("role", at+".message.role"); err != nil || role != string(lathe.RoleUser) {
			return wrong(at+".message.role", "A page adds messages of the user.")
		}
		if err := p.message(m, at+".message"); err != nil {
			return err
		}
		s.set(rawjson.AppendCompact(nil, f["message"]), "messages", strconv.Itoa(s.count))
		s.count++
		s.parts = 0
		return nil
	case "add-tool-result":
		return p.toolResult(s, f, at)
	}
	return wrong(at+".type", "A command is add-message or add-tool-result.")
}

// toolResult reads the result of a call to the page's own tools.
func (p *parser) toolResult(s *State, f fields, at string) error {
	id, err := f.text("toolCallId", at+".toolCallId")
	if err == nil {
		err = p.limits.identifier(at+".toolCallId", id)
	}
	if err != nil {
		return err
	}
	content, err := p.output(f["result"], at+".result")
	if err != nil {
		return err
	}
	r := &lathe.ToolResult{Content: content}
	if string(f["isError"]) == "true" {
		r = failed(content)
	}
	if err := p.thread.answer(at, id, r); err != nil {
		return err
	}
	where, ok := s.calls[id]
	if !ok {
		return nil
	}
	if r.IsError {
		s.set(wire.JSON(nil).Quote(content), where.path("errorText")...)
		s.set([]byte(`"output-error"`), where.path("state")...)
		return nil
	}
	s.set(appendOutput(nil, content), where.path("output")...)
	s.set([]byte(`"output-available"`), where.path("state")...)
	return nil
}
