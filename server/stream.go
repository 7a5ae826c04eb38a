package server

import (
	"context"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	problems "github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/sse"
)

// An encoder turns the events of a run into the bytes of a stream. appendEvent is called by the run,
// appendEnd after its last event.
type encoder interface {
	// appendEvent appends what the event says to the client; often that is nothing.
	appendEvent(dst []byte, e *event.Event) []byte
	// appendEnd closes the stream: p is nil where the run did not fail.
	appendEnd(dst []byte, res *event.Result, p *problem) []byte
	// header sets what the head of the answer says besides the type of the stream.
	header(h http.Header)
}

// A rawEncoder is one that can be given the bytes of a model server, too.
type rawEncoder interface {
	appendRaw(dst []byte, raw *lathe.Raw) []byte
}

// A withdrawer is an encoder that can write of a call before the run has decided about it.
type withdrawer interface {
	// withdrawn returns the problem that ends the stream if the client has got the beginning of a call that the run
	// does not contain, and nil otherwise. res is nil while the run is active; then the stream has the problem already.
	withdrawn(res *event.Result) *problem
}

// A pipe takes the events of a run on one side, and is read by the goroutine that writes to the client
// on the other. It never makes the run wait: a reader that is too slow is cut off.
type pipe struct {
	enc  encoder
	max  int
	wake chan struct{} // there may be something to do for the reader
	cut  func()        // called once, when too much waits
	late atomic.Bool   // it may be time for a sign of life

	mu       sync.Mutex
	event    event.Event // that is encoded now: a place that is not made anew for each
	buf      *buffer     // nil: nothing waits
	closed   bool        // the client does not read any more
	full     bool
	encoding bool // enc is called; it stays set if enc panics
}

func newPipe(enc encoder, most int, cut func()) *pipe {
	return &pipe{enc: enc, max: most, wake: make(chan struct{}, 1), cut: cut}
}

// A buffer holds the encoded events that the reader of a pipe has not taken yet. A pipe without such events has no buffer: of many
// open streams most are idle.
type buffer struct{ b []byte }

// buffers are those of pipes. Buffers of more than maxPooled bytes are not kept.
var buffers = sync.Pool{New: func() any { return &buffer{make([]byte, 0, 4<<10)} }}

const maxPooled = 64 << 10

// yieldBytes is how much a run encodes before it lets the goroutine that writes to the client run. A model server that sends all of
// an answer at once would otherwise make the buffers grow to the size of the answer, where few threads run Go code.
const yieldBytes = 32 << 10

// release returns the buffer to the pool. The caller does not use it afterwards. release does nothing if b is nil.
func (b *buffer) release() {
	if b != nil && cap(b.b) <= maxPooled {
		b.b = b.b[:0]
		buffers.Put(b)
	}
}

// takeBuffer returns empty memory from the pool. giveBack returns it there.
func takeBuffer() []byte { return buffers.Get().(*buffer).b }

func giveBack(b []byte) {
	if cap(b) > 0 {
		(&buffer{b}).release()
	}
}

// pending returns the memory of the buffer, to append to; it takes a buffer if p has none. The caller holds p.mu.
func (p *pipe) pending() []byte {
	if p.buf == nil {
		p.buf = buffers.Get().(*buffer)
	}
	return p.buf.b
}

// Emit implements [event.Sink]. If the encoder panics, the stream ends with an error, and the panic is passed on.
func (p *pipe) Emit(_ context.Context, e event.Event) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	b := p.pending()
	defer p.tell(len(b))
	p.event, p.encoding = e, true
	p.buf.b = p.enc.appendEvent(b, &p.event)
	p.event, p.encoding = event.Event{}, false
}

// takeRaw is the Take of a [lathe.Relay]. A panic of the encoder has the effect that Emit says.
func (p *pipe) takeRaw(raw *lathe.Raw) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	b := p.pending()
	defer p.tell(len(b))
	p.encoding = true
	p.buf.b = p.enc.(rawEncoder).appendRaw(b, raw)
	p.encoding = false
}

