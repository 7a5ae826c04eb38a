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

const (
	octets = "application/octet-stream"
	svg    = "image/svg+xml"
)

// mediaTypeOf returns the media type of data from a server. It returns the declared type unless the first bytes contradict it: HTML is not
// an image, and an image has the type of its bytes.
func mediaTypeOf(declared string, data []byte) string {
	kind, _, err := mime.ParseMediaType(declared)
	if err != nil {
		kind = ""
	}
	seen, _, _ := strings.Cut(http.DetectContentType(data), ";")
	major, _, _ := strings.Cut(kind, "/")
	text := utf8.Valid(data) && !strings.Contains(string(data), "\x00")
	hasSVG := seen != "text/html" && bytes.Contains(data[:min(len(data), svgHead)], []byte("<svg"))
	switch {
	case kind == "":
		return seen
	case kind == svg && text && !hasSVG:
		return "text/xml"
	case major == "image" && kind != svg && strings.HasPrefix(seen, "image/"):
		return seen
	case contradicts(kind, seen, text):
		return octets
	}
	return kind // SVG may contain scripts: clients must show it as text, or in a sandbox
}

// contradicts reports whether data that was detected as seen cannot be of the declared kind.
func contradicts(kind, seen string, text bool) bool {
	major, _, _ := strings.Cut(kind, "/")
	seenMajor, _, _ := strings.Cut(seen, "/")
	switch {
	case major == "text", kind == svg:
		return !text
	case major == "image":
		return knownImages[kind] || seen != octets
	case major == "audio", major == "video":
		return seenMajor == "text" || seenMajor == "image" || seen == "application/pdf" || seen == "application/zip"
	}
	return kind == "application/pdf" && seen != kind
}

// knownImages are the image types that [http.DetectContentType] detects: data that is not detected has none of them.
var knownImages = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true, "image/bmp": true}
