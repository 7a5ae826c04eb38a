package gemini

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// appendContents appends the messages from index n on. Consecutive tool messages become one content.
func (e *encoder) appendContents(dst wire.JSON, n int) wire.JSON {
	msgs := e.req.Messages
	names := map[string]string{} // names of the calls in the last assistant message, by id
	for i := n; i < len(msgs); {
		end := i + 1
		for end < len(msgs) && msgs[i].Role == lathe.RoleTool && msgs[end].Role == lathe.RoleTool {
			end++
		}
		dst = e.appendContent(dst, i, end, names)
		i = end
	}
	return dst
}

// appendContent appends a content with message i, or with the tool messages i to end-1. It sets names if message i has calls.
func (e *encoder) appendContent(dst wire.JSON, i, end int, names map[string]string) wire.JSON {
	m := &e.req.Messages[i]
	if m.Role == "" {
		return dst // the message is not sent, or is part of another: see [wire.Fit] and [destination.Conversation]
	}
	at := wire.Element("messages", i)
	for k := i; k < end; k++ {
		e.noteMessage(&e.req.Messages[k], wire.Element("messages", k))
	}
	start := len(dst)
	role := "user"
	if m.Role == lathe.RoleAssistant {
		role = "model"
		clear(names)
		for _, c := range m.Calls() {
			names[c.ID] = c.Name
		}
	}
	dst = dst.Next().Lit(`{"role":"`).Lit(role).Lit(`","parts":[`)
	open := len(dst)
	switch {
	case m.Role == lathe.RoleTool:
		dst = e.appendResults(dst, i, end, names)
	case wire.IsSystem(m):
		e.d.add(at + ".role")
		dst = e.appendTexts(dst, m, at, "<system>\n", "\n</system>")
	case m.Role == lathe.RoleAssistant:
		dst = e.appendModelParts(dst, m, at)
	default:
		dst = e.appendUserParts(dst, m, at)
	}
	if len(dst) == open { // servers refuse a content without parts
		e.d.add(at)
		return dst[:start]
	}
	dst = dst.Lit("]")
	if m.Wire == lathe.WireGemini && m.Role != lathe.RoleTool {
		dst = dst.Members(m.Extra, func(name string) bool { return name == "role" || name == "parts" })
	}
	return dst.Lit("}")
}

// appendTexts appends the texts of a system message, each with before and after around it.
func (e *encoder) appendTexts(dst wire.JSON, m *lathe.Message, at, before, after string) wire.JSON {
	for i, p := range m.Parts {
		t, ok := p.(lathe.Text)
		if !ok {
			e.d.add(wire.Element(at+".parts", i))
			continue
		}
		if t.Text != "" {
			t.Text = before + t.Text + after
			dst = e.appendTextPart(dst.Next(), m, &t, "", wire.Element(at+".parts", i))
		}
	}
	return dst
}

// appendUserParts appends the parts of a user message.
func (e *encoder) appendUserParts(dst wire.JSON, m *lathe.Message, at string) wire.JSON {
	for i, p := range m.Parts {
		at := wire.Element(at+".parts", i)
		switch p := p.(type) {
		case lathe.Text:
			if p.Text != "" || m.Wire == lathe.WireGemini {
				dst = e.appendTextPart(dst.Next(), m, &p, "", at)
			}
		case lathe.Blob:
			dst = e.appendBlob(dst, m.Wire, &p, "", at)
		case lathe.Opaque:
			dst = e.appendOpaque(dst, m, &p, "", at)
		case lathe.Refusal:
			dst = dst.Next().Raw(wire.ObjectOf("text", p.Text))
		case lathe.Reasoning, lathe.ToolCall, lathe.ToolResult:
			e.d.add(at)
		}
	}
	return dst
}

// usable reports whether the reasoning may be sent to the model of this request: it must be from this wire and this entry.
func (e *encoder) usable(m *lathe.Message, r *lathe.Reasoning) bool {
	return m.Wire == lathe.WireGemini && (r.Entry == "" || r.Entry == e.opts.Entry)
}

