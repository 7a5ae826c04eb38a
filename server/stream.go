package server

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	problems "github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/gateway/stream"
)

// The answer to a request is streamed by two goroutines. The goroutine of the run passes its events to a [stream.Pipe], which
// encodes them. The goroutine of the request takes the bytes from the pipe and writes them to the client.

// newStreamWriter returns a writer for the response. The encoder sets the headers before the first byte.
func (rv *runViews) newStreamWriter(w http.ResponseWriter, enc stream.Encoder) *stream.Writer {
	return stream.NewWriter(w, rv.opts.Limits.WriteTimeout, enc.Header)
}

// stream begins the run of a job and writes its events to the client until the run is over. lost is true, and nothing of
// the run was written, if another run answers the request: see [job.lost].
func (ex *runStarter) stream(w http.ResponseWriter, r *http.Request, c *caller, j *job, enc stream.Encoder) (lost bool) {
	if j.out == nil {
		j.out = ex.newStreamWriter(w, enc)
	}
	s := &openStream{ex: ex, w: w, r: r, caller: c, job: j, enc: enc, out: j.out, paused: -1}
	s.pipe = stream.NewPipe(enc, ex.opts.Limits.MaxBuffer, s.out.Cut)
	if relay := j.relay(); relay != nil {
		relay.Take = s.pipe.TakeRaw
	}
	var bad *problem
	if s.run, s.leave, bad = ex.start(r.Context(), c, j, s.pipe.Nudge, s.pipe); bad != nil {
		return s.notStarted(bad)
	}
	s.open()
	defer s.close()
	for {
		<-s.pipe.Wake()
		switch s.step() {
		case streamEnded:
			return false
		case streamSuperseded:
			return true
		}
	}
}

// A streamState is the state of an answer after a step.
type streamState int

const (
	streaming        streamState = iota
	streamEnded                  // the response is complete, or its client left
	streamSuperseded             // another run answers the request, and nothing was written
)

// An openStream is the stream of one answer to a client. Only the goroutine of the request uses it. It is allocated on the
// heap: a few hundred bytes more would make the stack of each open stream grow from 8 to 16 KiB when net/http writes the
// head of the response.
type openStream struct {
	ex     *runStarter
	w      http.ResponseWriter
	r      *http.Request
	caller *caller
	job    *job
	enc    stream.Encoder
	out    *stream.Writer
	pipe   *stream.Pipe
	run    *inflightRun
	leave  func() // detaches the client from the run; called once for each run

	unwatch func()      // stops the notifications that the client left or the server stops; nil if the run ends in those cases anyway
	quiet   *time.Timer // fires when a keep-alive may be due
	late    atomic.Bool // quiet has fired
	shown   bool        // bytes of the run were encoded
	paused  int64       // the id of the event after which the stream was last held open; -1: it was not
}

// notStarted writes the problem of a run that did not begin. It returns true, and writes nothing, if another run answers
// the request.
func (s *openStream) notStarted(bad *problem) (lost bool) {
	switch {
	case s.job.lost():
		return true
	case s.out.Started:
		_ = s.out.Write(s.enc.AppendEnd(nil, nil, bad)) // an error means that the client has left
	default:
		s.caller.fail(s.w, bad)
	}
	return false
}

// open counts the client, and starts the keep-alive timer and the notifications that wake the stream.
func (s *openStream) open() {
	s.count(1)
	if s.run.detach || s.job.holds != nil { // other runs end when the client leaves or the server stops, and that wakes the stream
		gone, stopping := context.AfterFunc(s.r.Context(), s.pipe.Nudge), context.AfterFunc(s.ex.stopped, s.pipe.Nudge)
		s.unwatch = func() { gone(); stopping() }
	}
	s.out.Last = time.Now()
	s.quiet = time.AfterFunc(s.ex.opts.Limits.KeepAlive, func() {
		s.late.Store(true)
		s.pipe.Nudge()
	})
}

// close ends the response, stops all that open started, and detaches the client from the run.
func (s *openStream) close() {
	s.quiet.Stop()
	if s.unwatch != nil {
		s.unwatch()
	}
	s.out.End()
	s.count(-1)
	s.pipe.Close()
	s.leave()
}

// isWhole reports whether the answer is not streamed: the client gets it in one piece.
func isWhole(enc stream.Encoder) bool {
	_, whole := enc.(*wholeAnswer)
	return whole
}

func (s *openStream) count(n int) {
	if m := s.ex.opts.Metrics; m != nil && !isWhole(s.enc) {
		m.AddStreamClients(n)
	}
}

