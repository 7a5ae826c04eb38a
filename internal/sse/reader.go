package sse

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"sync"
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
	// smallSize and bufSize are sizes of buffers. A Reader begins with smallSize bytes, since most open streams are idle. If a read fills
	// the buffer, more data is available at once, and the Reader changes to bufSize bytes.
	smallSize = 2 << 10
	bufSize   = 32 << 10
	// maxPooled is the size of the largest buffer that returns to the pool.
	maxPooled = 256 << 10
	// maxEmptyReads is how often an io.Reader may return no bytes and no error in a row.
	maxEmptyReads = 100
)

// Pools of buffers: smallBufs has those of smallSize bytes, bufs has those of bufSize to maxPooled bytes.
var (
	smallBufs = sync.Pool{New: func() any { b := make([]byte, smallSize); return &b }}
	bufs      = sync.Pool{New: func() any { b := make([]byte, bufSize); return &b }}
)

// putBuf returns a buffer to its pool. The caller must not use it afterwards.
func putBuf(b *[]byte) {
	switch n := len(*b); {
	case n == smallSize:
		smallBufs.Put(b)
	case n <= maxPooled:
		bufs.Put(b)
	}
}

// A Reader reads events from a stream. Only one goroutine at a time may use it.
type Reader struct {
	src  io.Reader
	opts Options

	buf      *[]byte
	pos, end int   // bounds of the unread bytes of buf
	scanned  int   // the bytes from pos to scanned contain no line end
	cr       int   // index of the next CR in the unread bytes; -1: none
	filled   bool  // the last read filled buf to its end
	err      error // error or end of src
	fail     error // error that every further Next returns

	started bool // the position of a byte order mark has been passed
	skipLF  bool // the last line ended in CR: skip a LF that follows it

	data    []byte // data of the event being read; inside buf as long as it is one line
	inBuf   bool
	hasData bool
	held    []byte // memory for data that is not inside buf
	typ     string
	dirty   bool // the event being read has a line that is not a comment
	retry   int  // retry field of the event being read

	lastID    string
	lastRetry int
	truncated bool

	keep bool   // KeepRaw was called
	from int    // index in buf of the first byte that Raw has not returned
	kept []byte // bytes before from that are no longer in buf
}

// NewReader returns a Reader of src. nil opts mean the defaults.
func NewReader(src io.Reader, opts *Options) *Reader {
	r := &Reader{}
	if opts != nil {
		r.opts = *opts
	}
	if r.opts.MaxLine <= 0 {
		r.opts.MaxLine = defaultMaxLine
	}
	if r.opts.MaxEvent <= 0 {
		r.opts.MaxEvent = defaultMaxEvent
	}
	r.Reset(src)
	return r
}

// Reset makes the Reader read a new stream from src, with the same options and buffers.
func (r *Reader) Reset(src io.Reader) {
	*r = Reader{src: src, opts: r.opts, buf: r.buf, held: r.held[:0], cr: -1, lastRetry: -1, kept: r.kept[:0]}
}

// Release returns the Reader's buffer to the pool. The data of the last event is no longer valid, and only Reset may be called next.
func (r *Reader) Release() {
	if r.buf != nil {
		putBuf(r.buf)
	}
	if cap(r.held) > maxPooled {
		r.held = nil
	}
	if cap(r.kept) > maxPooled {
		r.kept = nil
	}
	r.buf = nil
	r.Reset(nil)
	r.fail = io.ErrClosedPipe
}

// LastEventID returns the last event id that the stream set.
func (r *Reader) LastEventID() string { return r.lastID }

// Retry returns the last reconnection time that the stream set, in milliseconds, and whether it set one.
func (r *Reader) Retry() (ms int, ok bool) { return max(r.lastRetry, 0), r.lastRetry >= 0 }

// Truncated reports, after Next has returned an error, whether the stream ended within an event: the last event was not closed by a blank
// line.
func (r *Reader) Truncated() bool { return r.truncated }

// Next returns the next event. At the end of the stream the error is io.EOF, even if the last event is incomplete (see Truncated). Events
// that were received before an error of the source are returned first. After an error, every call returns it.
func (r *Reader) Next() (Event, error) {
	if r.fail != nil {
		return Event{}, r.fail
	}
	for {
		line, ok := r.line()
		if !ok {
			if err := r.fill(); err != nil {
				r.truncated = errors.Is(err, r.err) && (r.dirty || r.pos < r.end)
				return Event{}, r.stop(err)
			}
			continue
		}
		if len(line) > 0 {
			if len(line) > r.opts.MaxLine {
				return Event{}, r.stop(ErrLineTooLong)
			}
			if !r.field(line) {
				return Event{}, r.stop(ErrEventTooLong)
			}
			continue
		}
		if r.hasData {
			return r.dispatch(), nil
		}
		r.typ, r.retry, r.dirty = "", 0, false
	}
}

func (r *Reader) stop(err error) error {
	r.fail = err
	return err
}

