package responses

import (
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

// A wholeWriter writes an answer that is not streamed: the response object with which its stream would end.
type wholeWriter struct {
	*writer
	events []byte // buffer for events, which are discarded
}

// AppendStart implements [wire.Writer].
func (*wholeWriter) AppendStart(dst []byte) []byte { return dst }

// AppendDelta implements [wire.Writer].
func (w *wholeWriter) AppendDelta(dst []byte, d lathe.Delta) []byte {
	w.events = w.writer.AppendDelta(w.events[:0], d)
	return dst
}

// AppendServerCall implements [wire.Writer].
func (w *wholeWriter) AppendServerCall(dst []byte, c *wire.ServerCall) []byte {
	w.events = w.writer.AppendServerCall(w.events[:0], c)
	return dst
}

// AppendApproval implements [wire.Writer].
func (w *wholeWriter) AppendApproval(dst []byte, a *wire.Approval) []byte {
	w.events = w.writer.AppendApproval(w.events[:0], a)
	return dst
}

// AppendCarrier implements [wire.Writer].
func (w *wholeWriter) AppendCarrier(dst []byte, seal string) []byte {
	w.events = w.writer.AppendCarrier(w.events[:0], seal)
	return dst
}

// AppendFinish implements [wire.Writer].
func (w *wholeWriter) AppendFinish(dst []byte, f *lathe.Finish, extra []lathe.Member) []byte {
	w.events = w.events[:0]
	s := w.complete(&w.events, f)
	s.extra = extra
	return w.res.append(dst, s)
}
