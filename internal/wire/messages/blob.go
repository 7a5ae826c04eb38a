package messages

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

// blob appends an image or a document.
func (e *encoder) blob(dst []byte, from lathe.Wire, b *lathe.Blob, at place) []byte {
	if len(b.Raw) > 0 && from == lathe.WireMessages {
		return append(appendComma(dst), b.Raw...)
	}
	typ := blockType(b)
	if typ == "" || b.URL != "" && !strings.HasPrefix(b.URL, "http:") && !strings.HasPrefix(b.URL, "https:") && !strings.HasPrefix(b.URL, "data:") {
		e.dropAt(at, "")
		return dst
	}
	if b.Detail != "" && b.Detail != "auto" {
		e.dropAt(at, ".detail")
	}
	dst = append(append(append(appendComma(dst), `{"type":"`...), typ...), `","source":{`...)
	switch {
	case b.URL != "":
		dst = wire.AppendText(append(dst, `"type":"url"`...), "url", b.URL)
	case strings.HasPrefix(b.MediaType, "text/") && utf8.Valid(b.Data):
		dst = wire.AppendText(append(dst, `"type":"text","media_type":"text/plain"`...), "data", string(b.Data))
	default:
		media := b.MediaType
		if media == "image/jpg" {
			media = "image/jpeg" // the only name that the API takes
		}
		dst = wire.AppendText(append(dst, `"type":"base64"`...), "media_type", media)
		dst = append(wire.AppendKey(dst, "data"), '"')
		dst = append(base64.StdEncoding.AppendEncode(dst, b.Data), '"')
	}
	dst = append(dst, '}')
	if b.Name != "" && typ == "document" {
		dst = wire.AppendText(dst, "title", b.Name)
	}
	return append(dst, '}')
}
