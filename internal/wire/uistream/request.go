package uistream

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// A Request is the parsed request of a chat page. It may be UI messages of the AI SDK, messages of
// a model (content and role tool, as data stream clients send them), AG-UI's run input, or a state and
// commands of assistant-ui's transport.
type Request struct {
	ID        string // of the chat, or AG-UI's thread
	RunID     string // AG-UI's own id of the run
	StateKey  string
	Model     string
	Messages  []lathe.Message
	Tools     []*lathe.ToolSpec // that the page has
	Lathe     json.RawMessage   // the member `lathe`, as it was sent
	Reasoning bool              // some of the messages had reasoning
	// State is that of a page of assistant-ui's transport, for [Options]; nil: the request is of another kind.
	State *State
	// Last is the assistant's message at the end of the request, if its calls wait for a decision or a result.
	Last *Waiting
}

// A Waiting is an assistant's message with calls that waited, and the decisions and results in the request.
type Waiting struct {
	MessageID string
	RunID     string // of the run that made it, from its stream; empty: lost
	Calls     []OpenCall
	Approvals []Approval
	Results   map[string]lathe.Output // of the page's own tools, by the id of the call
}

// An Approval is a decision about one call.
type Approval struct {
	ID       string // of the approval; empty: the page has lost it
	CallID   string
	Approved bool
	Reason   string
}

// ParseOptions configure ParseRequest. They are copied.
type ParseOptions struct {
	Limits Limits
	// KeepReasoning keeps the reasoning of earlier turns; otherwise it is dropped, as most servers require.
	KeepReasoning bool
}

// parser is the state of one ParseRequest.
type parser struct {
	limits Limits
	keep   bool
	out    *Request
	thread thread
}

// ParseRequest parses a request. Its messages are a history that can be sent to a model: each call has
// exactly one result, directly after its message and in call order. A call without a result in the request
// has the result `interrupted`. The error is a *[RequestError].
func ParseRequest(body []byte, opts *ParseOptions) (*Request, error) {
	p := &parser{out: &Request{}}
	if opts != nil {
		p.limits, p.keep = opts.Limits, opts.KeepReasoning
	}
	p.limits = p.limits.withDefaults()
	if err := rawjson.Check(body, rawjson.Limits{}); err != nil {
		return nil, wrong("body", "The body is not strict JSON: %v.", err)
	}
	req, err := object(body, "body")
	if err != nil {
		return nil, err
	}
	if err := p.head(req); err != nil {
		return nil, err
	}
	if req["commands"] != nil {
		err = p.transport(req)
	} else {
		err = p.messages(req["messages"], "messages")
	}
	if err != nil {
		return nil, err
	}
	if err := p.resumes(req["resume"]); err != nil {
		return nil, err
	}
	if p.out.Messages, err = p.thread.history(); err != nil {
		return nil, err
	}
	if p.out.Last = p.thread.waiting(); p.out.Last == nil && len(p.thread.approvals) > 0 {
		return nil, wrong("resume", "It answers an interrupt, but the messages do not end with the assistant's message whose call was interrupted: send the whole history.")
	}
	return p.out, nil
}

func (p *parser) head(req fields) error {
	out := p.out
	for _, m := range []struct {
		name string
		dst  *string
	}{{"id", &out.ID}, {"threadId", &out.ID}, {"runId", &out.RunID}, {"model", &out.Model}} {
		s, err := req.text(m.name, m.name)
		if err == nil {
			err = within(m.name, "max_id", s, p.limits.MaxID)
		}
		if err != nil {
			return err
		}
		if s != "" {
			*m.dst = s
		}
	}
	var err error
	if config, err := object(req["config"], "config"); err == nil && out.Model == "" { // assistant-ui's place for it
		if out.Model, err = config.text("modelName", "config.modelName"); err == nil {
			err = within("config.modelName", "max_id", out.Model, p.limits.MaxID)
		}
		if err != nil {
			return err
		}
	}
	wanted := req["lathe"]
	if props, err := object(req["forwardedProps"], "forwardedProps"); err == nil { // AG-UI's place for both
		if out.Model == "" {
			if out.Model, err = props.text("model", "forwardedProps.model"); err == nil {
				err = within("forwardedProps.model", "max_id", out.Model, p.limits.MaxID)
			}
			if err != nil {
				return err
			}
		}
		if wanted == nil {
			wanted = props["lathe"]
		}
	}
	if out.StateKey, err = req.text("stateKey", "stateKey"); err != nil {
		return err
	}
	if err := within("stateKey", "max_state_key", out.StateKey, p.limits.MaxStateKey); err != nil {
		return err
	}
	if strings.Trim(out.StateKey, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-") != "" {
		return wrong("stateKey", "It may have letters, digits and the characters . _ : - only.")
	}
	if raw := wanted; raw != nil && string(raw) != "null" {
		out.Lathe = raw
	}
	system, err := req.text("system", "system")
	if err == nil {
		err = within("system", "max_answer_text", system, p.limits.MaxAnswerText)
	}
	if err != nil {
		return err
	}
	if system != "" {
		p.thread.add(lathe.System(system))
	}
	return p.tools(req["tools"])
}