// tell wakes the reader if there is more than before, or if the encoder has panicked, and gives up p.mu. What was encoded before a
// panic stays for the reader, and nothing is encoded after it.
func (p *pipe) tell(before int) {
	after := len(p.buf.b)
	said := after > before || p.encoding
	switch {
	case p.encoding:
		p.event, p.closed = event.Event{}, true
	case after > p.max:
		p.full, p.closed, p.buf, after = true, true, nil, 0
	case after == 0:
		p.buf.release()
		p.buf = nil
	}
	full := p.full
	p.mu.Unlock()
	if full {
		p.cut()
	}
	if said || full {
		p.nudge()
	}
	if after/yieldBytes > before/yieldBytes {
		runtime.Gosched()
	}
}

// nudge wakes the reader.
func (p *pipe) nudge() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// broken reports whether the encoder has panicked.
func (p *pipe) broken() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.encoding
}

// take returns the buffer, nil if nothing waits, whether the reader was cut off, and the problem with which the encoder has ended
// the stream; nil: it has not. The caller gives the buffer back when it has written it.
func (p *pipe) take() (b *buffer, full bool, bad *problem) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, p.buf = p.buf, nil
	if w, ok := p.enc.(withdrawer); ok {
		bad = w.withdrawn(nil)
	}
	return b, p.full, bad
}

// close drops what waits and what comes.
func (p *pipe) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.buf.release()
	p.closed, p.buf = true, nil
}

// A streamWriter writes the bytes of a stream. The head of the answer goes with the first of them.
type streamWriter struct {
	w       http.ResponseWriter
	rc      *http.ResponseController
	timeout time.Duration
	head    func(http.Header)
	started bool
	bounded time.Time // when the deadline of writes was set
	last    time.Time // when something was written
}

// bound bounds the write that follows. The deadline is set anew once an eighth of the time for a write has
// passed: a stream writes often, and each deadline is a timer.
func (s *streamWriter) bound(now time.Time) {
	if now.Sub(s.bounded) > s.timeout/8 {
		s.bounded = now
		_ = s.rc.SetWriteDeadline(now.Add(s.timeout + s.timeout/8)) // a test's writer has none
	}
}

func (s *streamWriter) write(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if !s.started {
		s.started = true
		h := s.w.Header()
		h["Content-Type"], h["Cache-Control"], h["X-Accel-Buffering"] = typeEvents, uncached, noBuffering
		s.head(h)
		s.w.WriteHeader(http.StatusOK)
	}
	s.last = time.Now()
	s.bound(s.last)
	if _, err := s.w.Write(b); err != nil {
		return err
	}
	return s.rc.Flush()
}

func (ex *runStarter) newStreamWriter(w http.ResponseWriter, enc encoder) *streamWriter {
	return &streamWriter{w: w, rc: http.NewResponseController(w), timeout: ex.opts.Limits.WriteTimeout, head: enc.header}
}

