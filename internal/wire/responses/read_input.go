package responses

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// A turn is a message; for an assistant message, with the results of its calls.
type turn struct {
	message lathe.Message
	results []*lathe.Message // by index of the call; nil: no result yet
	closed  bool             // a result was received, so that later items of the model are a new message
}

// A place is a call without a result.
type place struct {
	turn *turn
	call int
}

// An input parses the items of a request's input into turns, in order. Items of the model are added to the last turn; results are added to
// the turn of their call.
type input struct {
	*reader
	turns      []*turn
	waiting    map[string][]place // calls without a result, by id
	calls      map[string]string  // names of all calls, by id
	orphan     *wire.APIError     // error for the first result without a call
	references bool               // the input has items that refer to other items
	updates    []update
}

// Types of items: typeCustomCall is a call of a custom tool, and typeUpdate changes the effort or the response format for the turns that
// follow.
const (
	typeCustomCall = "custom_tool_call"
	typeUpdate     = "configuration_update"
)

// An update is an item of type configuration_update with its path.
type update struct {
	at   string
	item []byte
}

// readInput parses instructions and input, and sets Messages.
func (r *reader) readInput(o wire.Object) *input {
	in := &input{reader: r, waiting: map[string][]place{}, calls: map[string]string{}}
	if s := o.OptString("instructions"); s != "" {
		in.begin(lathe.Message{Role: lathe.RoleSystem, Parts: textParts(s)})
	}
	switch v := o.Get("input"); rawjson.Kind(v) {
	case 0:
	case '"':
		in.begin(lathe.Message{Role: lathe.RoleUser, Parts: textParts(rawjson.Text(v))})
	case '[':
		for el := range o.Elements("input") {
			in.readItem(el)
		}
	default:
		o.Fail("input", "Must be a string or an array of items.")
	}
	n := len(in.turns)
	for _, t := range in.turns {
		n += len(t.results)
	}
	r.Messages = make([]lathe.Message, 0, n)
	for _, t := range in.turns {
		if t.message.Role == lathe.RoleAssistant && len(t.message.Parts) == 0 {
			continue
		}
		r.Messages = append(r.Messages, t.message)
		for _, result := range t.results {
			if result != nil {
				r.Messages = append(r.Messages, *result)
			}
		}
	}
	return in
}

// begin appends a message.
func (r *input) begin(m lathe.Message) *turn {
	m.Wire = lathe.WireResponses
	t := &turn{message: m}
	r.turns = append(r.turns, t)
	return t
}

// assistant returns the assistant message to which items of the model are added. It begins one if the last message is no assistant message
// or has ended.
func (r *input) assistant() *turn {
	if n := len(r.turns); n > 0 {
		if t := r.turns[n-1]; t.message.Role == lathe.RoleAssistant && !t.closed {
			return t
		}
	}
	return r.begin(lathe.Message{Role: lathe.RoleAssistant})
}

func (t *turn) add(p lathe.Part) { t.message.Parts = append(t.message.Parts, p) }

// readItem parses one item.
func (r *input) readItem(v []byte) {
	o := r.Object("", v, itemNames)
	typ := "message"
	if o.Get("type") != nil {
		typ = o.String("type")
	} else if o.Get("role") == nil {
		o.Fail("type", "An item needs a type.")
	}
	if r.Compact {
		r.Fail("", "An item of type %s must be the last of the input.", typeTrigger)
	}
	r.Compact = typ == typeTrigger
	if !strings.HasSuffix(typ, "_output") { // results of the client's own calls may follow the answers
		r.Answered = false
	}
	switch typ {
	case "mcp_approval_response":
		r.readApproval(o) // sets Answered
	case "message":
		r.readMessage(v, o)
	case "reasoning":
		r.readThoughts(o)
	case "function_call", typeCustomCall:
		r.readCall(o, typ)
	case "function_call_output", "custom_tool_call_output":
		r.readResult(o)
	default:
		if !r.readClientItem(v, o, typ) {
			r.readOpaque(v, o, typ)
		}
	}
}

// readOpaque adds an item of any other type as an opaque part, and reads the members that matter to the rest of the request.
func (r *input) readOpaque(v []byte, o wire.Object, typ string) {
	switch typ {
	case typeUpdate:
		r.updates = append(r.updates, update{r.At(""), v})
	case "item_reference":
		r.references = true
		o.String("id")
	case "mcp_call": // the model has received the answers before this item
		r.Approvals = nil
	}
	switch {
	case typ == "additional_tools":
		r.addTools(o, anyTool)
	case rawjson.Kind(o.Get("tools")) == '[': // such as the tools that a search of the vendor found: its functions are not the client's
		r.addTools(o, isHosted)
	}
	r.assistant().add(lathe.Opaque{JSON: bytes.Clone(v)})
}

func (r *input) readMessage(v []byte, o wire.Object) {
	m := lathe.Message{Role: lathe.Role(o.String("role"))}
	if o.Get("content") == nil {
		o.Fail("content", "A message needs content.")
	}
	o.Skip("type", "id", "status")
	switch m.Role {
	case lathe.RoleAssistant:
		r.Approvals = nil // the model has received the answers before this message
		r.readAnswer(v, o)
		return
	case lathe.RoleSystem, lathe.RoleDeveloper, lathe.RoleUser:
	default:
		o.Fail("role", "Must be user, assistant, system or developer.")
	}
	m.Parts = r.readContent(o, "content")
	m.Extra = o.Rest()
	r.begin(m)
}

