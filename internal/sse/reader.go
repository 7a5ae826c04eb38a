package sse

import (
	"bytes"
	"errors"
	"io"
	"math"
	"sync"
	"unicode/utf8"
)

// Options are the limits of a [Reader]. A zero field has the default in its comment.
type Options struct {
	MaxLine  int // 1 MiB; bytes of one line
	MaxEvent int // 8 MiB; bytes of data of one event
	// RawUTF8 hands over data that is not UTF-8 as it came, not with U+FFFD in its place. It is
	// for servers that cut a character in two.
	RawUTF8 bool
}

const (
	defaultMaxLine  = 1 << 20
	defaultMaxEvent = 8 << 20
	// A Reader begins with a buffer of smallSize bytes, since of many open streams most are idle. When a read has filled it, the
	// stream has more to read at once, and the Reader takes one of bufSize bytes.
	smallSize = 2 << 10
	bufSize   = 32 << 10
	// maxPooled is the largest buffer that goes back to the pool.
	maxPooled = 256 << 10
	// maxTypes and maxTypeLen bound the event types whose strings a Reader keeps.
	maxTypes, maxTypeLen = 64, 64
	// maxEmptyReads is how often an io.Reader may return nothing in a row.
	maxEmptyReads = 100
)

// The buffers of Readers: those of smallSize bytes, and those of bufSize to maxPooled bytes.
var (
	smallBufs = sync.Pool{New: func() any { b := make([]byte, smallSize); return &b }}
	bufs      = sync.Pool{New: func() any { b := make([]byte, bufSize); return &b }}
)

// putBuf returns a buffer to its pool. The caller does not use it afterwards.
func putBuf(b *[]byte) {
	switch n := len(*b); {
	case n == smallSize:
		smallBufs.Put(b)
	case n <= maxPooled:
		bufs.Put(b)
	}
}

// A Reader reads events from a stream. It is used by one goroutine at a time.
type Reader struct {
	src  io.Reader
	opts Options

	buf      *[]byte
	pos, end int   // the unread bytes of buf
	scanned  int   // bytes before it hold no line end, from pos on
	cr       int   // the next CR in the unread bytes, -1: none
	filled   bool  // the last read filled buf to its end
	err      error // of src, once it has failed or ended
	fail     error // what every further Next returns

	started bool // the place for a BOM is past
	skipLF  bool // the last line ended in CR: a LF that follows belongs to it

	data    []byte // of the event being read; part of buf while it is one line of it
	inBuf   bool
	hasData bool
	held    []byte // own memory for data that does not lie in buf
	typ     string
	dirty   bool // the event being read has had a line that is not a comment
	retry   int  // of the event being read

	lastID    string
	lastRetry int
	types     map[string]string
	truncated bool

	keep bool   // for Raw
	from int    // where in buf the bytes begin that Raw has not returned
	kept []byte // what stood before them and is no longer in buf
}

// NewReader returns a Reader of src. opts may be nil.
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

// Reset makes the Reader read a new stream from src, with the options and buffers it has.
func (r *Reader) Reset(src io.Reader) {
	*r = Reader{src: src, opts: r.opts, buf: r.buf, held: r.held[:0], types: r.types, cr: -1, lastRetry: -1, kept: r.kept[:0]}
}

// Release gives the Reader's buffer back. The last event's data is no longer valid; only Reset
// may follow.
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

// Truncated reports, after Next has returned an error, that the stream broke off within an event:
// there were bytes of an event that no blank line closed.
func (r *Reader) Truncated() bool { return r.truncated }

// Next returns the next event. At the end of the stream the error is io.EOF, also when the last
// event was incomplete (see Truncated); events before an error of the source are still returned.
// Errors are final.
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

// line takes the next whole line out of the buffer, without its end.
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

// fill reads more bytes behind those that are unread.
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
		r.pos = 0 // there is no CR in the unread bytes, or line would have taken it
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
				return nil // the start of a BOM that is none
			}
			return err
		}
	}
	r.err = io.ErrNoProgress
	return r.err
}

// grow moves the unread bytes, which begin at the start of the buffer, to a larger one, and returns it. The data of the event that
// is being read has left the old buffer, and that of earlier events is no longer valid.
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

// field takes in a line that is not blank. It reports whether the event is within MaxEvent.
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
		r.typ = r.intern(value)
	case "id":
		if bytes.IndexByte(value, 0) < 0 && string(value) != r.lastID {
			r.lastID = r.text(value)
		}
	case "retry":
		if ms, ok := digits(value); ok {
			r.retry, r.lastRetry = ms, ms
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

func (r *Reader) intern(b []byte) string {
	if s, ok := r.types[string(b)]; ok {
		return s
	}
	s := r.text(b)
	if len(r.types) < maxTypes && len(s) <= maxTypeLen {
		if r.types == nil {
			r.types = make(map[string]string)
		}
		r.types[s] = s
	}
	return s
}

func (r *Reader) text(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return string(appendValid(nil, b))
}

// digits reads a number of ASCII digits only, held at the largest int32.
func digits(b []byte) (int, bool) {
	n := 0
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = min(n*10+int(c-'0'), math.MaxInt32)
	}
	return n, len(b) > 0
}
