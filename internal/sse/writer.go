package sse

import (
	"bytes"
	"strconv"
)

// AppendEvent appends e with its closing blank line. It omits a type or an id that cannot be written on one line. Each line of data
// becomes a data line, so that no data can end the event or add a field. A reader receives CR and CRLF as LF, and bytes that are not
// UTF-8 as U+FFFD.
func AppendEvent(dst []byte, e Event) []byte {
	if e.Type != "" && e.Type != "message" && oneLine(e.Type) {
		dst = appendLines(dst, "event: ", []byte(e.Type))
	}
	if e.ID != "" && oneLine(e.ID) {
		dst = appendLines(dst, "id: ", []byte(e.ID))
	}
	if e.Retry > 0 {
		dst = appendLines(dst, "retry: ", strconv.AppendInt(nil, int64(e.Retry), 10))
	}
	return append(appendLines(dst, "data: ", e.Data), '\n')
}

// AppendComment appends a comment and a blank line. Clients ignore it; it prevents that an idle connection is closed.
func AppendComment(dst []byte, s string) []byte {
	return append(appendLines(dst, ": ", []byte(s)), '\n')
}

// appendLines appends each line of text as a field.
func appendLines(dst []byte, field string, text []byte) []byte {
	for {
		line, rest := text, []byte(nil)
		i := bytes.IndexAny(text, "\r\n")
		if i >= 0 {
			line, rest = text[:i], text[i+1:]
			if text[i] == '\r' && len(rest) > 0 && rest[0] == '\n' {
				rest = rest[1:]
			}
		}
		dst = append(dst, field...)
		dst = append(appendValid(dst, line), '\n')
		if i < 0 {
			return dst
		}
		text = rest
	}
}
