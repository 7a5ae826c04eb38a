package stream

import (
	"context"
	"net/http"
	"runtime"
	"sync"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/sse"
)

// An Encoder converts the events of a run to the bytes of a stream. The run calls AppendEvent for each event; the request calls AppendEnd
// once, after the last event.
type Encoder interface {
	// AppendEvent appends the bytes that the client receives for the event, which may be none.
	AppendEvent(dst []byte, e *event.Event) []byte
	// AppendEnd ends the stream. p is nil if the run did not fail.
	AppendEnd(dst []byte, res *event.Result, p *problem.Problem) []byte
	// Header sets the headers of the response, except for the type of the stream.
	Header(h http.Header)
}

// A RawEncoder is an Encoder that also accepts the bytes of a model server, for relayed answers.
type RawEncoder interface {
	AppendRaw(dst []byte, raw *lathe.Raw) []byte
}

// A Withdrawer is an Encoder that may write the beginning of a call before the run has decided about the call.
type Withdrawer interface {
	// Withdrawn returns the problem that ends the stream if the client has received the beginning of a call that the run does not contain,
	// else nil. While the run is active, res is nil; the problem is then already in the stream.
	Withdrawn(res *event.Result) *problem.Problem
}

// A Pipe receives the events of a run, and is read by the goroutine that writes to the client. It never blocks the run: a reader that is
// too slow is disconnected.
type Pipe struct {
	enc  Encoder
	max  int
	wake chan struct{} // has a value if the reader should check the pipe
	cut  func()        // called once, if the buffer exceeds max

	mu       sync.Mutex
	event    event.Event // the event being encoded; reused to avoid an allocation for each
	buf      *Buffer     // nil: the buffer is empty
	closed   bool        // nothing more is encoded: Close was called, the buffer exceeded max, or enc panicked
	full     bool        // the buffer exceeded max
	encoding bool        // enc is being called; remains set if enc panics
}

// NewPipe returns a pipe whose buffer is limited to most bytes. If more are pending, it calls cut once and drops all further events.
func NewPipe(enc Encoder, most int, cut func()) *Pipe {
	return &Pipe{enc: enc, max: most, wake: make(chan struct{}, 1), cut: cut}
}

// A Buffer contains the encoded events that the reader of a pipe has not read yet. A pipe without such events has no buffer, because most
// of the open streams are idle.
type Buffer struct{ B []byte }

// buffers is the pool of Buffers. Buffers of more than maxPooled bytes are not returned to it.
var buffers = sync.Pool{New: func() any { return &Buffer{make([]byte, 0, 4<<10)} }}

const maxPooled = 64 << 10

// yieldBytes is the number of bytes that a run encodes before it yields to the goroutine that writes to the client. If GOMAXPROCS is small,
// a model server that sends a whole answer at once would otherwise make the buffer grow to the size of the answer.
const yieldBytes = 32 << 10

// Release returns the buffer to the pool. The caller must not use it afterwards. Release does nothing if b is nil.
func (b *Buffer) Release() {
	if b != nil && cap(b.B) <= maxPooled {
		b.B = b.B[:0]
		buffers.Put(b)
	}
}

// pending returns the bytes of the buffer, to append to. It gets a buffer from the pool if p has none. p.mu is held.
func (p *Pipe) pending() []byte {
	if p.buf == nil {
		p.buf = buffers.Get().(*Buffer)
	}
	return p.buf.B
}

// Emit implements [event.Sink]. If the encoder panics, the stream ends with an error, and the panic continues.
func (p *Pipe) Emit(_ context.Context, e event.Event) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	b := p.pending()
	defer p.endEncoding(len(b))
	p.event, p.encoding = e, true
	p.buf.B = p.enc.AppendEvent(b, &p.event)
	p.event, p.encoding = event.Event{}, false
}

// TakeRaw is the Take function of a [lathe.Relay]. If the encoder panics, it does what Emit does.
func (p *Pipe) TakeRaw(raw *lathe.Raw) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	b := p.pending()
	defer p.endEncoding(len(b))
	p.encoding = true
	p.buf.B = p.enc.(RawEncoder).AppendRaw(b, raw)
	p.encoding = false
}

// endEncoding wakes the reader if bytes were added or the encoder has panicked, and unlocks p.mu. Bytes encoded before a panic remain for the
// reader; nothing is encoded after it. If the buffer exceeds max, the reader is cut off.
func (p *Pipe) endEncoding(before int) {
	panicked := p.encoding
	after := len(p.buf.B)
	full := !panicked && after > p.max
	switch {
	case panicked:
		p.event, p.closed = event.Event{}, true
	case full:
		p.full, p.closed, p.buf = true, true, nil
	case after == 0: // an idle stream has no buffer
		p.buf.Release()
		p.buf = nil
	}
	p.mu.Unlock()
	if full {
		p.cut()
	}
	if panicked || full || after > before {
		p.Nudge()
	}
	if !full && after/yieldBytes > before/yieldBytes {
		runtime.Gosched()
	}
}

// Nudge wakes the reader.
func (p *Pipe) Nudge() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Broken reports whether the encoder has panicked.
func (p *Pipe) Broken() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.encoding
}

// Take returns the buffer (nil if it is empty), whether the reader was cut off, and the problem with which the encoder has ended the
// stream, if any. The caller releases the buffer after writing it.
func (p *Pipe) Take() (b *Buffer, full bool, bad *problem.Problem) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, p.buf = p.buf, nil
	if w, ok := p.enc.(Withdrawer); ok {
		bad = w.Withdrawn(nil)
	}
	return b, p.full, bad
}

// Close discards the buffer and all further events.
func (p *Pipe) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.buf.Release()
	p.closed, p.buf = true, nil
}

// Wake returns the channel that receives a value when there may be bytes to take, or after a call of [Pipe.Nudge].
func (p *Pipe) Wake() <-chan struct{} { return p.wake }

// AppendKeepAlive appends a keep-alive without content: that of the encoder if it has one, else an SSE comment.
func AppendKeepAlive(dst []byte, enc Encoder) []byte {
	if own, ok := enc.(interface{ AppendKeepAlive(dst []byte) []byte }); ok {
		return own.AppendKeepAlive(dst)
	}
	return sse.AppendComment(dst, "keep-alive")
}
