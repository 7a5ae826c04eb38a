package uistream

import (
	"cmp"
	"encoding/base64"
	"iter"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// messages parses the messages of a request or of a state.
func (p *parser) messages(o wire.Object) {
	if rawjson.Kind(o.Get("messages")) != '[' {
		o.Fail("messages", "It is required, and must be an array.")
	}
	atMost(o, "messages", "messages", "max_messages", p.limits.MaxMessages)
	for el := range o.Elements("messages") {
		p.message(p.Object("", el, names))
	}
}

func (p *parser) message(o wire.Object) {
	if o.Get("id") != nil {
		p.limits.identifier(o, "id")
	}
	content := present(o, "parts", "content")
	switch role := lathe.Role(o.OptString("role")); role {
	case lathe.RoleSystem, lathe.RoleDeveloper:
		p.spoken(role, o, content, "max_answer_text", p.limits.MaxAnswerText)
	case lathe.RoleUser:
		p.thread.closed = true
		p.spoken(role, o, content, "max_text", p.limits.MaxText)
	case lathe.RoleAssistant:
		p.assistant(o, content)
	case lathe.RoleTool:
		p.toolMessage(o, content)
	case "reasoning", "activity": // AG-UI: parts of earlier turns that are for the page only
	default:
		o.Fail("role", "It must be system, user, assistant or tool.")
	}
}

// spoken adds a message of a user or of the system: its texts and, for a user, files.
func (p *parser) spoken(role lathe.Role, o wire.Object, content, limit string, most int) {
	m := lathe.Message{Role: role}
	user, allowed := role == lathe.RoleUser, "text"
	if user {
		allowed = "text or a file"
	}
	for typ, part := range p.parts(o, content) {
		switch {
		case typ == "text":
			if s := text(part.Object, part.text, limit, most); s != "" {
				m.Parts = append(m.Parts, lathe.Text{Text: s})
			}
		case typ == "file" || typ == "image" || typ == "binary":
			if !user {
				part.Fail("type", "Only users send files.")
			}
			m.Parts = append(m.Parts, p.limits.file(part.Object))
		case ignored(typ):
		default:
			part.Fail("type", "A part of a %s message is %s.", role, allowed)
		}
	}
	if user && len(m.Parts) == 0 {
		o.Fail(content, "A user's message says something.")
	}
	p.thread.add(m)
}

// ignored reports whether parts of this type are for the page only.
func ignored(typ string) bool {
	switch typ {
	case "step-start", "source", "source-url", "source-document", "custom", "reasoning-file", "steering-message", "data":
		return true
	}
	return strings.HasPrefix(typ, "data-")
}

// A part is a part of a message, with its JSON in raw.
type part struct {
	wire.Object
	text string // name of the member with its text
	raw  []byte
}

// parts yields the parts of a message and their types. If the content is a string, it is the only part.
func (p *parser) parts(o wire.Object, content string) iter.Seq2[string, part] {
	return func(yield func(string, part) bool) {
		switch rawjson.Kind(o.Get(content)) {
		case 0:
			return
		case '"':
			yield("text", part{Object: o, text: content})
			return
		case '[':
		default:
			o.Fail(content, "It must be a text or an array of parts.")
		}
		atMost(o, content, "parts", "max_parts", p.limits.MaxParts)
		for el := range o.Elements(content) {
			of := p.Object("", el, names)
			if !yield(of.OptString("type"), part{of, "text", el}) {
				return
			}
		}
	}
}

// file parses a file of a user. Its members may have the names of any of the protocols.
func (l *Limits) file(o wire.Object) lathe.Blob {
	if o.Get("source") != nil { // the form of AG-UI
		o = o.Object("source", names)
	}
	first := func(names ...string) (value string) {
		for _, name := range names {
			value = cmp.Or(value, o.OptString(name))
		}
		return value
	}
	b := lathe.Blob{MediaType: first("mediaType", "mimeType"), Name: first("filename")}
	url := first("url", "image", "data", "value")
	if len(url) > l.MaxFileBytes {
		o.FailCode("", "max_file_bytes", "The file is larger than max_file_bytes, which is %d.", l.MaxFileBytes)
	}
	switch {
	case strings.HasPrefix(url, "https://"), strings.HasPrefix(url, "http://"):
		b.URL = url
		return b
	case strings.HasPrefix(url, "data:"):
		head, data, ok := strings.Cut(url[len("data:"):], ",")
		own, isBase64 := strings.CutSuffix(head, ";base64")
		if !ok || !isBase64 {
			o.Fail("url", "A data address is in base64.")
		}
		if b.MediaType == "" {
			b.MediaType = own
		}
		url = data
	case url == "" || strings.Contains(url, ":"):
		o.Fail("url", "A file has an address that begins with https:, http: or data:, or its data in base64.")
	}
	var err error
	if b.Data, err = base64.StdEncoding.DecodeString(url); err != nil || len(b.Data) == 0 {
		o.Fail("", "The data of the file is not base64.")
	}
	return b
}
