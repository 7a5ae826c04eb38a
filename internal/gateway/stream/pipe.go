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

// An Encoder turns the events of a run into the bytes of a stream. AppendEvent is called by the run,
// AppendEnd after its last event.
type Encoder interface {
	// AppendEvent appends what the event says to the client; often that is nothing.
	AppendEvent(dst []byte, e *event.Event) []byte
	// AppendEnd closes the stream: p is nil where the run did not fail.
	AppendEnd(dst []byte, res *event.Result, p *problem.Problem) []byte
	// Header sets what the head of the answer says besides the type of the stream.
	Header(h http.Header)
}

// A RawEncoder is one that can be given the bytes of a model server, too.
type RawEncoder interface {
	AppendRaw(dst []byte, raw *lathe.Raw) []byte
}

// A Withdrawer is an encoder that can write of a call before the run has decided about it.
type Withdrawer interface {
	// Withdrawn returns the problem that ends the stream if the client has got the beginning of a call that the run
	// does not contain, and nil otherwise. res is nil while the run is active; then the stream has the problem already.
	Withdrawn(res *event.Result) *problem.Problem
}

// A Pipe takes the events of a run on one side, and is read by the goroutine that writes to the client
// on the other. It never makes the run wait: a reader that is too slow is cut off.
type Pipe struct {
	enc  Encoder
	max  int
	wake chan struct{} // there may be something to do for the reader
	cut  func()        // called once, when too much waits

	mu       sync.Mutex
	event    event.Event // that is encoded now: a place that is not made anew for each
	buf      *Buffer     // nil: nothing waits
	closed   bool        // the client does not read any more
	full     bool
	encoding bool // enc is called; it stays set if enc panics
}

// NewPipe returns a pipe that holds no more than most bytes. Beyond them it calls cut, once, and drops what comes.
func NewPipe(enc Encoder, most int, cut func()) *Pipe {
	return &Pipe{enc: enc, max: most, wake: make(chan struct{}, 1), cut: cut}
}

// A Buffer holds the encoded events that the reader of a pipe has not taken yet. A pipe without such events has no buffer: of many
// open streams most are idle.
type Buffer struct{ B []byte }

// buffers are those of pipes. Buffers of more than maxPooled bytes are not kept.
var buffers = sync.Pool{New: func() any { return &Buffer{make([]byte, 0, 4<<10)} }}

const maxPooled = 64 << 10

// yieldBytes is how much a run encodes before it lets the goroutine that writes to the client run. A model server that sends all of
// an answer at once would otherwise make the buffers grow to the size of the answer, where few threads run Go code.
const yieldBytes = 32 << 10

// Release returns the buffer to the pool. The caller does not use it afterwards. Release does nothing if b is nil.
func (b *Buffer) Release() {
	if b != nil && cap(b.B) <= maxPooled {
		b.B = b.B[:0]
		buffers.Put(b)
	}
}

// pending returns the memory of the buffer, to append to; it takes a buffer if p has none. The caller holds p.mu.
func (p *Pipe) pending() []byte {
	if p.buf == nil {
		p.buf = buffers.Get().(*Buffer)
	}
	return p.buf.B
}

// Emit implements [event.Sink]. If the encoder panics, the stream ends with an error, and the panic is passed on.
func (p *Pipe) Emit(_ context.Context, e event.Event) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	b := p.pending()
	defer p.tell(len(b))
	p.event, p.encoding = e, true
	p.buf.B = p.enc.AppendEvent(b, &p.event)
	p.event, p.encoding = event.Event{}, false
}

// TakeRaw is the Take of a [lathe.Relay]. A panic of the encoder has the effect that Emit says.
func (p *Pipe) TakeRaw(raw *lathe.Raw) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	b := p.pending()
	defer p.tell(len(b))
	p.encoding = true
	p.buf.B = p.enc.(RawEncoder).AppendRaw(b, raw)
	p.encoding = false
}

// tell wakes the reader if there is more than before, or if the encoder has panicked, and gives up p.mu. What was encoded before a
// panic stays for the reader, and nothing is encoded after it.
func (p *Pipe) tell(before int) {
	after := len(p.buf.B)
	said := after > before || p.encoding
	switch {
	case p.encoding:
		p.event, p.closed = event.Event{}, true
	case after > p.max:
		p.full, p.closed, p.buf, after = true, true, nil, 0
	case after == 0:
		p.buf.Release()
		p.buf = nil
	}
	full := p.full
	p.mu.Unlock()
	if full {
		p.cut()
	}
	if said || full {
		p.Nudge()
	}
	if after/yieldBytes > before/yieldBytes {
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

// Take returns the buffer, nil if nothing waits, whether the reader was cut off, and the problem with which the encoder has ended
// the stream; nil: it has not. The caller gives the buffer back when it has written it.
func (p *Pipe) Take() (b *Buffer, full bool, bad *problem.Problem) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, p.buf = p.buf, nil
	if w, ok := p.enc.(Withdrawer); ok {
		bad = w.Withdrawn(nil)
	}
	return b, p.full, bad
}

// Close drops what waits and what comes.
func (p *Pipe) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.buf.Release()
	p.closed, p.buf = true, nil
}

// Wake returns the channel that has a value if there may be something to take, or after a call of [Pipe.Nudge].
func (p *Pipe) Wake() <-chan struct{} { return p.wake }

// AppendKeepAlive appends what says nothing in the stream of an encoder: a comment, unless it has its own.
func AppendKeepAlive(dst []byte, enc Encoder) []byte {
	if own, ok := enc.(interface{ AppendKeepAlive(dst []byte) []byte }); ok {
		return own.AppendKeepAlive(dst)
	}
	return sse.AppendComment(dst, "keep-alive")
}
