package gateway

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/lathe-run/lathe/internal/nearest"
)

// A caller is who makes one request, and under what it is made.
type caller struct {
	key       *Key
	setup     *setup
	requestID string
	arrived   time.Time
	openAI    bool // errors are told in OpenAI's shape
	rpc       bool // errors are told in JSON-RPC's shape
	left      bool // the request does not count as work any more
	ollama    bool // errors have Ollama's member besides those of RFC 9457
	// For the request log.
	pattern, named, runID, code string
}

type handler func(w http.ResponseWriter, r *http.Request, c *caller)

// ServeHTTP implements http.Handler.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &caller{setup: g.work.begin(), key: anyone, arrived: time.Now(), openAI: strings.HasPrefix(r.URL.Path, "/v1/"), rpc: r.URL.Path == mcpPath, pattern: "none"}
	c.requestID = requestID(r.Header.Get("X-Request-Id"))
	rec := &recorder{ResponseWriter: w, caller: c}
	h := rec.Header()
	h.Set("X-Request-Id", c.requestID)
	h["X-Content-Type-Options"] = noSniffing
	g.limitBody(rec, r)
	began := g.opts.Now()
	defer c.leave(g)
	defer func() {
		if v := recover(); v != nil {
			if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(v)
			}
			g.opts.Log.Error("a request panicked", "request_id", c.requestID, "route", c.pattern, "panic", fmt.Sprintf("%T", v))
			if rec.status == 0 {
				c.fail(rec, &problem{Status: http.StatusInternalServerError, Code: "internal_error", Message: "The server failed.", NoRetry: true})
			}
		}
		g.log(r, rec, c, g.opts.Now().Sub(began))
	}()
	if strings.HasPrefix(r.URL.Path, clusterPath) && g.shared != nil {
		g.tellDeltas(rec, r, c)
		return
	}
	if p := c.setup.admits(rec, r); p != nil {
		c.fail(rec, p)
		return
	}
	if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
		rec.WriteHeader(http.StatusNoContent)
		return
	}
	g.mux.ServeHTTP(rec, r)
}

// guarded has h answer the requests of callers whose key and limits admit them, each in a place of its kind.
func (g *Gateway) guarded(pattern string, at place, h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := callerOf(w)
		c.pattern = pattern
		key, p := c.setup.key(r)
		if p != nil {
			c.fail(w, p)
			return
		}
		c.key = key
		leave, p := g.usage.enter(key, at, len(c.setup.Keys) > 1)
		if p != nil {
			c.fail(w, p)
			return
		}
		defer leave()
		if p := checkQuery(pattern, r); p != nil {
			c.fail(w, p)
			return
		}
		h(w, r, c)
	})
}

// admits refuses requests that a page of somebody else makes a browser send: those under a name that
// is not ours (a name that was made to point here), and those from another origin.
func (s *setup) admits(w http.ResponseWriter, r *http.Request) *problem {
	if !s.knowsHost(r) {
		return &problem{Status: http.StatusForbidden, Code: "unknown_host",
			Message: "The server is not known under this host name; serve.hosts in the configuration adds it."}
	}
	if err := s.origins.Check(r); err != nil && !preflight(r) {
		return &problem{Status: http.StatusForbidden, Code: "unknown_origin",
			Message: "Pages of this origin may not call the server; serve.origins in the configuration allows it."}
	}
	origin := r.Header.Get("Origin")
	if origin != "" && slices.Contains(s.Origins, origin) {
		allowOrigin(w.Header(), r, origin)
	}
	return nil
}

func preflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
}

func (s *setup) knowsHost(r *http.Request) bool {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || s.hosts[host] {
		return true
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true // a name that points here has to be a name
	}
	if s.Hosts != nil {
		return false
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return len(s.Keys) > 0 && local != nil && !isLoopback(local.String())
}

func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = addr
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// maxRequestID bounds an id that the client gives.
const maxRequestID = 128

// requestID returns the client's id for the request, or a new one.
func requestID(given string) string {
	ok := given != "" && len(given) <= maxRequestID
	for i := range len(given) {
		c := given[i]
		ok = ok && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._-:", c) >= 0)
	}
	if ok {
		return given
	}
	return "req_" + rand.Text()
}

// log writes one line for a request, without anything that it carried.
func (g *Gateway) log(r *http.Request, rec *recorder, c *caller, took time.Duration) {
	level := slog.LevelInfo
	switch {
	case c.pattern == probed:
		level = slog.LevelDebug
	case rec.status >= 500:
		level = slog.LevelWarn
	}
	if !g.opts.Log.Enabled(r.Context(), level) {
		return
	}
	line := slog.NewRecord(time.Now(), level, "request", 0) // the message says where it comes from
	line.AddAttrs(slog.String("request_id", c.requestID), slog.String("method", known(r.Method)), slog.String("route", c.pattern),
		slog.Int("status", rec.status), slog.String("code", c.code), slog.String("key", c.key.Name), slog.String("model", c.named),
		slog.String("run_id", c.runID), slog.Int64("bytes", rec.bytes), slog.Int64("duration_ms", took.Milliseconds()))
	_ = g.opts.Log.Handler().Handle(r.Context(), line) // nobody to tell
}

// probed is what the log says in place of a route that only machines ask, again and again.
const probed = "probe"

// known keeps words that the client makes up out of the log.
func known(method string) string {
	if slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}, method) {
		return method
	}
	return "other"
}

// A recorder remembers what was answered, and to whom.
type recorder struct {
	http.ResponseWriter
	caller *caller
	status int
	bytes  int64
}

// callerOf returns who is answered; nil on a listener of its own.
func callerOf(w http.ResponseWriter) *caller {
	if rec, ok := w.(*recorder); ok {
		return rec.caller
	}
	return nil
}

// WriteHeader implements http.ResponseWriter.
func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *recorder) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	return n, err
}

// Unwrap serves http.ResponseController.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// mean suggests the word that was probably meant.
func mean(s string, words []string) string {
	if w := nearest.Word(s, words); w != "" {
		return " Did you mean " + w + "?"
	}
	return ""
}
