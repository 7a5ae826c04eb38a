// Package sse reads and writes server-sent events as defined by section 9.2 of the WHATWG HTML standard. The result does not depend on how
// the bytes are split into reads, and memory is limited.
package sse

import (
	"errors"
	"strings"
	"unicode/utf8"
)

// An Event is one event of a stream.
type Event struct {
	// Type is the type of the event. A Reader sets "message" if the stream names none; a writer omits "" and "message".
	Type string
	// ID is the last event id of the stream when reading (it applies to later events too), and the id to send when writing; a writer omits
	// "".
	ID string
	// Data is the data of the event, its lines joined by LF. If it comes from a Reader, it is valid until the next call of Next.
	Data []byte
	// Retry is the reconnection time of this event in milliseconds; 0: none.
	Retry int
}

// Errors of [Reader.Next].
var (
	// ErrLineTooLong is returned for a line of more than MaxLine bytes.
	ErrLineTooLong = errors.New("sse: line is too long")
	// ErrEventTooLong is returned for an event of more than MaxEvent bytes of data.
	ErrEventTooLong = errors.New("sse: event is too long")
)

// oneLine reports whether s can be the type or the id of an event.
func oneLine(s string) bool { return !strings.ContainsAny(s, "\r\n\x00") }

// replacement is U+FFFD in UTF-8.
const replacement = "\uFFFD"

// appendValid appends b to dst and replaces each maximal part that is not UTF-8 by U+FFFD, as the decoder of the Encoding standard does.
func appendValid(dst, b []byte) []byte {
	if utf8.Valid(b) {
		return append(dst, b...)
	}
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r != utf8.RuneError || n > 1 {
			dst = append(dst, b[:n]...)
			b = b[n:]
			continue
		}
		dst = append(dst, replacement...)
		b = b[badLen(b):]
	}
	return dst
}

// badLen returns the length of the bytes at the start of b that are replaced by one U+FFFD: the longest beginning of a well-formed
// sequence, or one byte.
func badLen(b []byte) int {
	lo, hi, want := byte(0x80), byte(0xBF), 0
	switch c := b[0]; {
	case c >= 0xC2 && c <= 0xDF:
		want = 1
	case c >= 0xE0 && c <= 0xEF:
		want = 2
		if c == 0xE0 {
			lo = 0xA0
		} else if c == 0xED {
			hi = 0x9F
		}
	case c >= 0xF0 && c <= 0xF4:
		want = 3
		if c == 0xF0 {
			lo = 0x90
		} else if c == 0xF4 {
			hi = 0x8F
		}
	}
	n := 1
	for ; want > 0 && n < len(b) && b[n] >= lo && b[n] <= hi; want-- {
		lo, hi = 0x80, 0xBF
		n++
	}
	return n
}
