package sse

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
	"math"
	"strconv"
	"unicode/utf8"
)

// Options are the limits of a [Reader]. A zero field has the default in its comment.
type Options struct {
	MaxLine  int // bytes of one line; 0: 1 MiB
	MaxEvent int // bytes of data of one event; 0: 8 MiB
	// RawUTF8 passes data that is not UTF-8 unchanged, instead of replacing it by U+FFFD. It is for servers that split a character between
	// two events.
	RawUTF8 bool
}

const (
	defaultMaxLine  = 1 << 20
	defaultMaxEvent = 8 << 20
)

// A Reader reads events from a stream. Only one goroutine at a time may use it.
type Reader struct {
	lines bufio.Scanner // by splitLine
	opts  Options
	err   error // the error that every further Next returns

	// Set by splitLine:
	started  bool   // the position of a byte order mark has been passed
	skipLF   bool   // the last line ended in CR: a LF that follows belongs to its end
	searched int    // number of bytes in which no end of a line was found
	rest     []byte // the bytes that follow the last line, as far as they have been read

	event   Event // the event that is being read, without its data
	data    []byte
	room    [512]byte // the memory of data, while data fits into it
	hasData bool

	keep bool   // KeepRaw was called
	raw  []byte // the bytes that Raw returns next
}

// NewReader returns a Reader of src. nil opts mean the defaults.
func NewReader(src io.Reader, opts *Options) *Reader {
	r := &Reader{lines: *bufio.NewScanner(src)}
	r.data = r.room[:0]
	if opts != nil {
		r.opts = *opts
	}
	if r.opts.MaxLine <= 0 {
		r.opts.MaxLine = defaultMaxLine
	}
	if r.opts.MaxEvent <= 0 {
		r.opts.MaxEvent = defaultMaxEvent
	}
	r.lines.Buffer(nil, min(r.opts.MaxLine, math.MaxInt-16)+len(byteOrderMark)+len("\r\n"))
	r.lines.Split(r.splitLine)
	return r
}

// KeepRaw makes the Reader store the unchanged bytes of the stream for Raw.
func (r *Reader) KeepRaw() { r.keep = true }

// Raw returns the unchanged bytes of the stream from the end of the previous call of Raw to the end of the event that Next returned last,
// comments and events without data included. The result is valid until the next call of Next.
func (r *Reader) Raw() []byte {
	raw := r.raw
	r.raw = raw[:0]
	return raw
}

// Rest returns the unchanged bytes that follow those of Raw, as far as the Reader has read the source. No event is read after it.
func (r *Reader) Rest() []byte { return append(r.raw, r.rest...) }

// Next returns the next event. At the end of the stream the error is io.EOF, even if the last event is incomplete. Events that were received
// before an error of the source are returned first. After an error, every call returns it.
func (r *Reader) Next() (Event, error) {
	for r.err == nil {
		if !r.lines.Scan() {
			if r.err = r.lines.Err(); r.err == nil {
				r.err = io.EOF
			}
			break
		}
		line := r.lines.Bytes()
		switch {
		case len(r.raw) > r.opts.MaxEvent+r.opts.MaxLine:
			r.err = ErrEventTooLong
		case len(line) > 0:
			r.err = r.field(line)
		case r.hasData:
			return r.dispatch(), nil
		default: // an event without data is dropped
			r.event = Event{ID: r.event.ID}
		}
	}
	return Event{}, r.err
}

const byteOrderMark = "\xEF\xBB\xBF"

// splitLine is a [bufio.SplitFunc]. It returns the first line of data without its end. An incomplete line at the end of the stream is dropped.
func (r *Reader) splitLine(data []byte, atEOF bool) (advance int, line []byte, err error) {
	r.rest = data
	start := 0
	switch {
	case !r.started && len(data) < len(byteOrderMark) && !atEOF:
		return 0, nil, nil // a whole event has more bytes than a mark
	case !r.started && bytes.HasPrefix(data, []byte(byteOrderMark)):
		start = len(byteOrderMark)
	case r.skipLF && bytes.HasPrefix(data, []byte("\n")):
		start = 1
	}
	from := max(start, r.searched)
	end := from + lineEnd(data[from:])
	if end-start > r.opts.MaxLine {
		return 0, nil, ErrLineTooLong
	}
	if end == len(data) {
		r.searched = end
		return 0, nil, nil
	}
	advance = end + 1
	if data[end] == '\r' && advance < len(data) && data[advance] == '\n' {
		advance++
	}
	if r.keep {
		r.raw = append(r.raw, data[:advance]...)
	}
	r.started, r.searched, r.rest = true, 0, data[advance:]
	r.skipLF = data[advance-1] == '\r'
	return advance, data[start:end], nil
}

// lineEnd returns the index of the first CR or LF, or len(b). bytes.IndexAny, which looks at each byte, takes many times as long.
func lineEnd(b []byte) int {
	for _, end := range []byte("\n\r") {
		if i := bytes.IndexByte(b, end); i >= 0 {
			b = b[:i]
		}
	}
	return len(b)
}

// field processes a line that is not blank. Comments have no name.
func (r *Reader) field(line []byte) error {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		if r.hasData {
			r.data = append(r.data, '\n')
		} else {
			r.data, r.hasData = r.data[:0], true
		}
		if r.data = append(r.data, value...); len(r.data) > r.opts.MaxEvent {
			return ErrEventTooLong
		}
	case "event":
		r.event.Type = text(value)
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			r.event.ID = text(value)
		}
	case "retry":
		// A number that consists of ASCII digits only. Larger numbers become the largest int32.
		if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil || errors.Is(err, strconv.ErrRange) {
			r.event.Retry = int(ms)
		}
	}
	return nil
}

// dispatch returns the event that a blank line has ended.
func (r *Reader) dispatch() Event {
	e := r.event
	e.Type, e.Data = cmp.Or(e.Type, "message"), r.data
	if !r.opts.RawUTF8 && !utf8.Valid(e.Data) {
		e.Data = appendValid(nil, e.Data)
	}
	r.event, r.hasData = Event{ID: e.ID}, false
	return e
}

func text(b []byte) string {
	if !utf8.Valid(b) {
		b = appendValid(nil, b)
	}
	return string(b)
}