// appendModelParts appends the parts of an assistant message. A signature becomes a member of the part that follows it.
func (e *encoder) appendModelParts(dst wire.JSON, m *lathe.Message, at string) wire.JSON {
	signature := "" // of the next part
	calls := 0
	for i, p := range m.Parts {
		at := wire.Element(at+".parts", i)
		switch p := p.(type) {
		case lathe.Reasoning:
			if !e.usable(m, &p) {
				e.d.add(at)
				continue
			}
			dst = appendLoneSignature(dst, signature)
			signature = ""
			if p.Field == fieldSignature {
				signature = p.Data
			} else {
				dst = dst.Next().Raw(wire.ObjectOf("text", p.Text, "thought", true, fieldSignature, wire.Optional(p.Data)))
			}
			continue
		case lathe.Text:
			if p.Text == "" && signature == "" && len(p.Extra) == 0 {
				continue
			}
			dst = e.appendTextPart(dst.Next(), m, &p, signature, at)
		case lathe.Refusal:
			dst = dst.Next().Raw(wire.ObjectOf("text", p.Text, fieldSignature, wire.Optional(signature)))
		case lathe.Blob:
			dst = e.appendBlob(dst, m.Wire, &p, signature, at)
		case lathe.Opaque:
			dst = e.appendOpaque(dst, m, &p, signature, at)
		case lathe.ToolCall:
			calls++
			mustBeSigned := calls == 1 && (generation(e.req.Model) > 2 || has(e.opts.Without, featureUnsigned))
			if mustBeSigned && signature == "" {
				signature = noSignature
			}
			dst = e.appendCall(dst.Next(), m, &p, signature, at)
		case lathe.ToolResult:
			e.d.add(at)
			continue
		}
		signature = ""
	}
	return appendLoneSignature(dst, signature)
}

// appendLoneSignature appends a signature that no part follows, if there is one, with an empty text.
func appendLoneSignature(dst wire.JSON, signature string) wire.JSON {
	if signature == "" {
		return dst
	}
	return dst.Next().Raw(wire.ObjectOf("text", "", fieldSignature, signature))
}

// claimedPart reports whether the internal form has a field for a member of a part.
func claimedPart(name string) bool {
	_, known := partNames.spellings()[name]
	return known
}

func (e *encoder) appendTextPart(dst wire.JSON, m *lathe.Message, t *lathe.Text, signature, at string) wire.JSON {
	dst = dst.Lit(`{"text":`).Quote(t.Text).OptStr(fieldSignature, signature)
	return e.appendExtra(dst, m.Wire, t.Extra, at).Lit("}")
}

// appendExtra appends the unknown members of a part if the message is from this wire; otherwise it records them as dropped.
func (e *encoder) appendExtra(dst wire.JSON, of lathe.Wire, extra []lathe.Member, at string) wire.JSON {
	if of != lathe.WireGemini {
		e.noteExtra(extra, at)
		return dst
	}
	return dst.Members(extra, claimedPart)
}

func (e *encoder) appendOpaque(dst wire.JSON, m *lathe.Message, o *lathe.Opaque, signature, at string) wire.JSON {
	if m.Wire != lathe.WireGemini || rawjson.Kind(o.JSON) != '{' {
		e.d.add(at)
		return dst
	}
	return dst.Next().Raw(signed(o.JSON, signature))
}

// signed returns a part unchanged, with the signature added if there is one.
func signed(part []byte, signature string) wire.JSON {
	if signature == "" {
		return part
	}
	part = bytes.TrimRight(part, " \t\r\n")
	open := bytes.TrimRight(part[:len(part)-1], " \t\r\n") // without the closing bracket
	return wire.JSON(nil).Raw(open).Str(fieldSignature, signature).Lit("}")
}