func (r *Reader) dispatch() Event {
	if !r.opts.RawUTF8 && !utf8.Valid(r.data) {
		r.data = appendValid(nil, r.data)
	}
	e := Event{Type: r.typ, ID: r.lastID, Data: r.data, Retry: r.retry}
	if e.Type == "" {
		e.Type = "message"
	}
	r.data, r.inBuf, r.hasData, r.typ, r.retry, r.dirty = nil, false, false, "", 0, false
	return e
}

// line removes the next complete line from the buffer and returns it without its line end. ok is false if the buffer has no complete line.
func (r *Reader) line() ([]byte, bool) {
	if r.pos == r.end {
		return nil, false
	}
	buf := *r.buf
	if r.skipLF {
		r.skipLF = false
		if buf[r.pos] == '\n' {
			r.pos++
			r.scanned = r.pos
		}
	}
	if !r.started {
		const bom = "\xEF\xBB\xBF"
		b := buf[r.pos:r.end]
		if len(b) < len(bom) && string(b) == bom[:len(b)] && r.err == nil {
			return nil, false
		}
		r.started = true
		if bytes.HasPrefix(b, []byte(bom)) {
			r.pos += len(bom)
			r.scanned = r.pos
		}
	}
	stop := r.end
	if r.cr >= 0 {
		stop = r.cr
	}
	start := r.pos
	if i := bytes.IndexByte(buf[r.scanned:stop], '\n'); i >= 0 {
		i += r.scanned
		r.pos = i + 1
		r.scanned = r.pos
		return buf[start:i], true
	}
	if r.cr < 0 {
		r.scanned = r.end
		return nil, false
	}
	i := r.cr
	r.pos = i + 1
	if r.pos == r.end {
		r.skipLF = true
	} else if buf[r.pos] == '\n' {
		r.pos++
	}
	r.scanned = r.pos
	r.findCR(r.pos)
	return buf[start:i], true
}

func (r *Reader) findCR(from int) {
	r.cr = -1
	if i := bytes.IndexByte((*r.buf)[from:r.end], '\r'); i >= 0 {
		r.cr = from + i
	}
}

// fill reads more bytes and appends them to the unread bytes.
func (r *Reader) fill() error {
	if r.end-r.pos > r.opts.MaxLine {
		return ErrLineTooLong
	}
	if r.err != nil {
		return r.err
	}
	if r.buf == nil {
		r.buf = smallBufs.Get().(*[]byte)
	}
	if r.inBuf {
		r.held = append(r.held[:0], r.data...)
		r.data, r.inBuf = r.held, false
	}
	buf := *r.buf
	if r.pos > 0 {
		if r.keep && !r.keepRaw(buf[r.from:r.pos]) {
			return ErrEventTooLong
		}
		copy(buf, buf[r.pos:r.end])
		r.end -= r.pos
		r.scanned -= r.pos
		r.pos = 0 // line has removed every CR from the unread bytes
	}
	if r.end == len(buf) || r.filled && len(buf) < bufSize {
		buf = r.grow()
	}
	for range maxEmptyReads {
		n, err := r.src.Read(buf[r.end:])
		from := r.end
		r.end += n
		r.filled = r.end == len(buf)
		r.err = err
		if n > 0 {
			r.findCR(from)
			return nil
		}
		if err != nil {
			if !r.started && r.pos < r.end {
				return nil // the first bytes only looked like a BOM
			}
			return err
		}
	}
	r.err = io.ErrNoProgress
	return r.err
}

// grow moves the unread bytes, which begin at the start of the buffer, to a larger buffer, and returns it. The caller must have moved the
// data of the event being read out of the old buffer; the data of earlier events becomes invalid.
func (r *Reader) grow() []byte {
	old := r.buf
	if len(*old) < bufSize {
		r.buf = bufs.Get().(*[]byte)
	} else {
		grown := make([]byte, 2*len(*old))
		r.buf = &grown
	}
	copy(*r.buf, (*old)[:r.end])
	putBuf(old)
	return *r.buf
}

// field processes a line that is not blank. It returns false if the data of the event exceeds MaxEvent.
func (r *Reader) field(line []byte) bool {
	if line[0] == ':' {
		return true
	}
	r.dirty = true
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		return r.addData(value)
	case "event":
		r.typ = r.text(value)
	case "id":
		if bytes.IndexByte(value, 0) < 0 && string(value) != r.lastID {
			r.lastID = r.text(value)
		}
	case "retry":
		// A number that consists of ASCII digits only. Larger numbers become the largest int32.
		if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil || errors.Is(err, strconv.ErrRange) {
			r.retry, r.lastRetry = int(ms), int(ms)
		}
	}
	return true
}

func (r *Reader) addData(value []byte) bool {
	if !r.hasData {
		r.data, r.inBuf, r.hasData = value, true, true
		return len(value) <= r.opts.MaxEvent
	}
	if len(r.data)+1+len(value) > r.opts.MaxEvent {
		return false
	}
	if r.inBuf {
		r.held = append(r.held[:0], r.data...)
		r.inBuf = false
	}
	r.held = append(append(r.held, '\n'), value...)
	r.data = r.held
	return true
}

func (r *Reader) text(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return string(appendValid(nil, b))
}