// stream begins the run of a job and writes what it says to the client until it is over. It reports true, and has
// written nothing of the run, where another run answers the request: see [job.lost].
func (ex *runStarter) stream(w http.ResponseWriter, r *http.Request, c *caller, j *job, enc encoder) (lost bool) {
	if j.out == nil {
		j.out = ex.newStreamWriter(w, enc)
	}
	out, rc, shown := j.out, j.out.rc, false
	p := newPipe(enc, ex.opts.Limits.MaxBuffer, func() { _ = rc.SetWriteDeadline(time.Unix(1, 0)) }) // a write that waits fails
	if j.in != nil && j.in.Relay != nil {
		j.in.Relay.Take = p.takeRaw
	}
	f, leave, bad := ex.start(r.Context(), c, j, p.nudge, p)
	if bad != nil && j.lost() {
		return true
	}
	if bad != nil && out.started {
		_ = out.write(enc.appendEnd(nil, nil, bad)) // the client left
		return false
	}
	if bad != nil {
		c.fail(w, bad)
		return false
	}
	metrics := ex.opts.Metrics
	if metrics != nil {
		metrics.AddStreamClients(1)
	}
	var unwatch func()
	if f.detach || j.holds != nil { // else its run ends when the client leaves, or the server
		gone, stopping := context.AfterFunc(r.Context(), p.nudge), context.AfterFunc(ex.stopped, p.nudge)
		unwatch = func() { gone(); stopping() }
	}
	out.last = time.Now()
	quiet := time.AfterFunc(ex.opts.Limits.KeepAlive, func() {
		p.late.Store(true)
		p.nudge()
	})
	// It is one deferred call: each takes 48 bytes of the stack, and a few hundred bytes more would make the stack of each open
	// stream grow from 8 to 16 KiB when net/http writes the head of the answer.
	defer func() {
		quiet.Stop()
		if unwatch != nil {
			unwatch()
		}
		_ = rc.SetWriteDeadline(time.Time{}) // the connection may be used again
		if metrics != nil {
			metrics.AddStreamClients(-1)
		}
		p.close()
		leave()
	}()
	paused := int64(-1) // the event after which the stream was held open last
	for {
		<-p.wake
		over := f.isDone() // nothing is said after that
		if over && r.Context().Err() == nil {
			if hold := ex.holdFor(c, j, f.res); hold > 0 && paused != pausedAt(enc) {
				paused = pausedAt(enc)
				leave()
				f, leave = ex.follow(r.Context(), c, c.runID, paused, hold, p.nudge, []event.Sink{p})
				over = false
			}
		}
		broken := p.broken() // before take, which then returns all that was encoded before the panic
		taken, full, bad := p.take()
		var b []byte
		if taken != nil {
			b = taken.b
		}
		switch {
		case r.Context().Err() != nil:
			c.code = "client_gone"
			return false
		case full:
			c.code = "slow_reader"
			return false
		case broken: // the run ends when this returns, unless it is detached
			bad = problems.FailureFor(lathe.ReasonInternal)
			if !out.started && len(b) == 0 {
				enc.header(w.Header())
				c.fail(w, bad)
				return false
			}
			c.code, over = bad.Code, true
			b = enc.appendEnd(b, nil, bad)
		case bad != nil: // the run ends when this returns, unless it is detached
			c.code, over = bad.Code, true
		case over && j.lost() && !shown:
			return true
		case over && j.lost():
			bad = otherRun()
			c.code, b = bad.Code, enc.appendEnd(nil, nil, bad)
		case over:
			bad = problems.Ended(f.res)
			if w, ok := enc.(withdrawer); ok && bad == nil {
				bad = w.withdrawn(f.res)
			}
			j.track.permit(f.res, bad)
			if bad != nil && !out.started && len(b) == 0 {
				enc.header(w.Header())
				c.fail(w, bad)
				return false
			}
			if bad != nil {
				c.code = bad.Code
			}
			b = enc.appendEnd(b, f.res, bad)
		case f.detach && ex.stopped.Err() != nil: // it is left for a later process
			bad = problems.FailureFor(lathe.ReasonInterrupted)
			b, over = enc.appendEnd(b, nil, bad), true
		case p.late.Swap(false):
			shown = shown || len(b) > 0
			left := ex.opts.Limits.KeepAlive - time.Since(out.last)
			if left <= 0 && len(b) == 0 {
				b = appendKeepAlive(b, enc)
			}
			if len(b) > 0 {
				left = ex.opts.Limits.KeepAlive
			}
			quiet.Reset(left)
		default:
			shown = shown || len(b) > 0
		}
		var err error
		if over && bad == nil {
			err = j.track.deliver(r.Context(), f.res, func() error { return out.write(b) })
		} else {
			err = out.write(b)
		}
		if err != nil { // a write that failed may still read the buffer
			c.code = "client_gone"
		} else if taken != nil {
			taken.b = b
			taken.release()
		}
		if over || err != nil {
			return false
		}
	}
}

// appendKeepAlive appends what says nothing in the stream of an encoder: a comment, unless it has its own.
func appendKeepAlive(dst []byte, enc encoder) []byte {
	if own, ok := enc.(interface{ appendKeepAlive(dst []byte) []byte }); ok {
		return own.appendKeepAlive(dst)
	}
	return sse.AppendComment(dst, "keep-alive")
}

// pausedAt returns the id of the last event that the encoder was given.
func pausedAt(enc encoder) int64 {
	if a, ok := enc.(*chat); ok {
		return a.last
	}
	return 0
}
