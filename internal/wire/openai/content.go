package openai

import (
	"encoding/base64"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

// appendContent appends the value of content: null where that is allowed and there is nothing, a
// string for text alone, else an array of parts. A user's text in several parts stays several;
// an assistant's commentary is text like the rest, with a blank line where it ends. alien says that the parts were
// read from another wire: what that wire knows and this one does not is left out.
func appendContent(dst wire.JSON, ps []lathe.Part, nullable, alien bool) wire.JSON {
	texts, blobs, extra := 0, 0, false
	for _, p := range ps {
		switch p := p.(type) {
		case lathe.Text:
			texts++
			extra = extra || len(p.Extra) > 0 && !alien
		case lathe.Blob:
			if !alien || sendsBlob(&p) {
				blobs++
			}
		case lathe.Opaque:
			if !alien {
				blobs++
			}
		default: // members of their own
		}
	}
	switch {
	case texts+blobs == 0 && nullable:
		return dst.Lit("null")
	case blobs == 0 && !extra:
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
				continue // refused by some servers
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
		default: // members of their own
		}
	}
	return dst.Lit("]")
}

func knownInText(name string) bool { return name == "type" || name == "text" }

// appendPlain appends the text parts as one string.
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

// fileScheme begins the URL of a Blob that names a file which the server keeps.
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

// partType returns the type of content part that b is sent as.
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
