package observe

import (
	"context"
	"io"
	"sync"

	"github.com/lathe-run/lathe/event"
)

var _ event.Sink = (*JSONLines)(nil)

// A JSONLines writes each event as one JSON line, with one call of Write. Its methods may be called from several goroutines at once. After
// the first error it writes nothing more.
type JSONLines struct {
	opts JSONLinesOptions

	mu  sync.Mutex
	w   io.Writer
	buf []byte
	err error
}

// JSONLinesOptions configure a [JSONLines].
type JSONLinesOptions struct {
	Content bool // include the text of arguments, outputs and messages
	Deltas  bool // include delta events, which are never stored
}

// maxKeptBuffer is the maximum size of the buffer that is reused for the next line, in bytes, so that one large event does not retain its
// memory.
const maxKeptBuffer = 256 << 10

// NewJSONLines returns a sink that writes to w. It blocks on w: a slow writer slows the runs. opts may be nil.
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

// Err returns the first error of the writer, or of an event without a JSON form.
func (l *JSONLines) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}
