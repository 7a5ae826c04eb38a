package messages

import (
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// AppendAnswer appends a complete message, with the same content as the stream of the same answer.
func (Codec) AppendAnswer(dst []byte, a *wire.Answer) []byte {
	dst = append(appendHead(dst, &a.AnswerHead), `,"content":[`...)
	c := content{request: a.Request, run: a.RunID, own: a.Finish.Message.Wire == lathe.WireMessages}
	items := a.Items
	for i, p := range a.Finish.Message.Parts {
		for len(items) > 0 && items[0].Before <= i {
			dst = c.item(dst, &items[0])
			items = items[1:]
		}
		dst = c.part(dst, p)
	}
	for i := range items {
		dst = c.item(dst, &items[i])
	}
	dst = appendStop(append(c.closeText(dst), ']'), a.Finish, c.calls > 0, a.Request)
	dst = appendUsage(wire.AppendKey(dst, "usage"), &a.Finish.Usage)
	dst = appendMembers(dst, a.Extra, "id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage")
	return append(dst, '}')
}

// A content writes the blocks of a complete message.
type content struct {
	request *wire.ClientRequest
	run     string
	own     bool // the message is of this wire
	calls   int

	text []byte         // of the text block that is open
	open bool           // a text block is
	more []lathe.Member // its further members
}

// closeText appends the open text block. Consecutive texts are one block, as in a stream.
func (c *content) closeText(dst []byte) []byte {
	if !c.open {
		return dst
	}
	dst = wire.AppendText(append(appendComma(dst), `{"type":"text"`...), "text", string(c.text))
	dst = append(appendMembers(dst, c.more, "type", "text"), '}')
	c.open, c.text, c.more = false, c.text[:0], nil
	return dst
}

func (c *content) part(dst []byte, p lathe.Part) []byte {
	switch p := p.(type) {
	case lathe.Text:
		if len(p.Extra) > 0 && c.own {
			dst = c.closeText(dst)
			c.open, c.text, c.more = true, append(c.text, p.Text...), p.Extra
			return c.closeText(dst)
		}
		c.add(p.Text)
	case lathe.Refusal:
		c.add(p.Text)
	case lathe.Reasoning:
		return c.reasoning(dst, &p)
	case lathe.ToolCall:
		dst = appendComma(c.closeText(dst))
		id := p.ID
		if id == "" {
			id = madeUpID(c.run, c.calls)
		}
		c.calls++
		dst = wire.AppendText(append(dst, `{"type":"tool_use"`...), "id", CallID(id))
		dst = wire.AppendText(dst, "name", clientName(c.request, p.Name))
		dst, _ = appendInput(wire.AppendKey(dst, "input"), p.Arguments)
		return append(dst, '}')
	case lathe.Opaque:
		if c.own && wire.Kind(p.JSON) == '{' {
			return append(appendComma(c.closeText(dst)), p.JSON...)
		}
	case lathe.Blob, lathe.ToolResult: // an answer has no form for them
	}
	return dst
}

func (c *content) add(text string) {
	if text != "" {
		c.open, c.text = true, append(c.text, text...)
	}
}

// reasoning appends the reasoning, without the opaque data of another wire, which the client would send back to any model.
func (c *content) reasoning(dst []byte, p *lathe.Reasoning) []byte {
	data := ""
	if p.Field == fieldThinking && c.own {
		data = p.Data
	}
	switch {
	case p.Field == fieldRedacted && c.own:
		return appendRedacted(appendComma(c.closeText(dst)), p.Data)
	case p.Text == "" && data == "":
		return dst
	}
	dst = append(appendComma(c.closeText(dst)), `{"type":"thinking","thinking":`...)
	dst = rawjson.AppendQuote(dst, p.Text)
	return append(wire.AppendText(dst, "signature", data), '}')
}

func (c *content) item(dst []byte, it *wire.Item) []byte {
	switch {
	case it.Call != nil:
		call, result := appendServerCall(it.Call)
		dst = append(appendComma(c.closeText(dst)), call...)
		return append(append(dst, ','), result...)
	case it.Carrier != "":
		return appendRedacted(appendComma(c.closeText(dst)), it.Carrier)
	}
	return dst
}
