package messages

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/destination"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// readBlock parses a content block of a message with the role. A block of an unknown type becomes a [lathe.Opaque].
func (r *reader) readBlock(v []byte, role lathe.Role) lathe.Part {
	o := r.Object("", v, blockNames)
	switch typ := o.String("type"); typ {
	case "text":
		return lathe.Text{Text: o.String("text"), Extra: o.Rest()}
	case "tool_use":
		if role != lathe.RoleAssistant {
			o.Fail("type", "Only a message of the assistant has calls.")
		}
		return r.readCall(o)
	case "tool_result":
		return r.readResult(o)
	case "thinking", "redacted_thinking":
		if role != lathe.RoleAssistant {
			o.Fail("type", "Only a message of the assistant has thinking.")
		}
		return readReasoning(o, typ)
	case "image", "document":
		return r.readBlob(v, typ)
	case "tool_addition", "tool_removal":
		if role == lathe.RoleSystem {
			r.changeTools(typ, o.Get("tool"))
		}
	}
	return lathe.Opaque{JSON: bytes.Clone(v)}
}

func readReasoning(o wire.Object, typ string) lathe.Part {
	p := lathe.Reasoning{Field: typ}
	if typ == fieldRedacted {
		p.Data = o.String("data")
	} else {
		p.Text, p.Data = o.String("thinking"), o.OptString("signature")
	}
	o.DropRest()
	return p
}

func (r *reader) readCall(o wire.Object) lathe.Part {
	c := lathe.ToolCall{ID: o.String("id")}
	if c.ID == "" {
		o.Fail("id", "A call needs an id.")
	}
	name := o.String("name")
	if name == "" {
		o.Fail("name", "A call needs the name of its tool.")
	}
	c.Name = r.toolName(name)
	switch input := o.Get("input"); {
	case input == nil, string(input) == `""`:
		c.Arguments = "{}"
	default:
		c.Arguments = string(o.RawObject("input"))
	}
	c.Extra = o.Rest()
	return c
}

// readResult parses a tool_result. If its content is more than one text and blobs, the JSON of the content is stored in Extra in addition
// to its text: see resultContent.
func (r *reader) readResult(o wire.Object) lathe.Part {
	res := lathe.ToolResult{CallID: o.String("tool_use_id"), IsError: o.Bool("is_error")}
	if res.IsError {
		res.Code = lathe.CodeExecutionFailed
	}
	content := o.Get("content")
	res.Extra = o.Rest()
	switch rawjson.Kind(content) {
	case 0:
		return res
	case '"':
		res.Content = rawjson.Text(content)
		return res
	case '[':
	default:
		o.Fail("content", "Must be a string or an array of blocks.")
	}
	for el := range o.Elements("content") {
		block := r.Object("", el, blockNames)
		switch typ := block.String("type"); typ {
		case "":
			block.Fail("type", "Must be a string.")
		case "text":
			block.String("text")
		case "image", "document":
			r.readBlob(el, typ)
		}
	}
	var plain bool
	res.Content, res.Blobs, plain = resultContent(content)
	if !plain {
		res.Extra = append(res.Extra, lathe.Member{Name: "content", Value: bytes.Clone(content)})
	}
	return res
}

// resultContent converts the blocks of a result to one text and blobs. plain is false if that loses information: the order or number of the
// blocks, unknown members, or blocks that are neither text nor blob.
func resultContent(blocks []byte) (content string, blobs []lathe.Blob, plain bool) {
	var texts []string
	plain = true
	for el := range rawjson.Elements(blocks) {
		typ := text(el, "type")
		switch typ {
		case "text":
			texts = append(texts, text(el, "text"))
			isFirst := len(texts) == 1 && len(blobs) == 0
			plain = plain && isFirst && texts[0] != "" && len(wire.OtherMembers(el, "type", "text")) == 0
			continue
		case "image", "document":
			if b, ok := blobOf(el, typ); ok {
				blobs = append(blobs, b)
				continue
			}
		case "tool_reference":
			texts = append(texts, "Loaded tool: "+text(el, "tool_name"))
		case "search_result":
			texts = append(texts, searchText(el))
		}
		plain = false
	}
	return strings.Join(texts, "\n"), blobs, plain
}

// searchText returns the title, the source and the texts of a search_result, one per line.
func searchText(block []byte) string {
	lines := []string{text(block, "title"), text(block, "source")}
	for el := range rawjson.Elements(get(block, "content")) {
		lines = append(lines, text(el, "text"))
	}
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool { return line == "" }), "\n")
}

// readBlob parses an image or a document. The JSON of the block is stored in Raw if it has members for which [lathe.Blob] has no field. A
// block whose source is neither data nor a URL, such as a file stored by the vendor, becomes a [lathe.Opaque].
func (r *reader) readBlob(v []byte, typ string) lathe.Part {
	o := r.Object("", v, blockNames)
	source := o.Object("source", sourceNames)
	b := lathe.Blob{}
	o.Skip("type")
	if typ == "document" {
		b.Name = rawjson.Text(o.Get("title"))
	}
	switch rawjson.Text(source.Get("type")) {
	case "base64":
		var err error
		b.Data, err = base64.StdEncoding.DecodeString(source.String("data"))
		if err != nil {
			source.Fail("data", "Must be base64.")
		}
		b.MediaType = source.String("media_type")
	case "text":
		b.Data, b.MediaType = []byte(source.String("data")), "text/plain"
		source.Skip("media_type")
	case "url":
		b.URL = source.String("url")
		if typ == "document" {
			b.MediaType = "application/pdf"
		}
	default:
		return lathe.Opaque{JSON: bytes.Clone(v)}
	}
	if len(b.Data) == 0 && b.URL == "" {
		o.Fail("source", "The source is empty.")
	}
	if !o.IsRead() || !source.IsRead() || blockType(&b) != typ {
		b.Raw = bytes.Clone(v)
	}
	return b
}

// blobOf parses an image or a document in a result; ok is false if it cannot be a [lathe.Blob].
func blobOf(v []byte, typ string) (b lathe.Blob, ok bool) {
	r := reader{Reader: wire.NewReader(nil)}
	_ = r.Try(func() { b, ok = r.readBlob(v, typ).(lathe.Blob) })
	return b, ok
}

// blockType returns the type of the block as which b is sent, or "" if this wire has none.
func blockType(b *lathe.Blob) string {
	media, _, _ := strings.Cut(b.MediaType, ";")
	switch {
	case strings.HasPrefix(media, "image/"), media == "" && b.URL != "":
		return "image"
	case media == "application/pdf":
		return "document"
	}
	if _, ok := destination.Text(b); ok {
		return "document"
	}
	return ""
}
