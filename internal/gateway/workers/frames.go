package workers

import (
	"context"
	"time"

	"github.com/coder/websocket"

	"github.com/lathe-run/lathe/internal/wire/workers"
)

// A frameConn sends and receives the frames of one connection.
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

// closed is the reason for the end of a connection, as an error.
type closed struct {
	status websocket.StatusCode
	reason string
	cut    bool // the worker does not read: no close frame is sent
}

func (e *closed) Error() string { return e.reason }

// end ends the connection with a close frame. Only the first reason is used.
func (fc *frameConn) end(status websocket.StatusCode, reason string) {
	fc.cancel(&closed{status: status, reason: reason})
}

// cut ends the connection without a close frame.
func (fc *frameConn) cut(reason string) { fc.cancel(&closed{reason: reason, cut: true}) }

// read returns the next frame. It returns an error if none is received within the time, or if the connection ends.
func (fc *frameConn) read(within time.Duration) (*workers.Frame, error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	kind, b, err := fc.ws.Read(ctx)
	switch {
	case fc.ctx.Err() != nil:
		return nil, context.Cause(fc.ctx)
	case ctx.Err() != nil:
		return nil, &closed{reason: "the worker sent nothing in time", cut: true}
	case err != nil:
		return nil, err
	case kind != websocket.MessageText:
		return nil, &closed{status: websocket.StatusUnsupportedData, reason: "frames are text"}
	}
	f, err := workers.Decode(b)
	if err != nil {
		return nil, &closed{status: websocket.StatusInvalidFramePayloadData, reason: err.Error()}
	}
	if f.Type == workers.Tools && len(b) > workers.MaxHello {
		return nil, &closed{status: websocket.StatusMessageTooBig, reason: "the definitions are too large"}
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
