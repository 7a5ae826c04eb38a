package uistream

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

func (p *parser) messages(raw []byte, name string) error {
	if len(raw) == 0 || raw[0] != '[' {
		return wrong(name, "It is required, and must be an array.")
	}
	i := 0
	for m := range rawjson.Elements(raw) {
		at := fmt.Sprintf("%s[%d]", name, i)
		if i++; i > p.limits.MaxMessages {
			return &RequestError{Param: name, Limit: "max_messages", Message: fmt.Sprintf("There are more messages than max_messages, which is %d.", p.limits.MaxMessages)}
		}
		f, err := object(m, at)
		if err == nil {
			err = p.message(f, at)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) message(f fields, at string) error {
	if f["id"] != nil {
		id, err := f.text("id", at+".id")
		if err == nil {
			err = p.limits.identifier(at+".id", id)
		}
		if err != nil {
			return err
		}
	}
	role, err := f.text("role", at+".role")
	if err != nil {
		return err
	}
	parts, name := f["parts"], "parts"
	if parts == nil {
		parts, name = f["content"], "content"
	}
	at2 := at + "." + name
	switch lathe.Role(role) {
	case lathe.RoleSystem, lathe.RoleDeveloper:
		return p.spoken(lathe.Role(role), parts, at2, p.limits.MaxAnswerText, "max_answer_text", false)
	case lathe.RoleUser:
		p.thread.closed = true
		return p.spoken(lathe.RoleUser, parts, at2, p.limits.MaxText, "max_text", true)
	case lathe.RoleAssistant:
		return p.assistant(f, parts, at, at2)
	case lathe.RoleTool:
		return p.toolMessage(f, parts, at, at2)
	}
	switch role {
	case "reasoning", "activity": // AG-UI: of earlier turns, for the page only
		return nil
	}
	return wrong(at+".role", "It must be system, user, assistant or tool.")
}

// spoken adds a message of a user or the system: text, and files if allowed.
func (p *parser) spoken(role lathe.Role, raw []byte, at string, most int, limit string, files bool) error {
	m := lathe.Message{Role: role}
	err := p.eachPart(raw, at, func(typ string, f fields, at string) error {
		switch typ {
		case "text":
			s, err := f.text("text", at+".text")
			if err == nil {
				err = within(at+".text", limit, s, most)
			}
			if err == nil && s != "" {
				m.Parts = append(m.Parts, lathe.Text{Text: s})
			}
			return err
		case "file", "image", "binary":
			if !files {
				return wrong(at+".type", "Only users send files.")
			}
			b, err := p.file(f, at)
			if err == nil {
				m.Parts = append(m.Parts, *b)
			}
			return err
		}
		if ignored(typ) {
			return nil
		}
		return wrong(at+".type", "A part of a %s message is text%s.", role, map[bool]string{true: " or a file"}[files])
	})
	if err != nil {
		return err
	}
	if role == lathe.RoleUser && len(m.Parts) == 0 {
		return wrong(at, "A user's message says something.")
	}
	p.thread.add(m)
	return nil
}

// ignored reports whether parts of this type are for the page only.
func ignored(typ string) bool {
	switch typ {
	case "step-start", "source", "source-url", "source-document", "custom", "reasoning-file", "steering-message", "data":
		return true
	}
	return strings.HasPrefix(typ, "data-")
}

// eachPart calls f for the parts of a message, or once for a text.
func (p *parser) eachPart(raw []byte, at string, f func(typ string, f fields, at string) error) error {
	switch {
	case raw == nil || string(raw) == "null":
		return nil
	case raw[0] == '"':
		return f("text", fields{"text": raw}, at)
	case raw[0] != '[':
		return wrong(at, "It must be a text or an array of parts.")
	}
	i := 0
	for e := range rawjson.Elements(raw) {
		here := fmt.Sprintf("%s[%d]", at, i)
		if i++; i > p.limits.MaxParts {
			return &RequestError{Param: at, Limit: "max_parts", Message: fmt.Sprintf("There are more parts than max_parts, which is %d.", p.limits.MaxParts)}
		}
		part, err := object(e, here)
		if err != nil {
			return err
		}
		typ, err := part.text("type", here+".type")
		if err != nil {
			return err
		}
		if err := f(typ, part, here); err != nil {
			return err
		}
	}
	return nil
}

// file reads a file of a user under the names that the protocols have for its members.
func (p *parser) file(f fields, at string) (*lathe.Blob, error) {
	url, media, name := "", "", ""
	if src := f["source"]; src != nil { // AG-UI's
		s, err := object(src, at+".source")
		if err != nil {
			return nil, err
		}
		f = fields{"url": s["url"], "data": s["data"], "mediaType": s["mimeType"]}
		if v, err := s.text("value", at+".source.value"); err == nil && v != "" {
			kind, _ := s.text("type", at)
			f[map[bool]string{true: "url", false: "data"}[kind == "url"]] = s["value"]
		}
	}
	for _, m := range []struct {
		dst   *string
		names []string
	}{{&url, []string{"url", "image", "data"}}, {&media, []string{"mediaType", "mimeType"}}, {&name, []string{"filename"}}} {
		for _, n := range m.names {
			s, err := f.text(n, at+"."+n)
			if err != nil {
				return nil, err
			}
			if *m.dst == "" {
				*m.dst = s
			}
		}
	}
	if len(url) > p.limits.MaxFileBytes {
		return nil, &RequestError{Param: at, Limit: "max_file_bytes", Message: fmt.Sprintf("The file is larger than max_file_bytes, which is %d.", p.limits.MaxFileBytes)}
	}
	switch {
	case strings.HasPrefix(url, "https://"), strings.HasPrefix(url, "http://"):
		return &lathe.Blob{URL: url, MediaType: media, Name: name}, nil
	case strings.HasPrefix(url, "data:"):
		head, data, ok := strings.Cut(url[len("data:"):], ",")
		own, isBase64 := strings.CutSuffix(head, ";base64")
		if !ok || !isBase64 {
			return nil, wrong(at+".url", "A data address is in base64.")
		}
		if media == "" {
			media = own
		}
		url = data
	case url == "" || strings.Contains(url, ":"):
		return nil, wrong(at+".url", "A file has an address that begins with https:, http: or data:, or its data in base64.")
	}
	data, err := base64.StdEncoding.DecodeString(url)
	if err != nil || len(data) == 0 {
		return nil, wrong(at, "The data of the file is not base64.")
	}
	return &lathe.Blob{Data: data, MediaType: media, Name: name}, nil
}
