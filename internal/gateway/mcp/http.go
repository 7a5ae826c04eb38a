package mcp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lathe-run/lathe/internal/gateway/middleware"
	"github.com/lathe-run/lathe/internal/httpname"
	"github.com/lathe-run/lathe/internal/jsonrpc2"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/setting"
)

// HTTPOptions are the callers and limits of the HTTP handler.
type HTTPOptions struct {
	// Identify returns the caller of a request. If it returns false, the request is answered with 401. nil: every caller is the caller
	// without a name.
	Identify func(*http.Request) (Caller, bool)
	// Admitted is set if the caller of the handler has already checked Host, Origin and limits, and has counted the request. Identify is
	// called nevertheless.
	Admitted bool
	// Charge, if set, is called before a batch is served, with the number of its requests beyond the first. If ok is false, the batch is
	// refused, and wait is the time after which the caller may send it again.
	Charge func(ctx context.Context, n int) (wait time.Duration, ok bool)
	// Hosts are the host names, without ports, under which the server is reached; "*" allows any. nil allows the names and addresses of
	// loopback, which refuses pages that use DNS rebinding.
	Hosts []string
	// Origins are the origins whose pages may send requests, such as https://example.com, in addition to the server's own origin and, if
	// the server is reached on loopback, pages of loopback.
	Origins []string
	// MaxRequests bounds the POST requests at once; 512.
	MaxRequests int `key:"max_requests" default:"512"`
	// BodyTimeout is the time in which a body must be received; 30 s. WriteTimeout is the time limit of each write; 30 s.
	BodyTimeout  time.Duration `key:"body_timeout" default:"30s"`
	WriteTimeout time.Duration `key:"write_timeout" default:"30s"`
}

func (o *HTTPOptions) withDefaults() {
	o.Hosts, o.Origins = slices.Clone(o.Hosts), slices.Clone(o.Origins)
	setting.Fill(o)
}

// Names of HTTP headers of the protocol.
const (
	headerVersion = "Mcp-Protocol-Version"
	headerSession = "Mcp-Session-Id"
	headerName    = "Mcp-Name"
)

// Handler returns a handler for the streamable HTTP transport. It serves both protocol eras at one address, by the protocol version of each
// request, and may be mounted at any path.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serveHTTP) }

func (s *Server) serveHTTP(w http.ResponseWriter, r *http.Request) {
	o := s.http.Load()
	guarded := &patientWriter{ResponseWriter: w, rc: http.NewResponseController(w), wait: o.WriteTimeout}
	guarded.renew()
	middleware.LimitBodyTime(w, r, o.BodyTimeout) // also for requests that are refused
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	if !o.Admitted && (!o.hostAllowed(r) || !middleware.SameOrigin(r, o.Origins)) {
		s.opts.Log.Warn("an MCP request with a strange Host or Origin was refused")
		answer(w, http.StatusForbidden, invalid("", "this Host or Origin is not served here"))
		return
	}
	caller := Caller{}
	if o.Identify != nil {
		var ok bool
		if caller, ok = o.Identify(r); !ok {
			w.Header().Set("WWW-Authenticate", `Bearer realm="lathe"`)
			answer(w, http.StatusUnauthorized, invalid("", "a key is needed: Authorization: Bearer KEY"))
			return
		}
	}
	t, err := s.tenantOf(&caller)
	if err != nil {
		busy(w, err.Error())
		return
	}
	r = r.Clone(r.Context())
	r.Header.Del("Authorization") // so that no later handler or tool can read the credentials
	if r.Method == http.MethodPost {
		s.post(guarded, r, t, o)
	} else {
		t.serveBodyless(guarded, r)
	}
}

// serveBodyless serves GET, which receives messages of the server, and DELETE, which ends a session.
func (t *tenant) serveBodyless(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.ContentLength != 0:
		answer(w, http.StatusBadRequest, invalid("", "there is a body where none belongs"))
	case r.Method != http.MethodGet && r.Method != http.MethodDelete:
		w.Header().Set("Allow", "GET, POST, DELETE")
		answer(w, http.StatusMethodNotAllowed, invalid("", "this method is not served here"))
	case modernVersion(r.Header.Get(headerVersion)):
		t.modern.ServeHTTP(w, r)
	default:
		session := t.sessionNamed(r.Header.Get(headerSession))
		if session != nil && r.Method == http.MethodDelete {
			session.cancel() // its calls end before the handler answers
		}
		t.stateful.ServeHTTP(w, r)
	}
}

// modernVersion reports whether a protocol version is one without sessions (2026-07-28 or later).
func modernVersion(v string) bool { return v >= statelessEra }

