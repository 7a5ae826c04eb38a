package messages

import (
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// opening is the first turn of a request whose conversation begins with the assistant or has only system messages. The API requires a user
// turn.
const opening = `{"role":"user","content":[{"type":"text","text":"(The conversation begins.)"}]}`

// leading returns the number of messages at the beginning that are system messages or are not sent.
func leading(msgs []lathe.Message) int {
	n := 0
	for n < len(msgs) && (wire.IsSystem(&msgs[n]) || msgs[n].Role == "") {
		n++
	}
	return n
}

// A place is the position of a part in the request, messages[msg].parts[part], or that of its blob number blob-1 if blob is above 0.
type place struct{ msg, part, blob int }

// dropAt records the part at a place, or a member of it, as dropped. suffix is "." and the member, or "" for the whole part.
func (e *encoder) dropAt(p place, suffix string) {
	if len(e.dropped) == wire.MaxDropped {
		return
	}
	path := wire.Element(wire.Element("messages", p.msg)+".parts", p.part)
	if p.blob > 0 {
		path = wire.Element(path+".blobs", p.blob-1)
	}
	e.drop(path + suffix)
}

// system appends the member system with the leading system messages.
func (e *encoder) system(dst wire.JSON) wire.JSON {
	start := len(dst)
	dst = dst.Arr("system")
	empty := len(dst)
	for i := range e.lead {
		dst = e.parts(dst, i)
	}
	if len(dst) == empty {
		return dst[:start]
	}
	e.prefix.add(dst[empty-1:], []byte{']'})
	return dst.Lit("]")
}

// messages appends the turns. Consecutive messages of one role are one turn. Tool results belong to the user turn and are first in it,
// since they follow the assistant message. A message after which definitions of tools are sent ends its turn.
func (e *encoder) messages(dst wire.JSON) wire.JSON {
	dst = dst.Arr("messages")
	e.prefix.beginTurns(len(dst))
	msgs := e.req.Messages
	lastRole := "" // of the last turn in dst
	for first := e.lead; first < len(msgs); {
		end := turnEnd(msgs, first, e.foundTools)
		dst, lastRole = appendTurn(dst, e, first, end, lastRole)
		first = end
	}
	return dst.If(dst[len(dst)-1] == '[', opening).Lit("]")
}

// appendTurn appends the turn of the messages first to end-1, and the definitions of tools after it. It returns the role of the last turn in
// dst, which was lastRole before.
func appendTurn(dst wire.JSON, e *encoder, first, end int, lastRole string) (wire.JSON, string) {
	m := &e.req.Messages[first]
	role, start := wireRole(m), len(dst)
	reopens := role == lastRole // an empty turn between two turns of this role was omitted, so both are one
	if reopens {
		dst = dst[:start-len("]}")]
		e.dropMembers(first, m.Extra)
	} else {
		dst = openTurn(dst.Next(), role, m)
		e.prefix.beginTurn(start, role)
	}
	empty := len(dst)
	dst = e.parts(dst, first)
	for i := first + 1; i < end; i++ {
		e.dropMembers(i, e.req.Messages[i].Extra) // a turn has only the members of its first message
		dst = e.parts(dst, i)
	}
	if len(dst) == empty && !reopens {
		return dst[:start], lastRole // an empty turn is omitted
	}
	dst = dst.Lit("]}")
	if added := e.foundTools[end-1]; len(added) > 0 {
		return appendAdditions(dst, e, added), "system"
	}
	return dst, role
}

// turnEnd returns the index after the last message of the turn that begins with message first.
func turnEnd(msgs []lathe.Message, first int, foundTools map[int][]*lathe.ToolSpec) int {
	end := first + 1
	for end < len(msgs) && wireRole(&msgs[end]) == wireRole(&msgs[first]) && len(foundTools[end-1]) == 0 {
		end++
	}
	return end
}

// openTurn appends the beginning of a turn, with the unknown members of its first message.
func openTurn(dst wire.JSON, role string, m *lathe.Message) wire.JSON {
	if role == "assistant" && dst[len(dst)-1] == '[' && m.Wire != lathe.WireMessages {
		dst = dst.Lit(opening).Lit(",")
	}
	dst = dst.Lit(`{"role":"`).Lit(role).Lit(`"`)
	if m.Wire == lathe.WireMessages {
		dst = appendMembers(dst, m.Extra, "role", "content")
	}
	return dst.Lit(`,"content":[`)
}

// wireRole returns the role of the turn to which the message belongs.
func wireRole(m *lathe.Message) string {
	switch {
	case m.Role == lathe.RoleAssistant:
		return "assistant"
	case wire.IsSystem(m):
		return "system"
	default:
		return "user"
	}
}

// parts appends the blocks of message i, separated by commas.
func (e *encoder) parts(dst wire.JSON, i int) wire.JSON {
	m := &e.req.Messages[i]
	if m.Name != "" && m.Role != lathe.RoleTool { // the name of a result is that of its call
		e.drop(wire.Element("messages", i) + ".name")
	}
	if m.Wire != lathe.WireMessages {
		e.dropMembers(i, m.Extra)
	}
	for j, p := range m.Parts {
		dst = e.part(dst, m, p, place{msg: i, part: j})
	}
	return dst
}

// dropMembers records the members in list, which are those of message i, as dropped.
func (e *encoder) dropMembers(i int, list []lathe.Member) {
	for _, x := range list {
		e.drop(wire.Element("messages", i) + "." + x.Name)
	}
}

// part appends the block for a part, or records the part as dropped if the wire has no block for it.
func (e *encoder) part(dst wire.JSON, m *lathe.Message, p lathe.Part, at place) wire.JSON {
	switch p := p.(type) {
	case lathe.Text:
		return e.text(dst, m.Wire, p.Text, p.Extra, at)
	case lathe.Refusal:
		return e.text(dst, m.Wire, p.Text, nil, at)
	case lathe.Reasoning:
		return e.reasoning(dst, m, &p, at)
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
		return dst.Next().Raw(p.JSON)
	}
	return dst
}

// reasoning appends a block of thinking. Thinking that the server drops is sent nevertheless: what follows it was written after it, and the
// server may require it beside a call.
func (e *encoder) reasoning(dst wire.JSON, m *lathe.Message, p *lathe.Reasoning, at place) wire.JSON {
	verdict := refused
	switch {
	case !e.sendsReasoning(m, p): // as if the server had refused it
	case at.msg < e.noThinkingBefore:
		e.prefix.refuse(dst, p)
	default:
		verdict = e.prefix.judge(dst, p)
	}
	if verdict != sent {
		e.dropAt(at, "")
	}
	if verdict == sent || verdict == changed && e.asksToDrop() {
		return appendReasoning(dst.Next(), p)
	}
	return dst
}

// text appends a text block. Text that is only white space is omitted, because the API refuses it.
func (e *encoder) text(dst wire.JSON, from lathe.Wire, text string, extra []lathe.Member, at place) wire.JSON {
	if strings.TrimSpace(text) == "" {
		if text != "" {
			e.dropAt(at, "")
		}
		return dst
	}
	dst = dst.Next().Lit(`{"type":"text","text":`).Quote(text)
	return e.extra(dst, from, extra, at, "type", "text").Lit("}")
}

// extra appends unknown members: all if they are from this wire, otherwise those that have the same meaning on this wire.
func (e *encoder) extra(dst wire.JSON, from lathe.Wire, extra []lathe.Member, at place, except ...string) wire.JSON {
	if from == lathe.WireMessages {
		return appendMembers(dst, extra, except...)
	}
	for i, x := range extra {
		if x.Name != "cache_control" {
			e.dropAt(at, "."+x.Name)
			continue
		}
		isLast := wire.MemberValue(extra[i+1:], x.Name) == nil
		if isLast && rawjson.Kind(x.Value) == '{' {
			dst = dst.Val(x.Name, x.Value)
		}
	}
	return dst
}

// sendsReasoning reports whether the reasoning is sent: only to the model that wrote it. Thinking without a signature is sent only if it is
// known that this model wrote it.
func (e *planner) sendsReasoning(m *lathe.Message, p *lathe.Reasoning) bool {
	if m.Wire != lathe.WireMessages {
		return false
	}
	mayBeOwn := p.Entry == "" || p.Entry == e.opts.Entry
	isUnsigned := p.Field == fieldThinking && p.Data == ""
	switch {
	case isUnsigned:
		return p.Text != "" && p.Entry != "" && mayBeOwn
	case p.Field == fieldThinking, p.Field == fieldRedacted:
		return p.Data != "" && mayBeOwn
	}
	return false
}

func appendReasoning(dst wire.JSON, p *lathe.Reasoning) wire.JSON {
	if p.Field == fieldRedacted {
		return dst.Raw(wire.ObjectOf("type", "redacted_thinking", "data", p.Data))
	}
	return dst.Raw(wire.ObjectOf("type", "thinking", "thinking", p.Text, "signature", p.Data))
}

func (e *encoder) call(dst wire.JSON, from lathe.Wire, c *lathe.ToolCall, at place) wire.JSON {
	input, _, kept := wire.SentArguments(c.Arguments)
	dst = dst.Next().Lit("{").Fields("type", "tool_use", "id", CallID(c.ID), "name", shortName(c.Name), "input", input)
	if !kept {
		e.dropAt(at, ".arguments")
	}
	return e.extra(dst, from, c.Extra, at, "type", "id", "name", "input").Lit("}")
}

// result appends a tool_result. If the client's content blocks are stored and still match the result, it appends those blocks.
func (e *encoder) result(dst wire.JSON, from lathe.Wire, r *lathe.ToolResult, at place) wire.JSON {
	dst = dst.Next().Lit(`{"type":"tool_result","tool_use_id":`).Quote(CallID(r.CallID))
	raw := wire.MemberValue(r.Extra, "content")
	isOwn := from == lathe.WireMessages && rawjson.Kind(raw) == '['
	switch {
	case isOwn && sameContent(raw, r):
		dst = dst.Val("content", raw)
	case len(r.Blobs) == 0:
		dst = dst.OptStr("content", r.Content)
	default:
		dst = e.text(dst.Arr("content"), from, r.Content, nil, at)
		for i := range r.Blobs {
			blobAt := place{at.msg, at.part, i + 1}
			before := len(dst)
			dst = e.blob(dst, from, &r.Blobs[i], blobAt)
			if len(dst) == before {
				dst = e.text(dst, from, wire.BlobNote(&r.Blobs[i]), nil, blobAt)
			}
		}
		dst = dst.Lit("]")
	}
	if r.IsError {
		dst = dst.Bool("is_error", true)
	}
	return e.extra(dst, from, r.Extra, at, "type", "tool_use_id", "content", "is_error").Lit("}")
}

func sameContent(blocks []byte, r *lathe.ToolResult) bool {
	content, blobs, _ := resultContent(blocks)
	return content == r.Content && len(blobs) == len(r.Blobs)
}
