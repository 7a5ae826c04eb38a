package openai

import (
	"encoding/base64"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// appendContent appends the value of content: null if there are calls or a refusal instead of content, a string if there is only text,
// otherwise an array of parts. Several texts of a user remain separate parts. Commentary of an assistant is joined with the other text,
// separated by a blank line. alien is set if the parts are from another wire; members and parts that only that wire defines are then left
// out.
func appendContent(dst wire.JSON, ps []lathe.Part, alien bool) wire.JSON {
	switch formOf(ps, alien) {
	case formNull:
		return dst.Lit("null")
	case formText:
		return appendPlain(dst, ps)
	}
	dst = dst.Lit("[")
	for _, p := range ps {
		switch p := p.(type) {
		case lathe.Text:
			if alien {
				p.Extra = nil
			}
			if p.Text == "" && len(p.Extra) == 0 {
				continue // some servers refuse empty texts
			}
			dst = dst.Next().Lit(`{"type":"text","text":`).Quote(p.Text).Members(p.Extra, knownInText).Lit("}")
		case lathe.Blob:
			if alien {
				if !sendsBlob(&p) {
					continue
				}
				p.Raw = nil
			}
			dst = appendBlob(dst.Next(), &p)
		case lathe.Opaque:
			if !alien {
				dst = dst.Next().Raw(p.JSON)
			}
		default: // other parts have separate members
		}
	}
	return dst.Lit("]")
}

// A contentForm is the form of the value of content.
type contentForm uint8

const (
	formNull contentForm = iota
	formText
	formParts
)

func formOf(ps []lathe.Part, alien bool) contentForm {
	form, hasText, hasOther := formText, false, false
	for _, p := range ps {
		switch p := p.(type) {
		case lathe.Text:
			hasText = true
			if len(p.Extra) > 0 && !alien {
				form = formParts
			}
		case lathe.Blob:
			if !alien || sendsBlob(&p) {
				form = formParts
			}
		case lathe.Opaque:
			if !alien {
				form = formParts
			}
		case lathe.ToolCall, lathe.Refusal:
			hasOther = true
		default: // other parts have separate members
		}
	}
	if form == formText && hasOther && !hasText {
		return formNull
	}
	return form
}

var knownInText = rawjson.NewNames("type", "text").Has

// appendPlain appends the texts joined to one string.
func appendPlain(dst wire.JSON, ps []lathe.Part) wire.JSON {
	seen, commentary := false, false
	return appendJoined(dst, ps, func(p lathe.Part) (string, bool) {
		t, ok := p.(lathe.Text)
		if !ok {
			return "", false
		}
		s := t.Text
		if seen && commentary != t.Commentary {
			s = "\n\n" + s
		}
		seen, commentary = true, t.Commentary
		return s, true
	})
}

// fileScheme is the prefix of the URL of a Blob that refers to a file stored by the server.
const fileScheme = "openai-file:"

func appendBlob(dst wire.JSON, b *lathe.Blob) wire.JSON {
	if len(b.Raw) > 0 {
		return dst.Raw(b.Raw)
	}
	switch partType(b) {
	case "input_audio":
		dst = dst.Lit(`{"type":"input_audio","input_audio":{"data":"`)
		dst = base64.StdEncoding.AppendEncode(dst, b.Data)
		dst = dst.Lit(`"`).Str("format", audioFormat(b.MediaType))
	case "file":
		dst = dst.Lit(`{"type":"file","file":{`).OptStr("filename", b.Name)
		if id, ok := strings.CutPrefix(b.URL, fileScheme); ok {
			dst = dst.Str("file_id", id)
		} else {
			dst = wire.AppendURL(dst.Key("file_data"), b)
		}
	default:
		dst = dst.Lit(`{"type":"image_url","image_url":{"url":`)
		dst = wire.AppendURL(dst, b)
		dst = dst.OptStr("detail", b.Detail)
	}
	return dst.Lit("}}")
}

// partType returns the type of the content part as which b is sent.
func partType(b *lathe.Blob) string {
	switch {
	case strings.HasPrefix(b.URL, fileScheme):
		return "file"
	case b.URL != "" || strings.HasPrefix(b.MediaType, "image/"):
		return "image_url"
	case strings.HasPrefix(b.MediaType, "audio/"):
		return "input_audio"
	default:
		return "file"
	}
}

func audioFormat(media string) string {
	switch format := strings.TrimPrefix(media, "audio/"); format {
	case "mpeg":
		return "mp3"
	case "x-wav", "wave", "vnd.wave":
		return "wav"
	default:
		return format
	}
}
