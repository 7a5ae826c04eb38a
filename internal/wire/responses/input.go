package responses

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// A turn is a message. An assistant message has the results of its calls with it.
type turn struct {
	message lathe.Message
	results []*lathe.Message // by call; nil: not there
	closed  bool             // it has a result: what the model said next is another message
}

// A place is a call that waits for its result.
type place struct {
	turn *turn
	call int
}

// parseInput reads instructions and input into Messages.
func (r *reader) parseInput(instructions, input []byte) *wire.APIError {
	if instructions != nil {
		s, err := wire.ParseString(instructions, "instructions")
		if err != nil {
			return err
		}
		if s != "" {
			r.begin(lathe.Message{Role: lathe.RoleSystem, Parts: []lathe.Part{lathe.Text{Text: s}}})
		}
	}
	r.waiting, r.calls = map[string][]place{}, map[string]string{}
	switch wire.Kind(input) {
	case 0:
	case '"':
		r.begin(lathe.Message{Role: lathe.RoleUser, Parts: textParts(rawjson.Text(input))})
	case '[':
		i := 0
		for el := range r.index.Elements(input) {
			dropped, orphan, updates, hosted := len(r.Dropped), r.orphan, len(r.updates), len(r.Hosted)
			if err := r.parseItem(el); err != nil {
				return wire.Within(wire.Element("input", i), err)
			}
			if len(r.Dropped) > dropped {
				wire.PathsWithin(wire.Element("input", i), r.Dropped[dropped:])
			}
			if len(r.updates) > updates {
				r.updates[updates].at = wire.Element("input", i)
			}
			for k := range r.Hosted[hosted:] {
				r.Hosted[hosted+k].Item = wire.Element("input", i) + r.Hosted[hosted+k].Item
			}
			if r.orphan != orphan {
				r.orphan = wire.Within(wire.Element("input", i), r.orphan)
			}
			i++
		}
	default:
		return wire.BadRequest("input", "Must be a string or an array of items.")
	}
	n := len(r.turns)
	for _, t := range r.turns {
		n += len(t.results)
	}
	r.Messages = slices.Grow(r.Messages, n)
	for _, t := range r.turns {
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
	return nil
}

func textParts(s string) []lathe.Part {
	if s == "" {
		return nil
	}
	return []lathe.Part{lathe.Text{Text: s}}
}

// begin begins a message.
func (r *reader) begin(m lathe.Message) *turn {
	m.Wire = lathe.WireResponses
	t := &turn{message: m}
	r.turns = append(r.turns, t)
	return t
}

// assistant returns the assistant message to which items of the model are added, and begins one if the last message is another.
func (r *reader) assistant() *turn {
	if n := len(r.turns); n > 0 {
		if t := r.turns[n-1]; t.message.Role == lathe.RoleAssistant && !t.closed {
			return t
		}
	}
	return r.begin(lathe.Message{Role: lathe.RoleAssistant})
}

func (t *turn) add(p lathe.Part) { t.message.Parts = append(t.message.Parts, p) }

// parseItem parses one item. Its errors, and the paths that it adds to Dropped, name members from the item on: a path for each
// item would cost more than reading it.
func (r *reader) parseItem(v []byte) *wire.APIError {
	if err := wire.NeedObject(v, ""); err != nil {
		return err
	}
	var few wire.FewFields
	o, err := wire.ReadObject(few[:0], r.index, v, itemNames)
	if err != nil {
		return err
	}
	typ := "message"
	if raw := o.Get("type"); raw != nil {
		var err *wire.APIError
		if typ, err = wire.ParseString(raw, ".type"); err != nil {
			return err
		}
	} else if o.Get("role") == nil {
		return wire.BadRequest(".type", "An item needs a type.")
	}
	if err := r.readSetting(typ, v); err != nil {
		return err
	}
	if typ == "mcp_approval_response" {
		return r.parseApproval(o)
	}
	r.Answered = r.Answered && strings.HasSuffix(typ, "_output") // of the client's own calls, at the same time
	switch typ {
	case "message":
		return r.parseMessage(v, o)
	case "reasoning":
		return r.parseReasoningItem(o)
	case "function_call", "custom_tool_call":
		return r.parseCall(o, typ == "custom_tool_call")
	case "function_call_output", "custom_tool_call_output":
		return r.parseResult(o)
	case "item_reference":
		r.references = true
		if _, err := wire.ParseString(o.Get("id"), ".id"); err != nil {
			return err
		}
	case "mcp_call": // the model had the answers before it
		r.Approvals = nil
	}
	if done, err := r.parseClientItem(v, o, typ); done || err != nil {
		return err
	}
	if err := r.addTools(o.Get("tools"), ".tools", typ == "additional_tools"); err != nil {
		return err
	}
	r.assistant().add(lathe.Opaque{JSON: bytes.Clone(v)})
	return nil
}

func (r *reader) parseMessage(v []byte, o wire.Object) *wire.APIError {
	role, err := wire.ParseString(o.Get("role"), ".role")
	if err != nil {
		return err
	}
	content := o.Get("content")
	if content == nil {
		return wire.BadRequest(".content", "A message needs content.")
	}
	m := lathe.Message{Role: lathe.Role(role)}
	switch m.Role {
	case lathe.RoleAssistant:
		r.Approvals = nil // the model had the answers before it
		return r.parseAnswer(v, o, content)
	case lathe.RoleSystem, lathe.RoleDeveloper, lathe.RoleUser:
	default:
		return wire.BadRequest(".role", "Must be user, assistant, system or developer.")
	}
	if m.Parts, err = r.parseContent(content, ".content"); err != nil {
		return err
	}
	m.Extra = o.Others("type", "role", "content", "id", "status")
	r.begin(m)
	return nil
}

// parseAnswer parses a message item of the model. An item with content of an unknown type is kept as an opaque part.
func (r *reader) parseAnswer(v []byte, o wire.Object, content []byte) *wire.APIError {
	parts, err := r.parseContent(content, ".content")
	if err != nil {
		return err
	}
	phase := o.Get("phase")
	if phase != nil {
		if _, err := wire.ParseString(phase, ".phase"); err != nil {
			return err
		}
	}
	for i, p := range parts {
		switch p := p.(type) {
		case lathe.Opaque:
			r.assistant().add(lathe.Opaque{JSON: bytes.Clone(v)})
			return nil
		case lathe.Text:
			p.Commentary = rawjson.EqualKey(phase, phaseCommentary)
			if phase != nil && !p.Commentary {
				p.Extra = append(p.Extra, lathe.Member{Name: "phase", Value: bytes.Clone(phase)})
			}
			parts[i] = p
		default: // has no phase
		}
	}
	r.DropMembers("", o.Others("type", "role", "content", "phase", "id", "status"))
	t := r.assistant()
	t.message.Parts = append(t.message.Parts, parts...)
	return nil
}

func (r *reader) parseReasoningItem(o wire.Object) *wire.APIError {
	var p lathe.Reasoning
	var err *wire.APIError
	for _, m := range [...]struct {
		name string
		to   *string
	}{{"id", &p.ID}, {fieldEncrypted, &p.Data}} {
		if raw := o.Get(m.name); raw != nil {
			if *m.to, err = wire.ParseString(raw, "."+m.name); err != nil {
				return err
			}
		}
	}
	summary, err := parseTexts(o.Get("summary"), ".summary")
	if err != nil {
		return err
	}
	thoughts, err := parseTexts(o.Get("content"), ".content")
	if err != nil {
		return err
	}
	if p.Text = summary; summary == "" {
		p.Text = thoughts
	} else if thoughts != "" {
		r.Drop(".content")
	}
	r.DropMembers("", o.Others("type", "id", fieldEncrypted, "summary", "content", "status"))
	if p.Data != "" {
		p.Field = fieldEncrypted
	}
	if p.Text != "" || p.Data != "" {
		r.assistant().add(p)
	}
	return nil
}

// parseTexts parses a list of parts with text and joins the texts with blank lines.
func parseTexts(v []byte, at string) (string, *wire.APIError) {
	if v == nil {
		return "", nil
	}
	if err := wire.NeedArray(v, at); err != nil {
		return "", err
	}
	var texts []string
	i := 0
	for el := range rawjson.Elements(v) {
		at := at + "[" + strconv.Itoa(i) + "]"
		i++
		if err := wire.NeedObject(el, at); err != nil {
			return "", err
		}
		s, err := wire.ParseString(get(el, "text"), at+".text")
		if err != nil {
			return "", err
		}
		texts = append(texts, s)
	}
	return strings.Join(texts, partBreak), nil
}

// maxAnswers limits the answers to approvals in one request.
const maxAnswers = 256

// partBreak stands between the parts of a summary.
const partBreak = "\n\n"

func (r *reader) parseCall(o wire.Object, custom bool) *wire.APIError {
	c := lathe.ToolCall{}
	var err *wire.APIError
	if c.ID, err = wire.ParseString(o.Get("call_id"), ".call_id"); err != nil {
		return err
	}
	if c.ID == "" {
		return wire.BadRequest(".call_id", "Must not be empty.")
	}
	name, err := wire.ParseString(o.Get("name"), ".name")
	if err != nil {
		return err
	}
	space := ""
	if raw := o.Get("namespace"); raw != nil {
		if space, err = wire.ParseString(raw, ".namespace"); err != nil {
			return err
		}
	}
	c.Name = r.nameOf(space, name)
	args := "arguments"
	if custom {
		args = inputName
	}
	if raw := o.Get(args); raw != nil {
		if c.Arguments, err = wire.ParseString(raw, "."+args); err != nil {
			return err
		}
	}
	switch {
	case custom:
		c.Arguments = customArguments(c.Arguments)
	case c.Arguments == "":
		c.Arguments = "{}"
	}
	c.Extra = o.Others("type", "id", "call_id", "name", "namespace", "status", args, wire.ItemMember)
	return r.addCall(c)
}

// addCall adds a call to the message of the model.
func (r *reader) addCall(c lathe.ToolCall) *wire.APIError {
	t := r.assistant()
	same := r.waiting[c.ID]
	if n := len(same); n > 0 && same[n-1].turn == t {
		return wire.BadRequest(".call_id", "Two calls of one answer have this id.")
	}
	r.waiting[c.ID] = append(same, place{t, len(t.results)})
	r.calls[c.ID] = c.Name
	t.results = append(t.results, nil)
	t.add(c)
	return nil
}

func (r *reader) parseResult(o wire.Object) *wire.APIError {
	id, err := wire.ParseString(o.Get("call_id"), ".call_id")
	if err != nil {
		return err
	}
	res := lathe.ToolResult{CallID: id, Name: r.calls[id]}
	if err := r.readOutput(&res, o.Get("output"), ".output"); err != nil {
		return err
	}
	return r.addResult(res, o.Others("type", "id", "call_id", "output", "status", wire.ItemMember))
}

// addResult adds a result after the message with its call.
func (r *reader) addResult(res lathe.ToolResult, extra []lathe.Member) *wire.APIError {
	id := res.CallID
	m := lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{res}, Extra: extra, Wire: lathe.WireResponses}
	waiting := r.waiting[id]
	if len(waiting) > 0 {
		last := waiting[len(waiting)-1]
		r.waiting[id] = waiting[:len(waiting)-1]
		last.turn.results[last.call], last.turn.closed = &m, true
		return nil
	}
	if _, twice := r.calls[id]; twice {
		return wire.BadRequest(".call_id", "The call with the call_id %.64q has a result already.", id)
	}
	if r.orphan == nil {
		r.orphan = wire.BadRequest(".call_id", "The input has no call with the call_id %.64q, which this result answers.", id)
	}
	r.begin(m)
	return nil
}