// readAnswer parses a message item of the model. An item with content of an unknown type becomes an opaque part.
func (r *input) readAnswer(v []byte, o wire.Object) {
	parts := r.readContent(o, "content")
	phase := o.OptString("phase")
	for i, p := range parts {
		switch p := p.(type) {
		case lathe.Opaque:
			r.assistant().add(lathe.Opaque{JSON: bytes.Clone(v)})
			return
		case lathe.Text:
			p.Commentary = phase == phaseCommentary
			if raw := o.Get("phase"); raw != nil && !p.Commentary {
				p.Extra = append(p.Extra, lathe.Member{Name: "phase", Value: bytes.Clone(raw)})
			}
			parts[i] = p
		default: // other parts have no phase
		}
	}
	o.DropRest()
	t := r.assistant()
	t.message.Parts = append(t.message.Parts, parts...)
}

// readThoughts parses a reasoning item. If it has a summary and content, only the summary is read.
func (r *input) readThoughts(o wire.Object) {
	p := lathe.Reasoning{ID: o.OptString("id"), Data: o.OptString(fieldEncrypted)}
	summary, thoughts := r.readTexts(o, "summary"), r.readTexts(o, "content")
	p.Text = cmp.Or(summary, thoughts)
	if summary != "" && thoughts != "" {
		r.Drop("content")
	}
	o.Skip("type", "status")
	o.DropRest()
	if p.Data != "" {
		p.Field = fieldEncrypted
	}
	if p.Text != "" || p.Data != "" {
		r.assistant().add(p)
	}
}

// readTexts parses a member that is an array of parts with text, and returns the texts separated by blank lines.
func (r *reader) readTexts(o wire.Object, name string) string {
	if o.Get(name) == nil {
		return ""
	}
	var texts []string
	for el := range o.Elements(name) {
		texts = append(texts, r.Object("", el, partNames).String("text"))
	}
	return strings.Join(texts, partBreak)
}

// maxAnswers bounds the answers to approvals in one request.
const maxAnswers = 256

// partBreak separates the parts of a summary.
const partBreak = "\n\n"

// readCall parses a call of a function or, if typ is typeCustomCall, of a custom tool.
func (r *input) readCall(o wire.Object, typ string) {
	c := lathe.ToolCall{ID: o.String("call_id")}
	if c.ID == "" {
		o.Fail("call_id", "Must not be empty.")
	}
	name := o.String("name")
	c.Name = r.nameOf(o.OptString("namespace"), name)
	if typ == typeCustomCall {
		c.Arguments = customArguments(o.OptString(inputName))
	} else if c.Arguments = o.OptString("arguments"); c.Arguments == "" {
		c.Arguments = "{}"
	}
	o.Skip("type", "id", "status", wire.ItemMember)
	c.Extra = o.Rest()
	r.addCall(c)
}

// addCall adds a call to the assistant message.
func (r *input) addCall(c lathe.ToolCall) {
	t := r.assistant()
	same := r.waiting[c.ID]
	if n := len(same); n > 0 && same[n-1].turn == t {
		r.Fail("call_id", "Two calls of one answer have this id.")
	}
	r.waiting[c.ID] = append(same, place{t, len(t.results)})
	r.calls[c.ID] = c.Name
	t.results = append(t.results, nil)
	t.add(c)
}

func (r *input) readResult(o wire.Object) {
	id := o.String("call_id")
	res := lathe.ToolResult{CallID: id, Name: r.calls[id]}
	r.readOutput(&res, o)
	o.Skip("type", "id", "output", "status", wire.ItemMember)
	r.addResult(res, o.Rest())
}

// addResult adds a result after the message that contains its call. A result without a call is recorded in orphan.
func (r *input) addResult(res lathe.ToolResult, extra []lathe.Member) {
	id := res.CallID
	m := lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{res}, Extra: extra, Wire: lathe.WireResponses}
	if waiting := r.waiting[id]; len(waiting) > 0 {
		last := waiting[len(waiting)-1]
		r.waiting[id] = waiting[:len(waiting)-1]
		last.turn.results[last.call], last.turn.closed = &m, true
		return
	}
	if _, twice := r.calls[id]; twice {
		r.Fail("call_id", "The call with the call_id %.64q has a result already.", id)
	}
	if r.orphan == nil {
		r.orphan = wire.BadRequest(r.At("call_id"), "The input has no call with the call_id %.64q, which this result answers.", id)
	}
	r.begin(m)
}

// readApproval parses an answer to an approval. Its id may also be in request_id: OpenAI's published schema requires that name although it
// defines no such property, and clients generated from the schema send it. Clients repeat these answers in the history of later requests,
// so the caller must accept answers that it has already applied.
func (r *input) readApproval(o wire.Object) {
	name := "approval_request_id"
	id, other := o.Get(name), o.Get("request_id")
	if id == nil && other != nil {
		name = "request_id"
	}
	a := wire.ApprovalAnswer{ID: strings.TrimPrefix(o.String(name), prefixApproval)}
	if id != nil && other != nil && !bytes.Equal(id, other) {
		o.Fail("request_id", "The approval has two ids. Send approval_request_id alone.")
	}
	if o.Get("approve") == nil {
		o.Fail("approve", "Must be true or false.")
	}
	a.Approve, a.Reason = o.Bool("approve"), o.OptString("reason")
	r.Answered = true
	if i := slices.IndexFunc(r.Approvals, func(known wire.ApprovalAnswer) bool { return known.ID == a.ID }); i >= 0 {
		if r.Approvals[i].Approve != a.Approve {
			o.Fail("approve", "The approval has two answers.")
		}
		return
	}
	if len(r.Approvals) == maxAnswers {
		r.Fail("", "More than %d approvals are answered at once.", maxAnswers)
	}
	r.Approvals = append(r.Approvals, a)
}
