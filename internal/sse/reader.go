package sse

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
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
	usualLine       = 512 // bytes for which there is room at first
)

// A Reader reads events from a stream. Only one goroutine at a time may use it.
type Reader struct {
	src  bufio.Reader
	opts Options
	err  error // the error that every further Next returns

	line    []byte // the line that is being read, without its end
	started bool   // the position of a byte order mark has been passed
	skipLF  bool   // the last line ended in CR: a LF that follows belongs to its end

	event   Event // the event that is being read, without its data
	data    []byte
	hasData bool

	keep bool   // KeepRaw was called
	raw  []byte // the bytes that Raw returns next
}

// NewReader returns a Reader of src. nil opts mean the defaults.
func NewReader(src io.Reader, opts *Options) *Reader {
	room := make([]byte, 2*usualLine)
	r := &Reader{line: room[:0:usualLine], data: room[usualLine:usualLine]}
	r.src.Reset(src)
	if opts != nil {
		r.opts = *opts
	}
	if r.opts.MaxLine <= 0 {
		r.opts.MaxLine = defaultMaxLine
	}
	if r.opts.MaxEvent <= 0 {
		r.opts.MaxEvent = defaultMaxEvent
	}
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

// Rest returns the unchanged bytes that follow those of Raw, as far as the Reader has read the source.
func (r *Reader) Rest() []byte {
	r.take(r.src.Buffered())
	return r.Raw()
}

// take moves the reader past n bytes that are in its buffer.
func (r *Reader) take(n int) {
	if r.keep {
		next, _ := r.src.Peek(n)
		r.raw = append(r.raw, next...)
	}
	_, _ = r.src.Discard(n) // never fails for bytes in the buffer
}

// Next returns the next event. At the end of the stream the error is io.EOF, even if the last event is incomplete. Events that were received
// before an error of the source are returned first. After an error, every call returns it.
func (r *Reader) Next() (Event, error) {
	for r.err == nil {
		r.err = r.readLine()
		switch {
		case r.err != nil:
		case len(r.raw) > r.opts.MaxEvent+r.opts.MaxLine:
			r.err = ErrEventTooLong
		case len(r.line) > 0:
			r.err = r.field()
		case r.hasData:
			return r.dispatch(), nil
		default:
			r.event = Event{ID: r.event.ID}
		}
	}
	return Event{}, r.err
}

// readLine reads a line and its end.
func (r *Reader) readLine() error {
	for r.line = r.line[:0]; ; {
		if _, err := r.src.Peek(1); err != nil {
			return err
		}
		buf, _ := r.src.Peek(r.src.Buffered())
		if r.skipLF {
			if r.skipLF = false; buf[0] == '\n' {
				r.take(1)
				continue
			}
		}
		end := lineEnd(buf)
		r.line = append(r.line, buf[:end]...)
		if !r.started && (end < len(buf) || len(r.line) >= len(byteOrderMark)) {
			r.line, r.started = bytes.TrimPrefix(r.line, []byte(byteOrderMark)), true
		}
		if len(r.line) > r.opts.MaxLine {
			return ErrLineTooLong
		}
		if end == len(buf) {
			r.take(len(buf))
			continue
		}
		next := end + 1
		if buf[end] == '\r' {
			if r.skipLF = next == len(buf); !r.skipLF && buf[next] == '\n' {
				next++
			}
		}
		r.take(next)
		return nil
	}
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

const byteOrderMark = "\xEF\xBB\xBF"

// field processes a line that is not blank. Comments have no name.
func (r *Reader) field() error {
	name, value, _ := bytes.Cut(r.line, []byte(":"))
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
