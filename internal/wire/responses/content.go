package responses

import (
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

// fileScheme is the prefix of the URL of a Blob that refers to a file stored by OpenAI's servers.
const fileScheme = "openai-file:"

// appendBlob appends an image or a file as a part of the input. own is set if the blob is from this wire, so that Raw may be sent. If the
// wire has no part for b, appendBlob appends nothing and returns false.
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

// sendsBlob reports whether the wire has a part for b. own is set if the blob is from this wire.
func sendsBlob(b *lathe.Blob, own bool) bool {
	if own && len(b.Raw) > 0 {
		return true
	}
	return (wire.Fetchable(b.URL) || strings.HasPrefix(b.URL, fileScheme) || b.Data != nil) && !strings.HasPrefix(b.MediaType, "audio/") && !strings.HasPrefix(b.MediaType, "video/")
}

// HasForm implements [wire.Upstream]. Assistant messages cannot have images and files.
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
