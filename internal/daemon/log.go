package daemon

import (
	"context"
	"io"
	"log"
	"log/slog"
	"sync"
	"time"

	"github.com/lathe-run/lathe/internal/stdlog"
)

// NewLog returns a logger that writes lines of at least the level to w. If level is "", it discards all lines. format is text or json; ""
// means text.
func NewLog(w io.Writer, level, format string) (*slog.Logger, error) {
	if format != "" && format != "text" && format != "json" {
		return nil, usage("--log-format %q: want text or json", format)
	}
	if level == "" {
		return slog.New(slog.DiscardHandler), nil
	}
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, usage("--log %q: want debug, info, warn or error", level)
	}
	opts := &slog.HandlerOptions{Level: l}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	}
	return slog.New(slog.NewTextHandler(w, opts)), nil
}

// Limits of buffered log lines. A gateway that serves thousands of requests a second writes several lines in one write, because a write
// costs more than formatting a line.

const (
	logDelay = 100 * time.Millisecond // longest delay of a line that is not urgent
	logSpace = 16 << 10               // bytes of buffered lines
)

// A gatheredLog buffers lines, to write several at once. It may be used from several goroutines at once.
type gatheredLog struct {
	w io.Writer

	mu    sync.Mutex
	lines []byte
	timer *time.Timer // not nil while lines are buffered
}

// Write buffers b, which must consist of complete lines.
func (g *gatheredLog) Write(b []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lines = append(g.lines, b...); len(g.lines) >= logSpace {
		return len(b), g.write()
	}
	if g.timer == nil {
		g.timer = time.AfterFunc(logDelay, g.flush)
	}
	return len(b), nil
}

// write writes the buffered lines. The caller must have locked g.mu.
func (g *gatheredLog) write() error {
	if g.timer != nil {
		g.timer.Stop()
		g.timer = nil
	}
	if len(g.lines) == 0 {
		return nil
	}
	_, err := g.w.Write(g.lines)
	if g.lines = g.lines[:0]; cap(g.lines) > 4*logSpace {
		g.lines = nil
	}
	return err
}

func (g *gatheredLog) flush() {
	g.mu.Lock()
	defer g.mu.Unlock()
	_ = g.write() // there is nowhere to report the error
}

// direct returns a writer that first writes the buffered lines and then writes its argument at once.
func (g *gatheredLog) direct() io.Writer { return directLog{g} }

type directLog struct{ g *gatheredLog }

func (d directLog) Write(b []byte) (int, error) {
	d.g.mu.Lock()
	defer d.g.mu.Unlock()
	if err := d.g.write(); err != nil {
		return 0, err
	}
	return d.g.w.Write(b)
}

// logger returns a logger like of, which writes to g, except that warnings and errors flush g at once.
func (g *gatheredLog) logger(of *slog.Logger) *slog.Logger { return slog.New(urgent{of.Handler(), g}) }

type urgent struct {
	slog.Handler
	log *gatheredLog
}

// Handle implements [slog.Handler].
func (u urgent) Handle(ctx context.Context, r slog.Record) error {
	err := u.Handler.Handle(ctx, r)
	if r.Level >= slog.LevelWarn {
		u.log.flush()
	}
	return err
}

// WithAttrs implements [slog.Handler].
func (u urgent) WithAttrs(attrs []slog.Attr) slog.Handler {
	return urgent{u.Handler.WithAttrs(attrs), u.log}
}

// WithGroup implements [slog.Handler].
func (u urgent) WithGroup(name string) slog.Handler { return urgent{u.Handler.WithGroup(name), u.log} }

// TakeStandardLog makes the standard logger write to to, which logs only the kind of each line, until restore is called.
func TakeStandardLog(to *slog.Logger) (restore func()) {
	log.SetOutput(stdlog.Writer(to))
	return func() { log.SetOutput(stdlog.Writer(nil)) }
}
