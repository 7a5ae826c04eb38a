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

// Media types of blobs whose exact type is not known.
const (
	anyImage = "image/*"
	anyFile  = "application/octet-stream"
)

// readContent parses a member that is a string or an array of parts. Empty texts are omitted. A part of an unknown type becomes a
// [lathe.Opaque].
func (r *reader) readContent(o wire.Object, name string) (parts []lathe.Part) {
	switch v := o.Get(name); rawjson.Kind(v) {
	case '"':
		return textParts(rawjson.Text(v))
	case '[':
	default:
		o.Fail(name, "Must be a string or an array of parts.")
	}
	for el := range o.Elements(name) {
		if p := r.readPart(el); p != nil {
			parts = append(parts, p)
		}
	}
	return parts
}

func textParts(s string) []lathe.Part {
	if s == "" {
		return nil
	}
	return []lathe.Part{lathe.Text{Text: s}}
}

// readPart parses one part. It returns nil for an empty text. Empty lists of annotations, and log probabilities, are omitted because they
// have no meaning in a request.
func (r *reader) readPart(v []byte) lathe.Part {
	o := r.Object("", v, partNames)
	switch o.String("type") {
	case "input_text", "output_text", "text":
		t := lathe.Text{Text: o.String("text")}
		o.Skip("logprobs")
		for name, v := range o.Unread() {
			if name != "annotations" || !wire.EmptyArray(v) {
				t.Extra = append(t.Extra, lathe.Member{Name: name, Value: bytes.Clone(v)})
			}
		}
		if t.Text == "" && len(t.Extra) == 0 {
			return nil
		}
		return t
	case "refusal":
		s := o.String("refusal")
		if s == "" {
			return nil
		}
		return lathe.Refusal{Text: s}
	case "input_image":
		return readImage(o, v)
	case "input_file":
		return readFile(o, v)
	}
	return lathe.Opaque{JSON: bytes.Clone(v)}
}

// readImage parses an image part. Raw is set to raw if the image has members for which [lathe.Blob] has no field.
func readImage(o wire.Object, raw []byte) (b lathe.Blob) {
	o.SetURL(&b, "image_url", readSource(o, "image_url", "file_id"))
	b.Detail = o.OptString("detail")
	if strings.HasPrefix(b.URL, fileScheme) {
		b.MediaType = anyImage
	}
	o.Skip("type", "image_url", "file_id")
	if !o.IsRead() || b.Data != nil && !strings.HasPrefix(b.MediaType, "image/") {
		b.Raw = bytes.Clone(raw)
	}
	return b
}

// readFile parses a file part, and sets Raw as readImage does.
func readFile(o wire.Object, raw []byte) (b lathe.Blob) {
	url := readSource(o, "file_data", "file_url", "file_id")
	b.Name = o.OptString("filename")
	if o.Get("file_data") != nil && !strings.HasPrefix(url, "data:") { // some clients send base64 without a data URL
		var err error
		if b.Data, err = base64.StdEncoding.DecodeString(url); err != nil {
			o.Fail("file_data", "Must be a data URL or base64.")
		}
		b.MediaType = mediaOf(b.Name)
	} else {
		o.SetURL(&b, "file_url", url)
	}
	if b.MediaType == "" {
		b.MediaType = mediaOf(strings.TrimPrefix(b.URL, fileScheme))
	}
	o.Skip("type", "file_url", "file_id")
	if !o.IsRead() || strings.HasPrefix(b.MediaType, "image/") {
		b.Raw = bytes.Clone(raw)
	}
	return b
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

// readSource returns the source of a part: the value of the first member in names that is present. A file_id is returned with fileScheme.
func readSource(o wire.Object, names ...string) string {
	for _, name := range names {
		if o.Get(name) == nil {
			continue
		}
		s := o.String(name)
		if s == "" {
			o.Fail(name, "Must not be empty.")
		}
		if name == "file_id" {
			s = fileScheme + s
		}
		return s
	}
	o.Fail("", "There is neither an address nor data.")
	return ""
}

// readOutput reads the output of a call, which is a string or an array of parts.
func (r *reader) readOutput(res *lathe.ToolResult, o wire.Object) {
	if o.Get("output") == nil {
		return
	}
	var texts []string
	for _, p := range r.readContent(o, "output") {
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
		case lathe.Reasoning, lathe.ToolCall, lathe.ToolResult: // cannot be content
		}
	}
	res.Content = strings.Join(texts, "\n")
}
