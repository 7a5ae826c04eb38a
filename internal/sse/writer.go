package sse

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// AppendEvent appends e with its closing blank line. It omits a type or an id that cannot be written on one line: [Event.Check] reports
// them. Data is written as by [appendData].
func AppendEvent(dst []byte, e Event) []byte {
	if e.Type != "" && e.Type != "message" && oneLine(e.Type) {
		dst = append(dst, "event: "...)
		dst = appendValid(dst, []byte(e.Type))
		dst = append(dst, '\n')
	}
	if e.ID != "" && oneLine(e.ID) {
		dst = append(dst, "id: "...)
		dst = appendValid(dst, []byte(e.ID))
		dst = append(dst, '\n')
	}
	if e.Retry > 0 {
		dst = append(dst, "retry: "...)
		dst = strconv.AppendInt(dst, int64(e.Retry), 10)
		dst = append(dst, '\n')
	}
	return appendData(dst, e.Data)
}

// appendData appends an event that has only data. Each line of data becomes a data line, so that no data can end the event or add a field.
// A reader receives CR and CRLF as LF, and bytes that are not UTF-8 as U+FFFD.
func appendData(dst, data []byte) []byte {
	dst = appendLines(dst, "data: ", data)
	return append(dst, '\n')
}

// AppendComment appends a comment and a blank line. Clients ignore it; it prevents that an idle connection is closed.
func AppendComment(dst []byte, s string) []byte {
	dst = appendLines(dst, ": ", []byte(s))
	return append(dst, '\n')
}

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
		if utf8.Valid(line) {
			dst = append(dst, line...)
		} else {
			dst = appendValid(dst, line)
		}
		dst = append(dst, '\n')
		if i < 0 {
			return dst
		}
		text = rest
	}
}
