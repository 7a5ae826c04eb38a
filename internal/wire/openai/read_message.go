package openai

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// message parses one message of a request.
func (r *reader) message(v []byte) lathe.Message {
	o := r.Object("", v, messageNames)
	m := lathe.Message{Role: lathe.Role(o.String("role")), Name: o.OptString("name")}
	switch m.Role {
	case lathe.RoleSystem, lathe.RoleDeveloper, lathe.RoleUser, lathe.RoleAssistant, lathe.RoleTool:
	default:
		const must = "Must be system, developer, user, assistant or tool."
		if m.Role != "function" {
			o.Fail("role", must)
		}
		r.Refer("role", must)
	}
	if o.Get("function_call") != nil {
		r.Refer("function_call", "The old function calling is not supported: use tool_calls.")
	}
	content, refusal, calls := o.Get("content"), o.Get("refusal"), o.Get("tool_calls")
	o.Skip("tool_call_id")
	for name, v := range o.Unread() {
		if m.Role == lathe.RoleAssistant && rawjson.Kind(v) == '"' && isReasoning(name) {
			if text := rawjson.Text(v); text != "" {
				m.Parts = append(m.Parts, lathe.Reasoning{Text: text, Field: name})
			}
			continue
		}
		m.Extra = append(m.Extra, lathe.Member{Name: name, Value: bytes.Clone(v)})
	}
	switch {
	case m.Role == lathe.RoleTool:
		m.Parts = []lathe.Part{r.result(o)}
		return m
	case content == nil && m.Role != lathe.RoleAssistant:
		o.Fail("content", "This message needs content.")
	case calls != nil && m.Role != lathe.RoleAssistant:
		o.Fail("tool_calls", "Only an assistant message has calls.")
	}
	m.Parts = r.content(m.Parts, o)
	if refusal != nil {
		m.Parts = append(m.Parts, lathe.Refusal{Text: o.String("refusal")})
	}
	if calls != nil {
		for el := range o.Elements("tool_calls") {
			c := r.call(el)
			r.called[c.ID] = c.Name
			m.Parts = append(m.Parts, c)
		}
	}
	return m
}

func isReasoning(name string) bool {
	return slices.Contains(reasoningFields[:], name)
}

// result parses the content of a message with the role tool.
func (r *reader) result(o wire.Object) lathe.ToolResult {
	res := lathe.ToolResult{CallID: o.String("tool_call_id")}
	res.Name = r.called[res.CallID]
	if v := o.Get("content"); rawjson.Kind(v) == '"' {
		res.Content = rawjson.Text(v)
		return res
	}
	parts := r.content(nil, o)
	res.Content = (&lathe.Message{Parts: parts}).Text()
	for _, p := range parts {
		switch p := p.(type) {
		case lathe.Text:
			res.Extra = append(res.Extra, p.Extra...) // of members with equal names, the last is sent
		case lathe.Blob:
			res.Blobs = append(res.Blobs, p)
		default: // content has no other parts
		}
	}
	return res
}

// call parses one call of a message.
func (r *reader) call(v []byte) lathe.ToolCall {
	o := r.Object("", v, callNames)
	c := lathe.ToolCall{ID: o.OptString("id")}
	if c.ID == "" {
		o.Fail("id", "A call needs an id.")
	}
	typ := o.Get("type")
	o.Skip("function", "index")
	c.Extra = o.Rest()
	if typ != nil && !rawjson.EqualKey(typ, "function") { // the members for its type are in Extra
		r.Refer("type", "Only calls of type function are supported.")
		c.Name = "custom"
		return c
	}
	fn := o.Object("function", callNames)
	c.Name, c.Arguments = fn.String("name"), fn.OptString("arguments")
	c.Extra = appendInner(c.Extra, fn.Rest())
	return c
}

// content parses the content of a message, a string or an array of parts, and appends its parts. Missing content and an empty string give
// no part.
func (r *reader) content(parts []lathe.Part, o wire.Object) []lathe.Part {
	v := o.Get("content")
	switch rawjson.Kind(v) {
	case 0:
		return parts
	case '"':
		if text := rawjson.Text(v); text != "" {
			parts = append(parts, lathe.Text{Text: text})
		}
		return parts
	case '[':
	default:
		o.Fail("content", "Must be a string or an array of parts.")
	}
	for el := range o.Elements("content") {
		parts = append(parts, r.part(el))
	}
	return parts
}

func (r *reader) part(v []byte) lathe.Part {
	o := r.Object("", v, partNames)
	switch o.String("type") {
	case "text":
		return lathe.Text{Text: o.String("text"), Extra: o.Rest()}
	case "refusal":
		text := o.String("refusal")
		o.DropRest()
		return lathe.Refusal{Text: text}
	}
	b, ok := r.blob(v)
	if !ok {
		r.Refer("type", "Content parts of this type are not supported.")
		b.Raw = bytes.Clone(v)
	}
	return b
}

// blob parses a content part that is not text: image_url, input_audio, file, and others that contain a URL in the same way (video_url). Raw
// is set if the part has members for which Blob has no field. ok is false for a part of an unknown type.
func (r *reader) blob(v []byte) (b lathe.Blob, ok bool) {
	o := r.Object("", v, partNames)
	typ := o.String("type")
	switch inner := o.Get(typ); {
	case rawjson.Kind(inner) == '{':
	case typ == "image_url" && rawjson.Kind(inner) == '"': // some clients send the URL directly
		b.Raw = bytes.Clone(v)
		setURL(&b, o, typ)
		return b, true
	default:
		return b, false
	}
	in := o.Object(typ, partNames)
	setURL(&b, in, "url")
	readContent(&b, in, typ)
	if b.URL == "" && b.Data == nil {
		o.Fail(typ, "There is neither an address nor data.")
	}
	if kind, isURL := strings.CutSuffix(typ, "_url"); isURL && b.MediaType == "" && kind != "image" {
		b.MediaType = kind + "/*" // video_url and audio_url, which vLLM and others support
	}
	if !o.IsRead() || !in.IsRead() || partType(&b) != typ || b.URL != "" && b.Data != nil {
		b.Raw = bytes.Clone(v)
	}
	return b, true
}

// readContent parses the inner object of a content part of type typ.
func readContent(b *lathe.Blob, o wire.Object, typ string) {
	switch typ {
	case "image_url":
		b.Detail = o.OptString("detail")
	case "input_audio":
		if format := o.OptString("format"); format != "" {
			b.MediaType = audioMedia(format)
		}
		if text := o.OptString("data"); text != "" {
			var err error
			if b.Data, err = base64.StdEncoding.DecodeString(text); err != nil {
				o.Fail("data", "Must be base64.")
			}
		}
	case "file":
		b.Name = o.OptString("filename")
		setURL(b, o, "file_data")
		if id := o.OptString("file_id"); id != "" {
			b.URL = fileScheme + id
		}
	}
}

// readBlob parses such a part of an answer; ok is false if it is not valid.
func readBlob(v []byte) (b lathe.Blob, ok bool) {
	r := reader{Reader: wire.NewReader(nil)}
	err := r.Try(func() { b, ok = r.blob(v) })
	return b, ok && err == nil
}

// setURL sets the URL of b from a member, or its data if that is a data URL.
func setURL(b *lathe.Blob, o wire.Object, name string) {
	if o.Get(name) == nil {
		return
	}
	url := o.String(name)
	if url == "" {
		o.Fail(name, "Must not be empty.")
	}
	o.SetURL(b, name, url)
}

func audioMedia(format string) string {
	if format == "mp3" {
		return "audio/mpeg"
	}
	return "audio/" + format
}
