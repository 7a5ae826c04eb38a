package messages

import (
	"strconv"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// opening is the first turn of a request whose conversation begins with the assistant or has only system messages, since the API
// requires a turn of the user.
const opening = `{"role":"user","content":[{"type":"text","text":"(The conversation begins.)"}]}`

// leading returns the number of system messages, and of messages that are not sent, at the beginning of the conversation.
func leading(msgs []lathe.Message) int {
	n := 0
	for n < len(msgs) && (wire.IsSystem(&msgs[n]) || msgs[n].Role == "") {
		n++
	}
	return n
}

// A place is the position of a part in the request, messages[msg].parts[part], or of a blob in that part if blob is above 0.
type place struct{ msg, part, blob int }

// dropAt records a member of the part at a place as dropped. suffix is "." and the member, or empty for the whole part.
func (e *encoder) dropAt(p place, suffix string) {
	if len(e.dropped) == wire.MaxDropped {
		return
	}
	path := "messages[" + strconv.Itoa(p.msg) + "].parts[" + strconv.Itoa(p.part) + "]"
	if p.blob > 0 {
		path += ".blobs[" + strconv.Itoa(p.blob-1) + "]"
	}
	e.drop(path + suffix)
}

// system appends the system messages that the conversation begins with.
func (e *encoder) system(dst []byte) []byte {
	start := len(dst)
	dst = append(wire.AppendKey(dst, "system"), '[')
	empty := len(dst)
	for i := range e.lead {
		dst = e.parts(dst, i)
	}
	if len(dst) == empty {
		return dst[:start]
	}
	e.prefix.add(dst[empty-1:], []byte{']'})
	return append(dst, ']')
}

// messages appends the turns. Consecutive messages of one role are one turn. Results belong to the turn of the user and are first
// in it, since they follow the assistant's message.
func (e *encoder) messages(dst []byte) []byte {
	dst = append(wire.AppendKey(dst, "messages"), '[')
	e.prefix.added, e.prefix.turn = len(dst), len(dst)
	msgs := e.req.Messages
	last := "" // the role of the last turn
	for i := e.lead; i < len(msgs); {
		role := e.wireRole(&msgs[i])
		start := len(dst)
		if role == last { // an empty turn between them was omitted
			dst = dst[:len(dst)-len("]}")]
			start = -1
		} else {
			dst = e.openTurn(appendComma(dst), role, &msgs[i])
			e.prefix.turn, e.prefix.answered = start, role == "assistant"
		}
		empty := len(dst)
		var added []*lathe.ToolSpec
		for first := i; i < len(msgs) && e.wireRole(&msgs[i]) == role && len(added) == 0; i++ {
			if i > first || start < 0 {
				e.dropMembers(i, msgs[i].Extra)
			}
			dst, added = e.parts(dst, i), e.found[i]
		}
		if len(dst) == empty && start >= 0 {
			dst = dst[:start]
			continue
		}
		if dst, last = append(dst, "]}"...), role; len(added) > 0 {
			dst, last = appendAdditions(dst, e, added), "system"
		}
	}
	if dst[len(dst)-1] == '[' {
		dst = append(dst, opening...)
	}
	return append(dst, ']')
}

// openTurn appends the beginning of a turn of the role, with the unknown members of its first message.
func (e *encoder) openTurn(dst []byte, role string, m *lathe.Message) []byte {
	if role == "assistant" && dst[len(dst)-1] == '[' && m.Wire != lathe.WireMessages {
		dst = append(append(dst, opening...), ',')
	}
	dst = append(append(append(dst, `{"role":"`...), role...), '"')
	if m.Wire == lathe.WireMessages {
		dst = appendMembers(dst, m.Extra, "role", "content")
	}
	return append(dst, `,"content":[`...)
}

// wireRole returns the role of the turn that the message is part of.
func (e *encoder) wireRole(m *lathe.Message) string {
	switch {
	case m.Role == lathe.RoleAssistant:
		return "assistant"
	case wire.IsSystem(m):
		return "system"
	default:
		return "user"
	}
}

// parts appends the blocks of message i, with the commas between them.
func (e *encoder) parts(dst []byte, i int) []byte {
	m := &e.req.Messages[i]
	if m.Name != "" && m.Role != lathe.RoleTool { // a result's name is that of its call
		e.drop("messages[" + strconv.Itoa(i) + "].name")
	}
	if m.Wire != lathe.WireMessages {
		e.dropMembers(i, m.Extra)
	}
	for j, p := range m.Parts {
		dst = e.part(dst, m, p, place{msg: i, part: j})
	}
	return dst
}

// dropMembers records members of message i as dropped.
func (e *encoder) dropMembers(i int, list []lathe.Member) {
	for _, x := range list {
		e.drop("messages[" + strconv.Itoa(i) + "]." + x.Name)
	}
}

// part appends the block for one part, if the wire has one.
func (e *encoder) part(dst []byte, m *lathe.Message, p lathe.Part, at place) []byte {
	switch p := p.(type) {
	case lathe.Text:
		return e.text(dst, m.Wire, p.Text, p.Extra, at)
	case lathe.Refusal:
		return e.text(dst, m.Wire, p.Text, nil, at)
	case lathe.Reasoning:
		becomes := refused
		if e.sendsReasoning(m, &p) {
			becomes = e.prefix.judge(dst, &p, at.msg < e.unbound)
		}
		if becomes != sent {
			e.dropAt(at, "")
		}
		// If the server drops it, it is sent nevertheless: what follows it was written behind it, and the server may require it beside a call.
		if becomes == refused || becomes == changed && !asksToDrop(e) {
			return dst
		}
		return appendReasoning(appendComma(dst), &p)
	case lathe.Blob:
		if m.Role == lathe.RoleAssistant || wire.IsSystem(m) {
			e.dropAt(at, "")
			return dst
		}
		return e.blob(dst, m.Wire, &p, at)
	case lathe.ToolCall:
		return e.call(dst, m.Wire, &p, at)
	case lathe.ToolResult:
		return e.result(dst, m.Wire, &p, at)
	case lathe.Opaque:
		switch {
		case m.Wire == lathe.WireMessages && IsServerBlock(p.JSON):
			return dst
		case m.Wire != lathe.WireMessages || len(p.JSON) == 0:
			e.dropAt(at, "")
			return dst
		}
		return append(appendComma(dst), p.JSON...)
	}
	return dst
}

// text appends a text block. It omits text that is only white space, which the API refuses.
func (e *encoder) text(dst []byte, from lathe.Wire, text string, extra []lathe.Member, at place) []byte {
	if strings.TrimSpace(text) == "" {
		if text != "" {
			e.dropAt(at, "")
		}
		return dst
	}
	dst = append(appendComma(dst), `{"type":"text","text":`...)
	dst = rawjson.AppendQuote(dst, text)
	return append(e.extra(dst, from, extra, at, "type", "text"), '}')
}

// extra appends unknown members: all of them if they are of this wire, else those that have the same meaning on this wire.
func (e *encoder) extra(dst []byte, from lathe.Wire, extra []lathe.Member, at place, except ...string) []byte {
	if from == lathe.WireMessages {
		return appendMembers(dst, extra, except...)
	}
	for i, x := range extra {
		switch {
		case x.Name == "cache_control" && wire.Kind(x.Value) == '{' && wire.MemberValue(extra[i+1:], x.Name) == nil:
			dst = append(wire.AppendKey(dst, x.Name), x.Value...)
		case x.Name != "cache_control":
			e.dropAt(at, "."+x.Name)
		}
	}
	return dst
}

// sendsReasoning reports whether the reasoning is sent: only to the model that wrote it. Thinking without a signature is sent only
// if the model is known to have written it without one.
func (e *encoder) sendsReasoning(m *lathe.Message, p *lathe.Reasoning) bool {
	if m.Wire != lathe.WireMessages {
		return false
	}
	switch p.Field {
	case fieldRedacted:
		return p.Data != "" && (p.Entry == "" || p.Entry == e.opts.Entry)
	case fieldThinking:
		if p.Data == "" {
			return p.Text != "" && p.Entry != "" && p.Entry == e.opts.Entry
		}
		return p.Entry == "" || p.Entry == e.opts.Entry
	}
	return false
}

func appendReasoning(dst []byte, p *lathe.Reasoning) []byte {
	if p.Field == fieldRedacted {
		dst = append(dst, `{"type":"redacted_thinking","data":`...)
		return append(rawjson.AppendQuote(dst, p.Data), '}')
	}
	dst = append(dst, `{"type":"thinking","thinking":`...)
	dst = rawjson.AppendQuote(dst, p.Text)
	return append(wire.AppendText(dst, "signature", p.Data), '}')
}

func (e *encoder) call(dst []byte, from lathe.Wire, c *lathe.ToolCall, at place) []byte {
	dst = append(appendComma(dst), `{"type":"tool_use","id":`...)
	dst = rawjson.AppendQuote(dst, CallID(c.ID))
	dst = wire.AppendText(dst, "name", shortName(c.Name))
	input, _, kept := wire.SentArguments(c.Arguments)
	if dst = append(wire.AppendKey(dst, "input"), input...); !kept {
		e.dropAt(at, ".arguments")
	}
	return append(e.extra(dst, from, c.Extra, at, "type", "id", "name", "input"), '}')
}

// result appends a tool_result. If raw content was kept and its text is still that of the result, result appends the raw content.
func (e *encoder) result(dst []byte, from lathe.Wire, r *lathe.ToolResult, at place) []byte {
	dst = append(appendComma(dst), `{"type":"tool_result","tool_use_id":`...)
	dst = rawjson.AppendQuote(dst, CallID(r.CallID))
	if raw := wire.MemberValue(r.Extra, "content"); from == lathe.WireMessages && wire.Kind(raw) == '[' && sameContent(raw, r) {
		dst = append(wire.AppendKey(dst, "content"), raw...)
	} else if len(r.Blobs) == 0 {
		if r.Content != "" {
			dst = wire.AppendText(dst, "content", r.Content)
		}
	} else {
		dst = append(wire.AppendKey(dst, "content"), '[')
		dst = e.text(dst, from, r.Content, nil, at)
		for i := range r.Blobs {
			at.blob = i + 1
			before := len(dst)
			if dst = e.blob(dst, from, &r.Blobs[i], at); len(dst) == before {
				dst = e.text(dst, from, wire.BlobNote(&r.Blobs[i]), nil, at)
			}
		}
		at.blob = 0
		dst = append(dst, ']')
	}
	if r.IsError {
		dst = append(wire.AppendKey(dst, "is_error"), "true"...)
	}
	return append(e.extra(dst, from, r.Extra, at, "type", "tool_use_id", "content", "is_error"), '}')
}

func sameContent(blocks []byte, r *lathe.ToolResult) bool {
	content, blobs, _ := resultContent(blocks)
	return content == r.Content && len(blobs) == len(r.Blobs)
}
