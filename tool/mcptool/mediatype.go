package mcptool

import (
	"bytes"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"
)

// svgHead is how far into a drawing its first element is looked for.
const svgHead = 1 << 10

const octets = "application/octet-stream"

// mediaTypeOf is the media type of bytes that a server has sent. What it says of them is believed as
// far as their first bytes do not say otherwise: a page is no image, and an image is one of its kind.
func mediaTypeOf(declared string, data []byte) string {
	kind, _, err := mime.ParseMediaType(declared)
	if err != nil {
		kind = ""
	}
	seen, _, _ := strings.Cut(http.DetectContentType(data), ";")
	major, _, _ := strings.Cut(kind, "/")
	seenMajor, _, _ := strings.Cut(seen, "/")
	text := utf8.Valid(data) && !strings.Contains(string(data), "\x00")
	switch {
	case kind == "":
		return seen
	case kind == "image/svg+xml":
		// It may hold scripts: a client shows it as text, or in a sandbox.
		switch head := data[:min(len(data), svgHead)]; {
		case !text:
			return octets
		case seen == "text/html" || !bytes.Contains(head, []byte("<svg")):
			return "text/xml"
		}
	case major == "image":
		if seenMajor == "image" {
			return seen
		}
		if knownImages[kind] || seen != octets {
			return octets
		}
	case major == "text":
		if !text {
			return octets
		}
	case major == "audio" || major == "video":
		if seenMajor == "text" || seenMajor == "image" || seen == "application/pdf" || seen == "application/zip" {
			return octets
		}
	case kind == "application/pdf":
		if seen != kind {
			return octets
		}
	}
	return kind
}

// knownImages are the kinds that first bytes tell: one that they do not tell is none of these.
var knownImages = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true, "image/bmp": true}
