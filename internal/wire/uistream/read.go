package uistream

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// A Request is the parsed request of a chat page. It may contain UI messages of the AI SDK, messages in a model's form (content and role
// tool, as data stream clients send them), AG-UI's run input, or a state and commands of assistant-ui's transport.
type Request struct {
	ID        string // id of the chat, or of AG-UI's thread
	RunID     string // id of the run that an AG-UI client sent
	StateKey  string
	Model     string
	Messages  []lathe.Message
	Tools     []*lathe.ToolSpec // tools that the page executes
	Lathe     json.RawMessage   // the member `lathe`, unchanged
	Reasoning bool              // a message had reasoning
	// State is the state of a page of assistant-ui's transport, for [Options]; nil: the request is of another kind.
	State *State
	// Last is the assistant message at the end of the request if its calls wait for a decision or a result, else nil.
	Last *Waiting
}

// A Waiting is an assistant message whose calls waited, with the decisions and results in the request.
type Waiting struct {
	MessageID string
	RunID     string // id of the run that wrote the message, from its stream; "": not known
	Calls     []OpenCall
	Approvals []Approval
	Results   map[string]lathe.Output // results of tools that the page executes, by call id
}

// An Approval is a decision about one call.
type Approval struct {
	ID       string // id of the approval; "": not known to the page
	CallID   string
	Approved bool
	Reason   string
}

// ParseOptions are the options of ParseRequest. They are copied.
type ParseOptions struct {
	Limits Limits
	// KeepReasoning keeps the reasoning of earlier turns; otherwise it is dropped, which most servers require.
	KeepReasoning bool
}

// A parser is the state of one ParseRequest.
type parser struct {
	wire.Reader
	limits        Limits
	keepReasoning bool
	out           *Request
	thread        thread
}

// ParseRequest parses a request. Its messages are a history that can be sent to a model: each call has exactly one result, directly after
// its message and in call order. A call without a result in the request gets the result `interrupted`. The error is a *[RequestError].
func ParseRequest(body []byte, opts *ParseOptions) (*Request, error) {
	p := &parser{Reader: wire.NewReader(body), out: &Request{}}
	if opts != nil {
		p.limits, p.keepReasoning = opts.Limits, opts.KeepReasoning
	}
	if err := p.parse(p.read); err != nil {
		return nil, err
	}
	return p.out, nil
}

// names is empty, so that names are not compared under case folding: clients of pages send exact names.
var names = rawjson.NewNames()

// parse parses the body with read. The error is a *RequestError.
func (p *parser) parse(read func(wire.Object)) error {
	p.limits = p.limits.withDefaults()
	_, err := p.ParseBody(names, read)
	if bad, ok := err.(*wire.APIError); ok { //nolint:errorlint // as ParseBody says
		return &RequestError{Param: cmp.Or(bad.Param, "body"), Limit: bad.Code, Message: bad.Message}
	}
	return nil
}

func (p *parser) read(o wire.Object) {
	p.head(o)
	if o.Get("commands") != nil {
		p.transport(o)
	} else {
		p.messages(o)
	}
	if o.Get("resume") != nil {
		p.resumes(o)
	}
	p.out.Messages = p.thread.history()
	if len(p.out.Messages) == 0 {
		o.Fail("messages", "There are no messages: a run starts from one at least.")
	}
	p.out.Last = p.thread.waiting()
	if p.out.Last == nil && len(p.thread.approvals) > 0 {
		o.Fail("resume", "It answers an interrupt, but the messages do not end with the assistant's message whose call was interrupted: send the whole history.")
	}
}

func (p *parser) head(o wire.Object) {
	out := p.out
	for _, m := range []struct {
		name string
		to   *string
	}{{"id", &out.ID}, {"threadId", &out.ID}, {"runId", &out.RunID}, {"model", &out.Model}} {
		*m.to = cmp.Or(p.limits.name(o, m.name), *m.to)
	}
	if out.Model == "" && rawjson.Kind(o.Get("config")) == '{' { // where assistant-ui sends the model
		out.Model = p.limits.name(o.Object("config", names), "modelName")
	}
	out.Lathe = o.Get("lathe")
	if rawjson.Kind(o.Get("forwardedProps")) == '{' { // where AG-UI sends model and lathe
		props := o.Object("forwardedProps", names)
		if out.Model == "" {
			out.Model = p.limits.name(props, "model")
		}
		if out.Lathe == nil {
			out.Lathe = props.Get("lathe")
		}
	}
	out.StateKey = text(o, "stateKey", "max_state_key", p.limits.MaxStateKey)
	if strings.Trim(out.StateKey, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-") != "" {
		o.Fail("stateKey", "It may have letters, digits and the characters . _ : - only.")
	}
	if system := text(o, "system", "max_answer_text", p.limits.MaxAnswerText); system != "" {
		p.thread.add(lathe.System(system))
	}
	p.tools(o)
}

// tools parses the page's own tools, which are an array or an object by name.
func (p *parser) tools(o wire.Object) {
	switch rawjson.Kind(o.Get("tools")) {
	case 0:
	case '[':
		for el := range o.Elements("tools") {
			p.tool(p.Object("", el, names), "")
		}
	default:
		all := o.Object("tools", names)
		for name := range all.Unread() {
			p.tool(all.Object(name, names), name)
		}
	}
}

func (p *parser) tool(o wire.Object, name string) {
	if o.Get("function") != nil { // OpenAI's form
		o = o.Object("function", names)
	}
	t := &lathe.ToolSpec{Name: cmp.Or(name, o.OptString("name")), Description: o.OptString("description"), Owner: lathe.OwnerClient}
	p.limits.checkToolName(o, "name", t.Name)
	t.Schema = o.OptObject("parameters")
	if t.Schema == nil {
		t.Schema = o.OptObject("inputSchema")
	}
	p.out.Tools = append(p.out.Tools, t)
}

func (l *Limits) checkToolName(o wire.Object, member, name string) {
	if name == "" {
		o.Fail(member, "It is required: 1 to %d characters.", l.MaxToolName)
	}
	within(o, member, name, "max_tool_name", l.MaxToolName)
}

// resumes parses the answers to interrupts of AG-UI.
func (p *parser) resumes(o wire.Object) {
	for el := range o.Elements("resume") {
		answer := p.Object("", el, names)
		a := Approval{ID: p.limits.identifier(answer, "interruptId"), Approved: answer.OptString("status") == "resolved"}
		payload := answer.Get("payload")
		denied := slices.Contains([]string{"false", `"deny"`, `"denied"`}, string(payload)) || string(rawjson.At(payload, "approved")) == "false"
		a.Approved = a.Approved && !denied
		p.thread.approvals = append(p.thread.approvals, a)
	}
}
