package mcptool

import (
	"bytes"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"
)

// svgHead is the length of the beginning of an SVG file in which its first element is searched for, in bytes.
const svgHead = 1 << 10

const octets = "application/octet-stream"

// mediaTypeOf returns the media type of data from a server. It returns the declared type unless the first bytes contradict it: HTML is not
// an image, and an image has the type of its bytes.
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
		// SVG may contain scripts: clients must show it as text, or in a sandbox.
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

// knownImages are the image types that [http.DetectContentType] detects: data that is not detected has none of them.
var knownImages = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true, "image/bmp": true}
