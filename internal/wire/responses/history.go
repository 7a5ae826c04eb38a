package responses

import (
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/destination"
	"github.com/lathe-run/lathe/internal/wire"
)

// answer appends the items of an assistant message, in the order of its parts. Consecutive texts of the same phase are one message item.
func (e *encoder) answer(dst wire.JSON, m *lathe.Message, at string) wire.JSON {
	e.dropName(m, at)
	if !own(m.Wire) {
		e.dropMembers(m.Extra, at)
	}
	list := at + ".parts"
	for i := 0; i < len(m.Parts); {
		if _, ok := contentPhase(m.Parts[i], m.Wire); ok {
			dst, i = appendMessageItem(dst, e, m, list, i)
		} else {
			dst = e.item(dst, m, list, i)
			i++
		}
	}
	return dst
}

// appendMessageItem appends the message item that begins with part i of a message, and returns the index of the first part after it. list is the
// path of the parts.
func appendMessageItem(dst wire.JSON, e *encoder, m *lathe.Message, list string, i int) (_ wire.JSON, next int) {
	phase, _ := contentPhase(m.Parts[i], m.Wire)
	dst = dst.Next().Lit(`{"type":"message","role":"assistant","content":[`)
	for ; i < len(m.Parts); i++ {
		if p, ok := contentPhase(m.Parts[i], m.Wire); !ok || p != phase {
			break
		}
		dst = e.contentPart(dst.Next(), m, list, i)
	}
	dst = dst.Lit("]")
	if phase != "" {
		dst = dst.Key("phase").Lit(phase)
	}
	return appendStatus(dst, e.opts).Lit("}"), i
}

// contentPhase reports whether a part is content of a message item, and returns the phase of that item as JSON ("": none). An empty text is
// no content.
func contentPhase(p lathe.Part, from lathe.Wire) (phase string, ok bool) {
	switch p := p.(type) {
	case lathe.Text:
		if p.Commentary {
			phase = `"commentary"`
		} else if own(from) {
			phase = string(wire.MemberValue(p.Extra, "phase"))
		}
		return phase, p.Text != ""
	case lathe.Refusal:
		return "", p.Text != ""
	default:
		return "", false
	}
}

// contentPart appends part i of an assistant message, which is a text or a refusal, as a content part.
func (e *encoder) contentPart(dst wire.JSON, m *lathe.Message, list string, i int) wire.JSON {
	if r, ok := m.Parts[i].(lathe.Refusal); ok {
		return dst.Raw(wire.ObjectOf("type", "refusal", "refusal", r.Text))
	}
	t, _ := m.Parts[i].(lathe.Text)
	dst = dst.Lit(`{"type":"output_text"`).Str("text", t.Text).If(!own(m.Wire) || !wire.Named(t.Extra, "annotations"), `,"annotations":[]`)
	return e.textExtra(dst, t.Extra, m.Wire, list, i).Lit("}")
}

// item appends part i of an assistant message as a separate item, or records it as dropped.
func (e *encoder) item(dst wire.JSON, m *lathe.Message, list string, i int) wire.JSON {
	switch p := m.Parts[i].(type) {
	case lathe.Reasoning:
		if e.sendsReasoning(&p, m.Wire) {
			return appendReasoning(dst.Next(), "", p.Text, p.Data)
		}
	case lathe.ToolCall:
		return e.call(dst, &p, m.Wire, wire.Element(list, i))
	case lathe.Opaque:
		if own(m.Wire) && sendsOpaque(p.JSON, e.mcp) {
			return dst.Next().Raw(p.JSON)
		}
	case lathe.Text, lathe.Refusal: // empty texts are not sent
		return dst
	case lathe.Blob, lathe.ToolResult:
	}
	e.drop(wire.Element(list, i))
	return dst
}

// sendsReasoning reports whether reasoning is sent to the server: only opaque data that the same model wrote. Reasoning that the client has
// sent is left out if the server has refused it.
func (e *encoder) sendsReasoning(p *lathe.Reasoning, from lathe.Wire) bool {
	known := p.Entry == e.opts.Entry
	if p.Entry == "" {
		known = !e.opts.Omits(wire.FeatureBound)
	}
	return own(from) && p.Data != "" && known && !e.opts.Omits(featureEncrypted)
}

// appendReasoning appends a reasoning item. id may be "".
func appendReasoning(dst wire.JSON, id, summary, data string) wire.JSON {
	var list []wire.JSON
	if summary != "" {
		list = append(list, wire.ObjectOf("type", "summary_text", "text", summary))
	}
	return dst.Raw(wire.ObjectOf("id", wire.Optional(id), "type", "reasoning", "summary", wire.ArrayOf(list...), fieldEncrypted, wire.Optional(data)))
}

// sendsOpaque reports whether the server accepts an opaque item. With "store": false it accepts no references to ids. It accepts MCP items
// only if it executes MCP tools for this request, as mcp says.
func sendsOpaque(item []byte, mcp bool) bool {
	typ := text(item, "type")
	return typ != "item_reference" && (mcp || !strings.HasPrefix(typ, "mcp_"))
}

func (e *encoder) call(dst wire.JSON, c *lathe.ToolCall, from lathe.Wire, at string) wire.JSON {
	id := CallID(c.ID)
	if item := sentAsItem(from, c.Extra, id); item != nil {
		return dst.Next().Raw(item)
	}
	dst = dst.Next().Lit("{")
	if e.custom[c.Name] {
		if e.texts == nil {
			e.texts = map[string]bool{}
		}
		e.texts[c.ID] = true
		dst = dst.Fields("type", typeCustomCall, "call_id", id, "name", c.Name, inputName, customInput(c.Arguments))
	} else {
		dst = dst.Fields("type", "function_call", "call_id", id, "name", joinName("", c.Name), "arguments", wire.SentText(c.Arguments))
	}
	return e.itemExtra(appendStatus(dst, e.opts), from, c.Extra, at).Lit("}")
}

// appendStatus appends the status of an item that the model wrote, if the destination requires one.
func appendStatus(dst wire.JSON, opts *wire.EncodeOptions) wire.JSON {
	if opts.Takes.Status != destination.Yes {
		return dst
	}
	return dst.Lit(`,"status":"completed"`)
}
