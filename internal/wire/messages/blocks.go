package messages

import (
	"bytes"
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/destination"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// readBlock parses one block of a message of the role. A block of an unknown type becomes a [lathe.Opaque]. As with
// readMessage, the paths of members begin at the block.
func (r *reader) readBlock(v []byte, role lathe.Role) (lathe.Part, *wire.APIError) {
	if err := wire.NeedObject(v, ""); err != nil {
		return nil, err
	}
	var few wire.FewFields
	o, err := wire.ReadObject(few[:0], r.index, v, blockNames)
	if err != nil {
		return nil, err
	}
	typ, err := wire.ParseString(o.Get("type"), ".type")
	if err != nil {
		return nil, err
	}
	assistant := role == lathe.RoleAssistant
	switch typ {
	case "text":
		s, err := wire.ParseString(o.Get("text"), ".text")
		return lathe.Text{Text: s, Extra: o.Others("type", "text")}, err
	case "tool_use":
		if !assistant {
			return nil, wire.BadRequest(".type", "Only a message of the assistant has calls.")
		}
		return r.readCall(o)
	case "tool_result":
		return r.readResult(o)
	case "thinking", "redacted_thinking":
		if !assistant {
			return nil, wire.BadRequest(".type", "Only a message of the assistant has thinking.")
		}
		return r.readReasoning(o, typ)
	case "image", "document":
		return readBlob(v, "", typ)
	case "tool_addition", "tool_removal":
		if role == lathe.RoleSystem {
			if err := r.changeTools(typ, get(v, "tool")); err != nil {
				return nil, wire.Within(".tool", err)
			}
		}
	}
	return lathe.Opaque{JSON: bytes.Clone(v)}, nil
}

func (r *reader) readReasoning(o wire.Object, typ string) (lathe.Part, *wire.APIError) {
	p := lathe.Reasoning{Field: typ}
	var err *wire.APIError
	if typ == fieldRedacted {
		r.DropMembers("", o.Others("type", "data"))
		p.Data, err = wire.ParseString(o.Get("data"), ".data")
		return p, err
	}
	r.DropMembers("", o.Others("type", "thinking", "signature"))
	if p.Text, err = wire.ParseString(o.Get("thinking"), ".thinking"); err != nil {
		return nil, err
	}
	if s := o.Get("signature"); s != nil {
		p.Data, err = wire.ParseString(s, ".signature")
	}
	return p, err
}

func (r *reader) readCall(o wire.Object) (lathe.Part, *wire.APIError) {
	c := lathe.ToolCall{Extra: o.Others("type", "id", "name", "input")}
	var err *wire.APIError
	if c.ID, err = wire.ParseString(o.Get("id"), ".id"); err != nil {
		return nil, err
	}
	if c.ID == "" {
		return nil, wire.BadRequest(".id", "A call needs an id.")
	}
	name, err := wire.ParseString(o.Get("name"), ".name")
	if err != nil {
		return nil, err
	}
	if name == "" {
		return nil, wire.BadRequest(".name", "A call needs the name of its tool.")
	}
	c.Name = r.toolName(name)
	switch input := o.Get("input"); {
	case input == nil, string(input) == `""`:
		c.Arguments = "{}"
	case wire.Kind(input) == '{':
		c.Arguments = string(input)
	default:
		return nil, wire.BadRequest(".input", "Must be an object.")
	}
	return c, nil
}

// readResult parses a tool_result. If its content is not only one text and blobs, the raw content is kept in addition to its text:
// see resultContent.
func (r *reader) readResult(o wire.Object) (lathe.Part, *wire.APIError) {
	res := lathe.ToolResult{Extra: o.Others("type", "tool_use_id", "content", "is_error")}
	var err *wire.APIError
	if res.CallID, err = wire.ParseString(o.Get("tool_use_id"), ".tool_use_id"); err != nil {
		return nil, err
	}
	if flag := o.Get("is_error"); flag != nil {
		if res.IsError, err = wire.ParseBool(flag, ".is_error"); err != nil {
			return nil, err
		}
	}
	if res.IsError {
		res.Code = lathe.CodeExecutionFailed
	}
	content := o.Get("content")
	switch wire.Kind(content) {
	case 0:
		return res, nil
	case '"':
		res.Content = unquoted(content)
		return res, nil
	case '[':
	default:
		return nil, wire.BadRequest(".content", "Must be a string or an array of blocks.")
	}
	i := 0
	for el := range r.index.Elements(content) {
		inner := ".content[" + strconv.Itoa(i) + "]"
		i++
		if err := wire.CheckObject(el, blockNames, inner); err != nil {
			return nil, err
		}
		switch typ := text(el, "type"); typ {
		case "":
			return nil, wire.BadRequest(inner+".type", "Must be a string.")
		case "text":
			if _, err := wire.ParseString(r.get(el, "text"), inner+".text"); err != nil {
				return nil, err
			}
		case "image", "document":
			if _, err := readBlob(el, inner, typ); err != nil {
				return nil, err
			}
		}
	}
	var plain bool
	if res.Content, res.Blobs, plain = resultContent(content); !plain {
		res.Extra = append(res.Extra, lathe.Member{Name: "content", Value: bytes.Clone(content)})
	}
	return res, nil
}

// resultContent converts the blocks of a result to one text and blobs. plain is false if the conversion loses information: the
// order or the number of the blocks, unknown members, or blocks that are neither text nor blob.
func resultContent(blocks []byte) (content string, blobs []lathe.Blob, plain bool) {
	var texts []string
	plain = true
	for el := range rawjson.Elements(blocks) {
		typ := text(el, "type")
		switch typ {
		case "text":
			texts = append(texts, text(el, "text"))
			plain = plain && len(texts) == 1 && len(blobs) == 0 && texts[0] != "" && len(members(el, "type", "text")) == 0
			continue
		case "image", "document":
			if p, err := readBlob(el, "", typ); err == nil {
				if b, ok := p.(lathe.Blob); ok {
					blobs = append(blobs, b)
					continue
				}
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

// searchText returns the text of a search_result.
func searchText(block []byte) string {
	lines := []string{text(block, "title"), text(block, "source")}
	for el := range rawjson.Elements(get(block, "content")) {
		lines = append(lines, text(el, "text"))
	}
	var b strings.Builder
	for _, line := range lines {
		if line != "" {
			if b.Len() > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(line)
		}
	}
	return b.String()
}

// readBlob parses an image or a document. The raw block is kept if it has members that [lathe.Blob] has no field for. A block whose
// source is neither data nor a URL, such as a file stored by the vendor's server, becomes a [lathe.Opaque].
func readBlob(v []byte, at, typ string) (lathe.Part, *wire.APIError) {
	source := get(v, "source")
	if err := wire.CheckObject(source, sourceNames, at+".source"); err != nil {
		return nil, err
	}
	b := lathe.Blob{}
	known := []string{"type", "source"}
	if typ == "document" {
		b.Name = text(v, "title")
		known = append(known, "title")
	}
	plain := len(members(v, known...)) == 0
	var err *wire.APIError
	switch text(source, "type") {
	case "base64":
		data, err := wire.ParseString(get(source, "data"), at+".source.data")
		if err != nil {
			return nil, err
		}
		var bad error
		if b.Data, bad = base64.StdEncoding.DecodeString(data); bad != nil {
			return nil, wire.BadRequest(at+".source.data", "Must be base64.")
		}
		if b.MediaType, err = wire.ParseString(get(source, "media_type"), at+".source.media_type"); err != nil {
			return nil, err
		}
		plain = plain && len(members(source, "type", "data", "media_type")) == 0
	case "text":
		data, err := wire.ParseString(get(source, "data"), at+".source.data")
		if err != nil {
			return nil, err
		}
		b.Data, b.MediaType = []byte(data), "text/plain"
		plain = plain && len(members(source, "type", "data", "media_type")) == 0
	case "url":
		if b.URL, err = wire.ParseString(get(source, "url"), at+".source.url"); err != nil {
			return nil, err
		}
		if typ == "document" {
			b.MediaType = "application/pdf"
		}
		plain = plain && len(members(source, "type", "url")) == 0
	default:
		return lathe.Opaque{JSON: bytes.Clone(v)}, nil
	}
	if len(b.Data) == 0 && b.URL == "" {
		return nil, wire.BadRequest(at+".source", "The source is empty.")
	}
	if !plain || blockType(&b) != typ {
		b.Raw = bytes.Clone(v)
	}
	return b, nil
}

// blockType returns the type of the block that b is sent as; "" if this wire has none.
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