// post checks the message of a POST request before the SDK decodes it, and passes it to the handler of its protocol era.
func (s *Server) post(w *patientWriter, r *http.Request, t *tenant, o *HTTPOptions) {
	select {
	case s.posts <- struct{}{}:
		defer func() { <-s.posts }()
	default:
		busy(w, "too many requests at once: try again later")
		return
	}
	body, status, fault := s.readBody(w, r)
	if fault != nil {
		answer(w, status, fault)
		return
	}
	if jsonrpc2.IsBatch(body) {
		s.postBatch(w, r, t, body, o.Charge)
		return
	}
	m, fault := inspect(body)
	modern := modernVersion(r.Header.Get(headerVersion)) || modernVersion(m.version)
	if fault != nil {
		answer(w, statusOf(fault, modern), fault)
		return
	}
	if modern && !namesItsTask(r, &m, body) {
		answer(w, http.StatusBadRequest, &refusal{id: m.id, code: mcp.CodeHeaderMismatch, text: headerName + " does not name the task of the request"})
		return
	}
	switch {
	case m.ignored():
		w.WriteHeader(http.StatusAccepted)
	case modern:
		t.sync()
		passOn(t.modern, w, r, body)
	case r.Header.Get(headerSession) == "" && m.method != "initialize":
		answer(w, http.StatusBadRequest, invalid(m.id, "no session: begin with initialize, or name protocol version "+statelessEra+" in "+headerVersion+" and _meta"))
	default:
		t.sync()
		passOn(t.stateful, w, r, body)
	}
}

// passOn passes a request whose body was read to a handler.
func passOn(h http.Handler, w http.ResponseWriter, r *http.Request, body []byte) {
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	h.ServeHTTP(w, r)
}

// notifications are the notifications of clients that the server handles.
var notifications = []string{
	"notifications/initialized", "notifications/cancelled", "notifications/progress", "notifications/roots/list_changed",
}

// namesItsTask reports whether a request about a task names the same task in its header and in its body. It is true for other requests.
func namesItsTask(r *http.Request, m *message, body []byte) bool {
	if taskMethods[m.method] == nil {
		return true
	}
	id := rawjson.At(body, "params", "taskId")
	return rawjson.Kind(id) == '"' && rawjson.Text(id) == strings.TrimSpace(r.Header.Get(headerName))
}

// ignored reports whether the message is a notification that the server ignores.
func (m *message) ignored() bool {
	return m.id == "" && m.method != "" && !slices.Contains(notifications, m.method)
}

// statusOf returns the HTTP status of a refused message. In versions up to 2025-11-25, an unknown method is answered with status 200.
func statusOf(fault *refusal, modern bool) int {
	switch {
	case fault.code == jsonrpc.CodeMethodNotFound && modern:
		return http.StatusNotFound
	case fault.code == jsonrpc.CodeMethodNotFound:
		return http.StatusOK
	}
	return http.StatusBadRequest
}

// readBody reads a message within its limits of size and time. If it cannot, it returns the status and the text of the response.
func (s *Server) readBody(w *patientWriter, r *http.Request) (body []byte, status int, fault *refusal) {
	body, err := middleware.ReadBody(w.ResponseWriter, r, middleware.BodyLimit{MaxBytes: int64(s.opts.MaxMessageBytes), Plain: true})
	switch {
	case err == nil:
		return body, 0, nil
	case errors.Is(err, middleware.ErrEncoding):
		return nil, http.StatusUnsupportedMediaType, invalid("", "the body may not be encoded")
	case errors.Is(err, middleware.ErrTooLarge):
		return nil, http.StatusRequestEntityTooLarge, invalid("", "the message is too large")
	}
	return nil, http.StatusBadRequest, &refusal{code: jsonrpc.CodeParseError, text: "the body did not come whole"}
}

func busy(w http.ResponseWriter, text string) {
	w.Header().Set("Retry-After", "1")
	answer(w, http.StatusServiceUnavailable, &refusal{code: codeBusy, text: text})
}

func answer(w http.ResponseWriter, status int, fault *refusal) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(fault.append(nil)) // the client may have left
}

// hostAllowed reports whether the Host of the request is one that the server accepts.
func (o *HTTPOptions) hostAllowed(r *http.Request) bool {
	if o.Hosts == nil {
		return httpname.IsLoopback(r.Host)
	}
	host := httpname.Host(r.Host)
	return slices.ContainsFunc(o.Hosts, func(h string) bool { return h == "*" || httpname.Host(h) == host })
}

// A patientWriter sets a deadline for each write, by which the client must have received it.
type patientWriter struct {
	http.ResponseWriter
	rc   *http.ResponseController
	wait time.Duration
}

// Write implements http.ResponseWriter.
func (w *patientWriter) Write(b []byte) (int, error) {
	w.renew()
	return w.ResponseWriter.Write(b)
}

func (w *patientWriter) renew() {
	_ = w.rc.SetWriteDeadline(time.Now().Add(w.wait)) // a writer without deadlines is used as it is
}

// Unwrap is for http.ResponseController.
func (w *patientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