// orphans returns an error if a result has no call, unless the call may be in a response that the input refers to.
func (r *reader) orphans() *wire.APIError {
	if r.PreviousID != "" || r.references {
		return nil
	}
	return r.orphan
}

// parseApproval parses an answer to an approval. Its id may be in request_id, too: OpenAI's published schema requires that
// name, which none of its properties has, and clients that are generated from the schema send it. Clients repeat such answers in the history of later requests: the caller must
// accept answers that it has applied before.
func (r *reader) parseApproval(o wire.Object) *wire.APIError {
	var a wire.ApprovalAnswer
	var err *wire.APIError
	id, other := o.Get("approval_request_id"), o.Get("request_id")
	if id == nil && other != nil {
		if a.ID, err = wire.ParseString(other, ".request_id"); err != nil {
			return err
		}
	} else if a.ID, err = wire.ParseString(id, ".approval_request_id"); err != nil {
		return err
	}
	if other != nil && id != nil && !bytes.Equal(id, other) {
		return wire.BadRequest(".request_id", "The approval has two ids. Send approval_request_id alone.")
	}
	if a.Approve, err = wire.ParseBool(o.Get("approve"), ".approve"); err != nil {
		return err
	}
	if raw := o.Get("reason"); raw != nil {
		if a.Reason, err = wire.ParseString(raw, ".reason"); err != nil {
			return err
		}
	}
	a.ID = strings.TrimPrefix(a.ID, prefixApproval)
	r.Answered = true
	for _, known := range r.Approvals {
		switch {
		case known.ID != a.ID:
		case known.Approve != a.Approve:
			return wire.BadRequest(".approve", "The approval has two answers.")
		default:
			return nil
		}
	}
	if len(r.Approvals) == maxAnswers {
		return wire.BadRequest("", "More than %d approvals are answered at once.", maxAnswers)
	}
	r.Approvals = append(r.Approvals, a)
	return nil
}
