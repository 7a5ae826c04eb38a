package observe

import (
	"context"
	"io"
	"sync"

	"github.com/lathe-run/lathe/event"
)

var _ event.Sink = (*JSONLines)(nil)

// A JSONLines is an [event.Sink] that writes each event as one line of JSON, with one call of Write. After the first error it writes
// nothing more: see [JSONLines.Err]. Its methods may be called from several goroutines at once; calls of Write never overlap.
type JSONLines struct {
	opts JSONLinesOptions

	mu  sync.Mutex
	w   io.Writer
	buf []byte
	err error
}

// JSONLinesOptions configure a [JSONLines].
type JSONLinesOptions struct {
	Content bool // include texts of messages, arguments and outputs, as [event.Event.MarshalJSON] does
	Deltas  bool // include the events for which [event.IsDelta] is true
}

// maxKeptBuffer is the maximum size of the buffer that is reused for the next line, in bytes, so that one large event does not retain its
// memory.
const maxKeptBuffer = 256 << 10

// NewJSONLines returns a sink that writes to w. Emit blocks while w blocks, so a slow writer slows down the runs. opts may be nil: no
// content, no deltas.
func NewJSONLines(w io.Writer, opts *JSONLinesOptions) *JSONLines {
	l := &JSONLines{w: w}
	if opts != nil {
		l.opts = *opts
	}
	return l
}

// Emit implements [event.Sink].
func (l *JSONLines) Emit(_ context.Context, e event.Event) {
	if !l.opts.Deltas && event.IsDelta(e.Data) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return
	}
	line := event.Event.AppendWithoutContent
	if l.opts.Content {
		line = event.Event.AppendWithContent
	}
	b, err := line(e, l.buf[:0])
	if err != nil {
		l.err = err
		return
	}
	b = append(b, '\n')
	if cap(b) <= maxKeptBuffer {
		l.buf = b
	}
	_, l.err = l.w.Write(b)
}

// Err returns the first error of the writer or of the encoding of an event, or nil if no error has occurred.
func (l *JSONLines) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}
