package workers

import (
	"context"
	"errors"
	"time"

	"github.com/coder/websocket"

	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/internal/wire/workers"
	"github.com/lathe-run/lathe/remote"
)

// A frameConn sends and receives the frames of one connection. ctx is done when the connection is to end; its cause is the reason. serve
// sets ws before any other method is called.
type frameConn struct {
	began   time.Time
	timeout time.Duration // for writing one frame
	ctx     context.Context
	cancel  context.CancelCauseFunc
	ws      *websocket.Conn
	// outbox contains frames from the goroutine that reads. If that goroutine wrote them itself, both ends could block on a write.
	outbox chan *workers.Frame
}

func newFrameConn(timeout time.Duration) *frameConn {
	fc := &frameConn{began: time.Now(), timeout: timeout, outbox: make(chan *workers.Frame, maxOutbox)}
	fc.ctx, fc.cancel = context.WithCancelCause(context.Background())
	return fc
}

// A closeError is the reason why the gateway ends a connection. It is the cause of the context of the connection.
type closeError struct {
	status websocket.StatusCode
	reason string
	cut    bool // the worker does not read: no close frame is sent
}

func (e *closeError) Error() string { return e.reason }

// closing returns the reason for an end with a close frame.
func closing(status websocket.StatusCode, reason string) *closeError {
	return &closeError{status: status, reason: reason}
}

// closeWhenDone closes the WebSocket when the connection has ended: with a close frame, unless the connection was cut.
func (fc *frameConn) closeWhenDone() {
	<-fc.ctx.Done()
	var end *closeError
	if errors.As(context.Cause(fc.ctx), &end) && !end.cut {
		_ = fc.ws.Close(end.status, text.Cut(end.reason, 120)) // waits briefly for the close frame of the worker
	}
	_ = fc.ws.CloseNow()
}

// end ends the connection with a close frame. Only the first reason is used.
func (fc *frameConn) end(status websocket.StatusCode, reason string) {
	fc.cancel(closing(status, reason))
}

// cut ends the connection without a close frame.
func (fc *frameConn) cut(reason string) { fc.cancel(&closeError{reason: reason, cut: true}) }

// read returns the next frame. It returns an error if none is received within the time, or if the connection ends.
func (fc *frameConn) read(within time.Duration) (*workers.Frame, error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	kind, b, err := fc.ws.Read(ctx)
	switch {
	case fc.ctx.Err() != nil:
		return nil, context.Cause(fc.ctx)
	case ctx.Err() != nil:
		return nil, &closeError{reason: "the worker sent nothing in time", cut: true}
	case err != nil:
		return nil, err
	case kind != websocket.MessageText:
		return nil, closing(websocket.StatusUnsupportedData, "frames are text")
	}
	f, err := workers.Decode(b)
	if err != nil {
		return nil, closing(websocket.StatusInvalidFramePayloadData, err.Error())
	}
	if f.Type == workers.Tools && len(b) > workers.MaxHello {
		return nil, closing(websocket.StatusMessageTooBig, "the definitions are too large")
	}
	return f, nil
}

// hello receives the first frame.
func (fc *frameConn) hello(within time.Duration) (*workers.Frame, error) {
	if fc.ws.Subprotocol() != workers.Protocol {
		return nil, closing(websocket.StatusPolicyViolation, "the subprotocol has to be "+workers.Protocol)
	}
	f, err := fc.read(within)
	if err != nil {
		return nil, err
	}
	if f.Type != workers.Hello || !workers.ValidName(f.Worker) {
		return nil, closing(websocket.StatusPolicyViolation, "the first frame is a hello with the name of the worker: 1 to 64 of a-z, A-Z, 0-9, _, - and dots")
	}
	return f, nil
}

// write sends a frame and reports whether it was sent. If that fails or exceeds the timeout, write cuts the connection.
func (fc *frameConn) write(f *workers.Frame) bool {
	b, err := workers.Encode(f)
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), fc.timeout)
		err = fc.ws.Write(ctx, websocket.MessageText, b)
		cancel()
	}
	if err != nil {
		fc.cut("the worker does not take what it is sent")
	}
	return err == nil
}

// post queues a frame for sendPosts. If the queue is full, post cuts the connection, because the worker does not read.
func (fc *frameConn) post(f *workers.Frame) {
	select {
	case fc.outbox <- f:
	default:
		fc.cut("the worker does not take what it is sent")
	}
}

// postCancel queues a cancel frame for each call.
func (fc *frameConn) postCancel(refs []remote.Ref) {
	for _, r := range refs {
		fc.post(&workers.Frame{Type: workers.Cancel, Ref: workers.Ref{Key: r.Key, Attempt: r.Attempt}})
	}
}

// beat sends a beat frame at each interval.
func (fc *frameConn) beat(every time.Duration) {
	tick := time.Tick(every)
	for {
		select {
		case <-tick:
			fc.write(&workers.Frame{Type: workers.Beat, AtMS: fc.at()})
		case <-fc.ctx.Done():
			return
		}
	}
}

// sendPosts sends the queued frames.
func (fc *frameConn) sendPosts() {
	for {
		select {
		case f := <-fc.outbox:
			fc.write(f)
		case <-fc.ctx.Done():
			return
		}
	}
}

// at returns the milliseconds since the connection began, which is the clock of its frames.
func (fc *frameConn) at() int64 { return time.Since(fc.began).Milliseconds() }
