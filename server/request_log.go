package server

import (
	"cmp"
	"crypto/rand"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"
)

// maxRequestID is the maximum length in bytes of a request id from a client.
const maxRequestID = 128

// requestID returns the id that the client gave if it has only safe characters, else a new random id.
func requestID(given string) string {
	if given != "" && len(given) <= maxRequestID && strings.Trim(given, tokenCharacters+":") == "" {
		return given
	}
	return "req_" + rand.Text()
}

// logRequest logs one line for a request, without its content. Requests with status 500 and above have level warn, probes
// level debug, all others level info.
func (g *gate) logRequest(r *http.Request, rec *recorder, took time.Duration) {
	c := rec.caller
	level := slog.LevelInfo
	switch {
	case c.probe:
		level = slog.LevelDebug
	case rec.status >= 500:
		level = slog.LevelWarn
	}
	if !g.opts.Log.Enabled(r.Context(), level) {
		return
	}
	route := c.routeName()
	if c.probe {
		route = "probe"
	}
	line := slog.NewRecord(time.Now(), level, "request", 0) // no source position
	line.AddAttrs(slog.String("request_id", c.requestID), slog.String("method", knownMethod(r.Method)), slog.String("route", route),
		slog.Int("status", rec.status), slog.String("code", c.code), slog.String("key", c.key.configured()), slog.String("model", c.named),
		slog.String("run_id", c.runID), slog.Int64("bytes", rec.bytes), slog.Int64("duration_ms", took.Milliseconds()))
	if c.key.Profile != "" {
		line.AddAttrs(slog.String("principal", c.key.Name))
	}
	_ = g.opts.Log.Handler().Handle(r.Context(), line)
}

// routeName returns the name of the request's route in metrics and in the log; "none" if it has no route.
func (c *caller) routeName() string { return cmp.Or(c.pattern, "none") }

// knownMethod returns the method if it is a standard one, else "other", so that text of clients does not get into the log.
func knownMethod(method string) string {
	if slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}, method) {
		return method
	}
	return "other"
}

// A recorder is the ResponseWriter of every request: it records the status, the size and the time of the first byte.
type recorder struct {
	http.ResponseWriter
	caller *caller
	now    func() time.Time
	status int
	first  time.Time // when the response began
	bytes  int64
}

// callerOf returns the caller of the request to which w belongs; nil on a listener without the middleware.
func callerOf(w http.ResponseWriter) *caller {
	if rec, ok := w.(*recorder); ok {
		return rec.caller
	}
	return nil
}

// begin records the status and the time at which the response begins. Only the first call has an effect.
func (w *recorder) begin(status int) {
	if w.status == 0 {
		w.status, w.first = status, w.now()
	}
}

// WriteHeader implements http.ResponseWriter.
func (w *recorder) WriteHeader(status int) {
	w.begin(status)
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *recorder) Write(b []byte) (int, error) {
	w.begin(http.StatusOK)
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	return n, err
}

// Unwrap returns the wrapped writer, for http.ResponseController.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }
