package responses

import (
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

// fileScheme is the prefix of the URL of a Blob that refers to a file stored by OpenAI's servers.
const fileScheme = "openai-file:"

// appendBlob appends an image or a file of a message from the wire from as a part of the input. Raw is sent only if that is this wire. If the
// wire has no part for b, appendBlob appends nothing and returns false.
func appendBlob(dst wire.JSON, b *lathe.Blob, from lathe.Wire) (wire.JSON, bool) {
	if !sendsBlob(b, from) {
		return dst, false
	}
	id, stored := strings.CutPrefix(b.URL, fileScheme)
	isImage := strings.HasPrefix(b.MediaType, "image/") || b.MediaType == "" && b.URL != "" && !stored
	switch {
	case own(from) && len(b.Raw) > 0:
		return dst.Next().Raw(b.Raw), true
	case isImage:
		dst = dst.Next().Lit(`{"type":"input_image"`)
		if stored {
			dst = dst.Str("file_id", id)
		} else {
			dst = wire.AppendURL(dst.Key("image_url"), b)
		}
		dst = dst.OptStr("detail", b.Detail)
	default:
		dst = dst.Next().Lit(`{"type":"input_file"`).OptStr("filename", b.Name)
		switch {
		case stored:
			dst = dst.Str("file_id", id)
		case b.URL != "":
			dst = dst.Str("file_url", b.URL)
		default:
			dst = wire.AppendURL(dst.Key("file_data"), b)
		}
	}
	return dst.Lit("}"), true
}

// sendsBlob reports whether the wire has a part for a blob of a message from the wire from.
func sendsBlob(b *lathe.Blob, from lathe.Wire) bool {
	if own(from) && len(b.Raw) > 0 {
		return true
	}
	if strings.HasPrefix(b.MediaType, "audio/") || strings.HasPrefix(b.MediaType, "video/") {
		return false
	}
	return wire.Fetchable(b.URL) || strings.HasPrefix(b.URL, fileScheme) || b.Data != nil
}

// HasForm implements [wire.Upstream]. Assistant messages cannot have images and files.
func (Codec) HasForm(m *lathe.Message, p lathe.Part) bool {
	switch p := p.(type) {
	case lathe.Blob:
		return m.Role != lathe.RoleAssistant && sendsBlob(&p, m.Wire)
	case lathe.Opaque:
		return own(m.Wire)
	case lathe.Text, lathe.Reasoning, lathe.Refusal, lathe.ToolCall, lathe.ToolResult:
	}
	return true
}