// step writes all that was encoded since the last step.
func (s *openStream) step() streamState {
	isOver := s.run.isDone() && !s.hold() // read before the pipe: once the run is done it emits nothing more
	broken := s.pipe.Broken()             // read before Take: if it is set, Take returns all that was encoded before the panic
	taken, full, bad := s.pipe.Take()
	var b []byte
	if taken != nil {
		b = taken.B
	}
	switch {
	case s.r.Context().Err() != nil:
		s.caller.code = "client_gone"
		return streamEnded
	case full:
		s.caller.code = "slow_reader"
		return streamEnded
	case broken: // the encoder panicked; the run ends when stream returns, unless it is detached
		return s.fail(taken, b, nil, problems.FailureFor(lathe.ReasonInternal))
	case bad != nil: // the encoder has ended the stream; the run ends when stream returns, unless it is detached
		s.caller.code = bad.Code
		return s.finish(taken, b, bad)
	case isOver && s.job.lost() && !s.shown:
		return streamSuperseded
	case isOver:
		return s.end(taken, b)
	case s.run.detach && s.ex.stopped.Err() != nil: // a later process resumes the run
		bad = problems.FailureFor(lathe.ReasonInterrupted)
		if isWhole(s.enc) {
			return s.fail(taken, b, nil, bad)
		}
		return s.finish(taken, s.enc.AppendEnd(b, nil, bad), bad)
	}
	s.shown = s.shown || len(b) > 0
	b = s.keepAlive(b)
	return s.wrote(taken, b, s.out.Write(b))
}

// hold keeps the stream open while the run is suspended, and returns true, if the job allows that: it follows the run until
// it resumes or the time is over.
func (s *openStream) hold() bool {
	if s.r.Context().Err() != nil {
		return false
	}
	hold := s.ex.holdFor(s.caller, s.job, s.run.res)
	if isWhole(s.enc) {
		hold = min(hold, maxWholeHold)
	}
	if hold <= 0 || s.paused == pausedAt(s.enc) {
		return false
	}
	s.paused = pausedAt(s.enc)
	s.leave()
	s.run, s.leave = s.ex.follow(s.r.Context(), s.caller, following{s.caller.runID, s.paused}, hold, s.pipe.Nudge, []event.Sink{s.pipe})
	return true
}

// In the functions below, b is what was encoded and not written yet, and taken is the buffer of the pipe that b is or was appended
// to; nil if none exists.

// fail ends the answer with a problem: in the stream or, if nothing of the response exists, as the response.
func (s *openStream) fail(taken *stream.Buffer, b []byte, res *event.Result, bad *problem) streamState {
	if !s.out.Started && len(b) == 0 {
		s.enc.Header(s.w.Header())
		s.caller.fail(s.w, bad)
		return streamEnded
	}
	s.caller.code = bad.Code
	return s.finish(taken, s.enc.AppendEnd(b, res, bad), bad)
}

// end ends the answer of a run that is over.
func (s *openStream) end(taken *stream.Buffer, b []byte) streamState {
	if s.job.lost() { // another run was first to record that it answers the request
		bad := problems.New(http.StatusServiceUnavailable, "retry_run_active",
			"Another run answers an equal request. Send the request again to get its answer, or with %s: true to have a run of its own.", newRunHeader)
		s.caller.code = bad.Code
		return s.finish(taken, s.enc.AppendEnd(nil, nil, bad), bad)
	}
	res := s.run.res
	bad := problems.Ended(res)
	if w, ok := s.enc.(stream.Withdrawer); ok && bad == nil {
		bad = w.Withdrawn(res)
	}
	s.job.track.adviseRetry(res, bad)
	if bad != nil {
		return s.fail(taken, b, res, bad)
	}
	return s.finish(taken, s.enc.AppendEnd(b, res, nil), nil)
}

// keepAlive appends a keep-alive if one is due and b is empty, and restarts the timer.
func (s *openStream) keepAlive(b []byte) []byte {
	if !s.late.Swap(false) {
		return b
	}
	left := s.ex.opts.Limits.KeepAlive - time.Since(s.out.Last)
	if left <= 0 && len(b) == 0 {
		b = stream.AppendKeepAlive(b, s.enc)
	}
	if len(b) > 0 || left <= 0 {
		left = s.ex.opts.Limits.KeepAlive
	}
	s.quiet.Reset(left)
	return b
}

// finish writes b, the end of the stream. bad is the problem with which it ends; nil: it ends with the answer of the run.
func (s *openStream) finish(taken *stream.Buffer, b []byte, bad *problem) streamState {
	var err error
	if bad == nil {
		err = s.job.track.deliver(s.r.Context(), s.run.res, func() error { return s.out.Write(b) })
	} else {
		err = s.out.Write(b)
	}
	s.wrote(taken, b, err)
	return streamEnded
}

// wrote handles the result err of a write of b: it releases the buffer, or ends the answer if the write failed.
func (s *openStream) wrote(taken *stream.Buffer, b []byte, err error) streamState {
	if err != nil { // a failed write may still read the buffer, so it is not released
		s.caller.code = "client_gone"
		return streamEnded
	}
	if taken != nil {
		taken.B = b
		taken.Release()
	}
	return streaming
}

// pausedAt returns the id of the last event that was passed to the encoder; 0 if the encoder does not count.
func pausedAt(enc stream.Encoder) int64 {
	if a, ok := enc.(interface{ lastEvent() int64 }); ok {
		return a.lastEvent()
	}
	return 0
}
