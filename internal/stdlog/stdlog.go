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

// kinds are the known lines, by prefix. If text is true, the rest of the line is an error text of the operating system and is logged too.
var kinds = []struct {
	prefix, name string
	level        slog.Level
	text         bool
}{
	{"http: Accept error: ", "connections cannot be accepted", slog.LevelError, true},
	{"http: panic serving ", "a handler panicked", slog.LevelError, false},
	{"Unsolicited response ", "a server sent an unsolicited response", slog.LevelWarn, false},
	{"http: TLS handshake error ", "a TLS handshake failed", slog.LevelDebug, false},
}

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
			if k.text {
				attrs = append(attrs, slog.String("error", strings.TrimSpace(rest)))
			}
			break
		}
	}
	if more, ok := w.due(name); ok {
		if more > 0 {
			attrs = append(attrs, slog.Int("more", more))
		}
		w.log.LogAttrs(context.Background(), level, name, attrs...)
	}
	return len(b), nil
}

// due reports whether a line of the kind is to be logged now, and the number of lines suppressed since the last one. It counts the line.
func (w *writer) due(kind string) (more int, ok bool) {
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