// tools reads the page's own tools: an array of them, or an object by name.
func (p *parser) tools(raw []byte) error {
	switch {
	case raw == nil || string(raw) == "null":
		return nil
	case raw[0] == '[':
		i := 0
		for t := range rawjson.Elements(raw) {
			if err := p.tool(t, "", fmt.Sprintf("tools[%d]", i)); err != nil {
				return err
			}
			i++
		}
		return nil
	}
	all, err := object(raw, "tools")
	if err != nil {
		return err
	}
	for key := range rawjson.Members(raw) {
		name := rawjson.Text(key)
		if err := p.tool(all[name], name, "tools."+name); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) tool(raw []byte, name, at string) error {
	t, err := object(raw, at)
	if err != nil {
		return err
	}
	if f, ok := t["function"]; ok { // OpenAI's form
		if t, err = object(f, at+".function"); err != nil {
			return err
		}
	}
	if name == "" {
		if name, err = t.text("name", at+".name"); err != nil {
			return err
		}
	}
	if err := p.toolName(at+".name", name); err != nil {
		return err
	}
	description, err := t.text("description", at+".description")
	if err != nil {
		return err
	}
	schema := t["parameters"]
	if schema == nil {
		schema = t["inputSchema"]
	}
	if schema != nil {
		if _, err := object(schema, at+".parameters"); err != nil {
			return err
		}
	}
	p.out.Tools = append(p.out.Tools, &lathe.ToolSpec{Name: name, Description: description, Schema: json.RawMessage(schema), Owner: lathe.OwnerClient})
	return nil
}

func (p *parser) toolName(at, name string) error {
	if name == "" {
		return wrong(at, "It is required: 1 to %d characters.", p.limits.MaxToolName)
	}
	return within(at, "max_tool_name", name, p.limits.MaxToolName)
}

// resumes reads AG-UI's answers to interrupts.
func (p *parser) resumes(raw []byte) error {
	if raw == nil || string(raw) == "null" {
		return nil
	}
	if raw[0] != '[' {
		return wrong("resume", "It must be an array.")
	}
	i := -1
	for e := range rawjson.Elements(raw) {
		i++
		at := fmt.Sprintf("resume[%d]", i)
		f, err := object(e, at)
		if err != nil {
			return err
		}
		a := Approval{}
		if a.ID, err = f.text("interruptId", at+".interruptId"); err == nil {
			err = p.limits.identifier(at+".interruptId", a.ID)
		}
		if err != nil {
			return err
		}
		status, err := f.text("status", at+".status")
		if err != nil {
			return err
		}
		a.Approved = status == "resolved"
		if payload := f["payload"]; a.Approved && payload != nil {
			switch string(payload) {
			case "false", `{"approved":false}`, `"deny"`, `"denied"`:
				a.Approved = false
			}
			if o, err := object(payload, at+".payload"); err == nil && string(o["approved"]) == "false" {
				a.Approved = false
			}
		}
		p.thread.approvals = append(p.thread.approvals, a)
	}
	return nil
}

// fields are the members of an object, raw.
type fields map[string][]byte

func object(raw []byte, at string) (fields, error) {
	if len(raw) > 0 {
		raw = raw[rawjson.SkipSpace(raw, 0):]
	}
	if len(raw) == 0 || raw[0] != '{' {
		return nil, wrong(at, "It must be an object.")
	}
	f := fields{}
	for key, v := range rawjson.Members(raw) {
		f[rawjson.Text(key)] = v
	}
	return f, nil
}

// text returns a text member; an absent one and null are "".
func (f fields) text(name, at string) (string, error) {
	v := f[name]
	switch {
	case v == nil || string(v) == "null":
		return "", nil
	case v[0] != '"':
		return "", wrong(at, "It must be a text.")
	}
	return rawjson.Text(v), nil
}
