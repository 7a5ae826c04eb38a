// Package stdlog writes the lines of standard library loggers to a slog.Logger. Such lines can quote up to 4 KB of what a peer sent: only
// the kind of a line is logged.
package stdlog

import (
	"context"
	"io"
	"log"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// kinds are the known lines, by prefix.
var kinds = []struct {
	prefix, name string
	level        slog.Level
	logRest      bool // the rest of the line is an error text of the operating system, and is logged, too
}{
	{"http: Accept error: ", "connections cannot be accepted", slog.LevelError, withRest},
	{"http: panic serving ", "a handler panicked", slog.LevelError, kindOnly},
	{"Unsolicited response ", "a server sent an unsolicited response", slog.LevelWarn, kindOnly},
	{"http: TLS handshake error ", "a TLS handshake failed", slog.LevelDebug, kindOnly},
}

const withRest, kindOnly = true, false

// interval is the time within which at most one line of each kind is logged.
const interval = 10 * time.Second

type writer struct {
	log *slog.Logger
	now func() time.Time

	mu   sync.Mutex
	last map[string]time.Time // kind → time at which a line was last logged
	more map[string]int       // kind → number of lines that have not been logged since then
}

// Writer returns the writer for log.SetOutput. If to is nil, it discards every line. It logs at most one line of each kind in ten seconds,
// with the number of suppressed lines.
func Writer(to *slog.Logger) io.Writer {
	if to == nil {
		return io.Discard
	}
	return newWriter(to, time.Now)
}

// Logger returns the logger for http.Server.ErrorLog.
func Logger(to *slog.Logger) *log.Logger { return log.New(Writer(to), "", 0) }

func newWriter(to *slog.Logger, now func() time.Time) *writer {
	return &writer{log: to, now: now, last: map[string]time.Time{}, more: map[string]int{}}
}

// Write logs one line of package log.
func (w *writer) Write(b []byte) (int, error) {
	line := string(b[:min(len(b), 512)])
	name, level := "a library wrote to the standard logger", slog.LevelDebug
	var attrs []slog.Attr
	for _, k := range kinds {
		if _, rest, ok := strings.Cut(line, k.prefix); ok { // package log may put the time before the prefix
			name, level = k.name, k.level
			if k.logRest {
				attrs = append(attrs, slog.String("error", strings.TrimSpace(rest)))
			}
			break
		}
	}
	if more, ok := w.admit(name); ok {
		if more > 0 {
			attrs = append(attrs, slog.Int("more", more))
		}
		w.log.LogAttrs(context.Background(), level, name, attrs...)
	}
	return len(b), nil
}

// admit counts a line of the kind. If the line is to be logged now, ok is true and more is the number of lines suppressed since the last one.
func (w *writer) admit(kind string) (more int, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	if last, seen := w.last[kind]; seen && now.Sub(last) < interval {
		w.more[kind]++
		return 0, false
	}
	more = w.more[kind]
	w.last[kind], w.more[kind] = now, 0
	return more, true
}
