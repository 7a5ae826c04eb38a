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
	s := &openStream{ex: ex, w: w, r: r, caller: c, job: j, enc: enc, out: j.out, paused: -1}
	s.pipe = newPipe(enc, ex.opts.Limits.MaxBuffer, func() { _ = s.out.rc.SetWriteDeadline(time.Unix(1, 0)) }) // a write that waits fails
	if j.in != nil && j.in.Relay != nil {
		j.in.Relay.Take = s.pipe.takeRaw
	}
	var bad *problem
	if s.run, s.leave, bad = ex.start(r.Context(), c, j, s.pipe.nudge, s.pipe); bad != nil {
		return s.notStarted(bad)
	}
	s.open()
	defer s.close()
	for {
		<-s.pipe.wake
		if over, lost := s.step(); over {
			return lost
		}
	}
}

// An openStream is the stream of one answer to a client. The goroutine of the request uses it. It is on the heap: a few hundred bytes more would
// make the stack of each open stream grow from 8 to 16 KiB when net/http writes the head of the answer.
type openStream struct {
	ex     *runStarter
	w      http.ResponseWriter
	r      *http.Request
	caller *caller
	job    *job
	enc    encoder
	out    *streamWriter
	pipe   *pipe
	run    *inflightRun
	leave  func() // leaves the run

	unwatch func()      // nil: the run ends when the client leaves, or the server
	quiet   *time.Timer // until a sign of life is due
	shown   bool        // something of the run was written
	paused  int64       // the event after which the stream was held open last
}

// notStarted answers a request whose run did not begin. It reports true where another run answers it.
func (s *openStream) notStarted(bad *problem) (lost bool) {
	switch {
	case s.job.lost():
		return true
	case s.out.started:
		_ = s.out.write(s.enc.appendEnd(nil, nil, bad)) // the client left
	default:
		s.caller.fail(s.w, bad)
	}
	return false
}

func (s *openStream) open() {
	if m := s.ex.opts.Metrics; m != nil {
		m.AddStreamClients(1)
	}
	if s.run.detach || s.job.holds != nil { // else its run ends when the client leaves, or the server
		gone, stopping := context.AfterFunc(s.r.Context(), s.pipe.nudge), context.AfterFunc(s.ex.stopped, s.pipe.nudge)
		s.unwatch = func() { gone(); stopping() }
	}
	s.out.last = time.Now()
	s.quiet = time.AfterFunc(s.ex.opts.Limits.KeepAlive, func() {
		s.pipe.late.Store(true)
		s.pipe.nudge()
	})
}

func (s *openStream) close() {
	s.quiet.Stop()
	if s.unwatch != nil {
		s.unwatch()
	}
	_ = s.out.rc.SetWriteDeadline(time.Time{}) // the connection may be used again
	if m := s.ex.opts.Metrics; m != nil {
		m.AddStreamClients(-1)
	}
	s.pipe.close()
	s.leave()
}

// step writes what there is to write. over is set if the stream has ended, and lost if another run answers the request.
func (s *openStream) step() (over, lost bool) {
	over = s.run.isDone() && !s.hold() // nothing is said after that
	broken := s.pipe.broken()          // before take, which then returns all that was encoded before the panic
	taken, full, bad := s.pipe.take()
	var b []byte
	if taken != nil {
		b = taken.b
	}
	switch {
	case s.r.Context().Err() != nil:
		s.caller.code = "client_gone"
		return true, false
	case full:
		s.caller.code = "slow_reader"
		return true, false
	case broken: // the run ends when this returns, unless it is detached
		if bad = problems.FailureFor(lathe.ReasonInternal); s.failWhole(b, bad) {
			return true, false
		}
		s.caller.code, over = bad.Code, true
		b = s.enc.appendEnd(b, nil, bad)
	case bad != nil: // the run ends when this returns, unless it is detached
		s.caller.code, over = bad.Code, true
	case over && s.job.lost() && !s.shown:
		return true, true
	case over:
		var failed bool
		if b, bad, failed = s.end(b); failed {
			return true, false
		}
	case s.run.detach && s.ex.stopped.Err() != nil: // it is left for a later process
		bad, over = problems.FailureFor(lathe.ReasonInterrupted), true
		b = s.enc.appendEnd(b, nil, bad)
	default:
		b = s.keepAlive(b)
	}
	return s.write(taken, b, bad, over), false
}

// hold follows the run further if it waits and the stream is held open until it goes on.
func (s *openStream) hold() bool {
	if s.r.Context().Err() != nil {
		return false
	}
	hold := s.ex.holdFor(s.caller, s.job, s.run.res)
	if hold <= 0 || s.paused == pausedAt(s.enc) {
		return false
	}
	s.paused = pausedAt(s.enc)
	s.leave()
	s.run, s.leave = s.ex.follow(s.r.Context(), s.caller, s.caller.runID, s.paused, hold, s.pipe.nudge, []event.Sink{s.pipe})
	return true
}

// failWhole answers with a problem in place of a stream of which nothing was written, b included. It reports false if something was.
func (s *openStream) failWhole(b []byte, bad *problem) bool {
	if s.out.started || len(b) > 0 {
		return false
	}
	s.enc.header(s.w.Header())
	s.caller.fail(s.w, bad)
	return true
}

// end appends the end of the stream of a run that is over, to what was encoded before. failed is set if the client got the problem as a
// response.
func (s *openStream) end(b []byte) (_ []byte, bad *problem, failed bool) {
	if s.job.lost() {
		bad = otherRun()
		s.caller.code = bad.Code
		return s.enc.appendEnd(nil, nil, bad), bad, false
	}
	res := s.run.res
	bad = problems.Ended(res)
	if w, ok := s.enc.(withdrawer); ok && bad == nil {
		bad = w.withdrawn(res)
	}
	s.job.track.permit(res, bad)
	if bad != nil {
		if s.failWhole(b, bad) {
			return nil, bad, true
		}
		s.caller.code = bad.Code
	}
	return s.enc.appendEnd(b, res, bad), bad, false
}

// keepAlive appends a sign of life if it is time for one and nothing else is written.
func (s *openStream) keepAlive(b []byte) []byte {
	s.shown = s.shown || len(b) > 0
	if !s.pipe.late.Swap(false) {
		return b
	}
	left := s.ex.opts.Limits.KeepAlive - time.Since(s.out.last)
	if left <= 0 && len(b) == 0 {
		b = appendKeepAlive(b, s.enc)
	}
	if len(b) > 0 {
		left = s.ex.opts.Limits.KeepAlive
	}
	s.quiet.Reset(left)
	return b
}

// write writes b, the buffer taken or what was appended to it, and reports whether the stream has ended: over says that it is the end, with the
// problem bad.
func (s *openStream) write(taken *buffer, b []byte, bad *problem, over bool) (ended bool) {
	var err error
	if over && bad == nil {
		err = s.job.track.deliver(s.r.Context(), s.run.res, func() error { return s.out.write(b) })
	} else {
		err = s.out.write(b)
	}
	if err != nil { // a write that failed may still read the buffer
		s.caller.code = "client_gone"
	} else if taken != nil {
		taken.b = b
		taken.release()
	}
	return over || err != nil
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
