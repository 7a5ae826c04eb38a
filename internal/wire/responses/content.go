package responses

import (
	"bytes"
	"encoding/base64"
	"path"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// fileScheme is the scheme of the URL of a Blob that refers to a file stored by OpenAI's servers.
const fileScheme = "openai-file:"

// Media types of blobs whose type is not known.
const (
	anyImage = "image/*"
	anyFile  = "application/octet-stream"
)

// parseContent parses a string or an array of parts. It omits empty texts. A part of an unknown type becomes a [lathe.Opaque].
func (r *reader) parseContent(v []byte, at string) ([]lathe.Part, *wire.APIError) {
	switch wire.Kind(v) {
	case '"':
		return textParts(rawjson.Text(v)), nil
	case '[':
	default:
		return nil, wire.BadRequest(at, "Must be a string or an array of parts.")
	}
	var parts []lathe.Part
	i := 0
	for el := range r.index.Elements(v) {
		p, err := r.parsePart(el)
		if err != nil {
			return nil, wire.Within(wire.Element(at, i), err)
		}
		if p != nil {
			parts = append(parts, p)
		}
		i++
	}
	return parts, nil
}

// parsePart parses one part. It returns nil for an empty text. The paths of its errors begin at the part.
func (r *reader) parsePart(v []byte) (lathe.Part, *wire.APIError) {
	if err := wire.NeedObject(v, ""); err != nil {
		return nil, err
	}
	var few wire.FewFields
	o, err := wire.ReadObject(few[:0], r.index, v, partNames)
	if err != nil {
		return nil, err
	}
	typ, err := wire.ParseString(o.Get("type"), ".type")
	if err != nil {
		return nil, err
	}
	switch typ {
	case "input_text", "output_text", "text":
		s, err := wire.ParseString(o.Get("text"), ".text")
		if err != nil {
			return nil, err
		}
		t := lathe.Text{Text: s, Extra: partExtra(o)}
		if s == "" && len(t.Extra) == 0 {
			return nil, nil
		}
		return t, nil
	case "refusal":
		s, err := wire.ParseString(o.Get("refusal"), ".refusal")
		if err != nil || s == "" {
			return nil, err
		}
		return lathe.Refusal{Text: s}, nil
	case "input_image":
		return parseImage(v, "")
	case "input_file":
		return parseFile(v, "")
	}
	return lathe.Opaque{JSON: bytes.Clone(v)}, nil
}

// partExtra returns the unknown members of a part with text. It omits empty lists of annotations, and log probabilities, which
// have no meaning in a request.
func partExtra(o wire.Object) (extra []lathe.Member) {
	for _, m := range o.Others("type", "text", "logprobs") {
		if m.Name != "annotations" || !wire.EmptyArray(m.Value) {
			extra = append(extra, m)
		}
	}
	return extra
}

func parseImage(v []byte, at string) (lathe.Part, *wire.APIError) {
	var b lathe.Blob
	url, err := source(v, at, "image_url", "file_id")
	if err != nil {
		return nil, err
	}
	if err := wire.SetURL(&b, url, at+".image_url"); err != nil {
		return nil, err
	}
	if raw := get(v, "detail"); raw != nil {
		if b.Detail, err = wire.ParseString(raw, at+".detail"); err != nil {
			return nil, err
		}
	}
	if strings.HasPrefix(b.URL, fileScheme) {
		b.MediaType = anyImage
	}
	if len(members(v, "type", "image_url", "file_id", "detail")) > 0 || b.Data != nil && !strings.HasPrefix(b.MediaType, "image/") {
		b.Raw = bytes.Clone(v)
	}
	return b, nil
}

func parseFile(v []byte, at string) (lathe.Part, *wire.APIError) {
	var b lathe.Blob
	url, err := source(v, at, "file_data", "file_url", "file_id")
	if err != nil {
		return nil, err
	}
	if raw := get(v, "filename"); raw != nil {
		if b.Name, err = wire.ParseString(raw, at+".filename"); err != nil {
			return nil, err
		}
	}
	if get(v, "file_data") != nil && !strings.HasPrefix(url, "data:") { // some clients send base64 alone
		data, bad := base64.StdEncoding.DecodeString(url)
		if bad != nil {
			return nil, wire.BadRequest(at+".file_data", "Must be a data URL or base64.")
		}
		b.Data, b.MediaType = data, mediaOf(b.Name)
	} else if err := wire.SetURL(&b, url, at+".file_url"); err != nil {
		return nil, err
	}
	if b.MediaType == "" {
		b.MediaType = mediaOf(strings.TrimPrefix(b.URL, fileScheme))
	}
	if len(members(v, "type", "file_data", "file_url", "file_id", "filename")) > 0 || strings.HasPrefix(b.MediaType, "image/") {
		b.Raw = bytes.Clone(v)
	}
	return b, nil
}

// mediaOf returns the media type for the extension of a file name.
func mediaOf(name string) string {
	name, _, _ = strings.Cut(name, "?")
	switch ext := strings.ToLower(path.Ext(name)); ext {
	case ".pdf", ".json", ".xml":
		return "application/" + ext[1:]
	case ".html", ".csv":
		return "text/" + ext[1:]
	case ".txt", ".md":
		return "text/plain"
	}
	return anyFile
}

// source returns the address of a part: the value of the first of the members names that is present.
func source(v []byte, at string, names ...string) (string, *wire.APIError) {
	for _, name := range names {
		raw := get(v, name)
		if raw == nil {
			continue
		}
		s, err := wire.ParseString(raw, at+"."+name)
		if err == nil && s == "" {
			err = wire.BadRequest(at+"."+name, "Must not be empty.")
		}
		if name == "file_id" {
			s = fileScheme + s
		}
		return s, err
	}
	return "", wire.BadRequest(at, "There is neither an address nor data.")
}

// readOutput reads the output of a call: a string, or an array of parts.
func (r *reader) readOutput(res *lathe.ToolResult, v []byte, at string) *wire.APIError {
	if v == nil {
		return nil
	}
	parts, err := r.parseContent(v, at)
	if err != nil {
		return err
	}
	var texts []string
	for _, p := range parts {
		switch p := p.(type) {
		case lathe.Text:
			texts = append(texts, p.Text)
			res.Extra = append(res.Extra, p.Extra...)
		case lathe.Refusal:
			texts = append(texts, p.Text)
		case lathe.Blob:
			res.Blobs = append(res.Blobs, p)
		case lathe.Opaque:
			res.Blobs = append(res.Blobs, lathe.Blob{Raw: p.JSON})
		case lathe.Reasoning, lathe.ToolCall, lathe.ToolResult: // no content
		}
	}
	res.Content = strings.Join(texts, "\n")
	return nil
}

// appendBlob appends an image or a file as a part of the input. own is whether Raw was received on this wire. If the wire has no
// part for b, appendBlob appends nothing and returns false.
func appendBlob(dst wire.JSON, b *lathe.Blob, own bool) (wire.JSON, bool) {
	if !sendsBlob(b, own) {
		return dst, false
	}
	id, kept := strings.CutPrefix(b.URL, fileScheme)
	image := strings.HasPrefix(b.MediaType, "image/") || b.MediaType == "" && b.URL != "" && !kept
	switch {
	case own && len(b.Raw) > 0:
		return dst.Next().Raw(b.Raw), true
	case image:
		dst = dst.Next().Lit(`{"type":"input_image"`)
		if kept {
			dst = dst.Str("file_id", id)
		} else {
			dst = wire.AppendURL(dst.Key("image_url"), b)
		}
		dst = dst.OptStr("detail", b.Detail)
	default:
		dst = dst.Next().Lit(`{"type":"input_file"`).OptStr("filename", b.Name)
		switch {
		case kept:
			dst = dst.Str("file_id", id)
		case b.URL != "":
			dst = dst.Str("file_url", b.URL)
		default:
			dst = wire.AppendURL(dst.Key("file_data"), b)
		}
	}
	return dst.Lit("}"), true
}

// sendsBlob reports whether the wire has a form for b. own says that b was read from this wire.
func sendsBlob(b *lathe.Blob, own bool) bool {
	if own && len(b.Raw) > 0 {
		return true
	}
	return (wire.Fetchable(b.URL) || strings.HasPrefix(b.URL, fileScheme) || b.Data != nil) && !strings.HasPrefix(b.MediaType, "audio/") && !strings.HasPrefix(b.MediaType, "video/")
}

// HasForm implements [wire.Upstream]. Answers have no images and files.
func (Codec) HasForm(m *lathe.Message, p lathe.Part) bool {
	switch p := p.(type) {
	case lathe.Blob:
		return m.Role != lathe.RoleAssistant && sendsBlob(&p, own(m))
	case lathe.Opaque:
		return own(m)
	case lathe.Text, lathe.Reasoning, lathe.Refusal, lathe.ToolCall, lathe.ToolResult:
	}
	return true
}
