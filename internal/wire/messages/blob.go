package messages

import (
	"encoding/base64"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/destination"
	"github.com/lathe-run/lathe/internal/wire"
)

// HasForm implements [wire.Upstream]. Images and documents are possible only in user messages and tool results.
func (Codec) HasForm(m *lathe.Message, p lathe.Part) bool {
	switch p := p.(type) {
	case lathe.Blob:
		return m.Role != lathe.RoleAssistant && !wire.IsSystem(m) && sendsBlob(m.Wire, &p)
	case lathe.Opaque:
		return m.Wire == lathe.WireMessages && len(p.JSON) > 0 && (wire.IsSystem(m) || !changesTools(text(p.JSON, "type")))
	case lathe.Text, lathe.Reasoning, lathe.Refusal, lathe.ToolCall, lathe.ToolResult:
	}
	return true
}

// changesTools reports whether a block of that type changes the tools within the conversation. Only system messages have such blocks.
func changesTools(typ string) bool { return typ == "tool_addition" || typ == "tool_removal" }

// sendsBlob reports whether the wire has a block for a blob of a message of the wire from.
func sendsBlob(from lathe.Wire, b *lathe.Blob) bool {
	return len(b.Raw) > 0 && from == lathe.WireMessages || blockType(b) != "" && (b.URL == "" || wire.Fetchable(b.URL))
}

// blob appends an image block or a document block.
func (e *encoder) blob(dst wire.JSON, from lathe.Wire, b *lathe.Blob, at place) wire.JSON {
	if !sendsBlob(from, b) {
		e.dropAt(at, "")
		return dst
	}
	if len(b.Raw) > 0 && from == lathe.WireMessages {
		return dst.Next().Raw(b.Raw)
	}
	typ := blockType(b)
	text, isText := destination.Text(b)
	if b.Detail != "" && b.Detail != "auto" {
		e.dropAt(at, ".detail")
	}
	dst = dst.Next().Lit(`{"type":"`).Lit(typ).Lit(`","source":{`)
	switch {
	case b.URL != "":
		dst = dst.Fields("type", "url", "url", b.URL)
	case isText:
		dst = dst.Fields("type", "text", "media_type", "text/plain", "data", text)
	default:
		media := b.MediaType
		if media == "image/jpg" {
			media = "image/jpeg" // the only name that the API accepts
		}
		dst = dst.Fields("type", "base64", "media_type", media).Lit(`,"data":"`)
		dst = wire.JSON(base64.StdEncoding.AppendEncode(dst, b.Data)).Lit(`"`)
	}
	dst = dst.Lit("}")
	if typ == "document" {
		dst = dst.OptStr("title", b.Name)
	}
	return dst.Lit("}")
}