// appendBlob appends a blob as a part, or records it as dropped if Google's servers cannot read its content.
func (e *encoder) appendBlob(dst wire.JSON, of lathe.Wire, b *lathe.Blob, signature, at string) wire.JSON {
	if len(b.Raw) > 0 {
		if of == lathe.WireGemini {
			return dst.Next().Raw(signed(b.Raw, signature))
		}
		if b.URL == "" && len(b.Data) == 0 {
			e.d.add(at)
			return dst
		}
		e.d.add(at + ".raw")
	}
	if !reachable(b) {
		e.d.add(at)
		return dst
	}
	if b.Detail != "" && b.Detail != "auto" {
		e.d.add(at + ".detail")
	}
	dst = appendBlobValue(dst.Next().Lit("{"), b)
	return dst.OptStr(fieldSignature, signature).Lit("}")
}

// appendBlobValue appends the member inlineData if the blob has data, else fileData.
func appendBlobValue(dst wire.JSON, b *lathe.Blob) wire.JSON {
	if len(b.Data) > 0 {
		dst = dst.Key("inlineData").Lit(`{"mimeType":`).Quote(cmp.Or(b.MediaType, "application/octet-stream")).Lit(`,"data":"`)
		dst = wire.JSON(base64.StdEncoding.AppendEncode(dst, b.Data)).Lit(`"`)
	} else {
		dst = dst.Obj("fileData")
		if b.MediaType != "" && !strings.HasSuffix(b.MediaType, "/*") {
			dst = dst.Str("mimeType", b.MediaType)
		}
		dst = dst.Str("fileUri", b.URL)
	}
	return dst.OptStr("displayName", b.Name).Lit("}")
}

func (e *encoder) appendCall(dst wire.JSON, m *lathe.Message, c *lathe.ToolCall, signature, at string) wire.JSON {
	args, ok, _ := wire.SentArguments(c.Arguments)
	if !ok {
		e.d.add(at + ".arguments")
	}
	id := c.ID
	if has(e.opts.Without, featureIDs) {
		id = ""
	}
	dst = appendCallMembers(dst.Lit(`{"functionCall":{`), id, sentName(c.Name), args)
	if m.Wire == lathe.WireGemini {
		dst = appendInnerMembers(dst, c.Extra, "functionCall", callNames)
	}
	dst = dst.Lit("}").OptStr(fieldSignature, signature)
	return e.appendExtra(dst, m.Wire, c.Extra, at).Lit("}")
}

func appendCallMembers(dst wire.JSON, id, name string, args []byte) wire.JSON {
	return dst.OptStr("id", id).Str("name", name).Val("args", args)
}

// sentName returns a function name in the form that the wire requires in requests.
func sentName(name string) string {
	if name == "" {
		return "unknown"
	}
	return innerName(name)
}

// appendInnerMembers appends those members of the object named name in extra that are not in known.
func appendInnerMembers(dst wire.JSON, extra []lathe.Member, name string, known *nameSet) wire.JSON {
	for _, m := range extra {
		if m.Name != name {
			continue
		}
		for key, v := range rawjson.Members(m.Value) {
			if _, claimed := known.spellings()[rawjson.Text(key)]; !claimed {
				dst = dst.Pair(key, v)
			}
		}
	}
	return dst
}

// HasForm implements [wire.Upstream]. System messages can have only text.
func (Codec) HasForm(m *lathe.Message, p lathe.Part) bool {
	own := m.Wire == lathe.WireGemini
	switch p := p.(type) {
	case lathe.Blob:
		return !wire.IsSystem(m) && (own && len(p.Raw) > 0 || reachable(&p))
	case lathe.Opaque:
		return own && !wire.IsSystem(m) && rawjson.Kind(p.JSON) == '{'
	case lathe.Text, lathe.Reasoning, lathe.Refusal, lathe.ToolCall, lathe.ToolResult:
	}
	return true
}

// reachable reports whether Google's servers can read the content of a blob: it has data, an HTTP URL, a gs:// URL or the name of an
// uploaded file.
func reachable(b *lathe.Blob) bool {
	if len(b.Data) > 0 {
		return true
	}
	for _, scheme := range [...]string{"https://", "http://", "gs://", "files/"} {
		if strings.HasPrefix(b.URL, scheme) {
			return true
		}
	}
	return false
}
