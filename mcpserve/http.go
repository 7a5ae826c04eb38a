package mcpserve

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// HTTPOptions say who is served over HTTP, and how much.
type HTTPOptions struct {
	// Identify says who calls; false: nobody that is known, and the request is answered 401. nil: everybody
	// is the caller without a name.
	Identify func(*http.Request) (Caller, bool)
	// Admitted says that a handler in front has checked Host, Origin and limits, and counts the request.
	// Identify still returns the caller.
	Admitted bool
	// Charge, when set, is called before a batch is served, with the number of its requests beyond the
	// first: it says whether the caller may make so many, and if not, after which time.
	Charge func(ctx context.Context, n int) (wait time.Duration, ok bool)
	// Hosts are the host names, without ports, under which the server is asked for; "*" is any. nil: the
	// names of this machine's loopback, which keeps pages away whose name was made to point here.
	Hosts []string
	// Origins are the origins whose pages may call, such as https://example.com. Pages of the server's own
	// origin may, too, and pages of loopback where the server is asked for there.
	Origins []string
	// MaxRequests bounds the POST requests at once; 512.
	MaxRequests int
	// BodyTimeout is the time in which a body has to come; 30 s. WriteTimeout is that of each write; 30 s.
	BodyTimeout, WriteTimeout time.Duration
}

func (o *HTTPOptions) withDefaults() {
	o.Hosts, o.Origins = slices.Clone(o.Hosts), slices.Clone(o.Origins)
	if o.MaxRequests <= 0 {
		o.MaxRequests = 512
	}
	if o.BodyTimeout <= 0 {
		o.BodyTimeout = 30 * time.Second
	}
	if o.WriteTimeout <= 0 {
		o.WriteTimeout = 30 * time.Second
	}
}

// The headers of the protocol.
const (
	headerVersion = "Mcp-Protocol-Version"
	headerSession = "Mcp-Session-Id"
	headerName    = "Mcp-Name"
)

// Handler serves streamable HTTP, both protocol eras at one address: the version that a request
// names decides which one speaks. It may be mounted anywhere.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serveHTTP) }

func (s *Server) serveHTTP(w http.ResponseWriter, r *http.Request) {
	o := s.http.Load()
	guarded := &patientWriter{ResponseWriter: w, rc: http.NewResponseController(w), wait: o.WriteTimeout}
	guarded.renew()
	if r.ContentLength != 0 {
		// What is refused is read to its end, too: that has the same time.
		_ = guarded.rc.SetReadDeadline(time.Now().Add(o.BodyTimeout)) // what has no deadlines does without
	}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	if !o.Admitted && (!o.hostAllowed(r) || !o.originAllowed(r)) {
		s.opts.Log.Warn("an MCP request with a strange Host or Origin was refused")
		answer(w, http.StatusForbidden, &refusal{code: jsonrpc.CodeInvalidRequest, text: "this Host or Origin is not served here"})
		return
	}
	caller := Caller{}
	if o.Identify != nil {
		var ok bool
		if caller, ok = o.Identify(r); !ok {
			w.Header().Set("WWW-Authenticate", `Bearer realm="lathe"`)
			answer(w, http.StatusUnauthorized, &refusal{code: jsonrpc.CodeInvalidRequest, text: "a key is needed: Authorization: Bearer KEY"})
			return
		}
	}
	t, err := s.tenantOf(&caller)
	if err != nil {
		busy(w, err.Error())
		return
	}
	r = r.Clone(r.Context())
	r.Header.Del("Authorization") // what is not there cannot go on to anybody
	switch {
	case r.Method == http.MethodPost:
		s.post(guarded, r, t, o)
		return
	case r.ContentLength != 0:
		answer(w, http.StatusBadRequest, &refusal{code: jsonrpc.CodeInvalidRequest, text: "there is a body where none belongs"})
		return
	}
	switch r.Method {
	case http.MethodGet:
		if modernVersion(r.Header.Get(headerVersion)) {
			t.modern.ServeHTTP(guarded, r)
			return
		}
		t.stateful.ServeHTTP(guarded, r)
	case http.MethodDelete:
		if modernVersion(r.Header.Get(headerVersion)) {
			t.modern.ServeHTTP(guarded, r)
			return
		}
		t.leave(r.Header.Get(headerSession))
		t.stateful.ServeHTTP(guarded, r)
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		answer(w, http.StatusMethodNotAllowed, &refusal{code: jsonrpc.CodeInvalidRequest, text: "this method is not served here"})
	}
}

// modernVersion reports whether a version is of the era without sessions.
func modernVersion(v string) bool { return v >= statelessEra }

// post checks a message before anything decodes it, and hands it to its era.
func (s *Server) post(w *patientWriter, r *http.Request, t *tenant, o *HTTPOptions) {
	select {
	case s.posts <- struct{}{}:
		defer func() { <-s.posts }()
	default:
		busy(w, "too many requests at once: try again later")
		return
	}
	body, status, no := s.readBody(w, r)
	if no != nil {
		answer(w, status, no)
		return
	}
	if isBatch(body) {
		s.postBatch(w, r, t, body, o.Charge)
		return
	}
	m, no := inspect(body)
	modern := modernVersion(r.Header.Get(headerVersion)) || modernVersion(m.version)
	if no != nil {
		answer(w, statusOf(no, modern), no)
		return
	}
	if no = namesTask(r, &m, body); no != nil && modern {
		answer(w, http.StatusBadRequest, no)
		return
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	switch {
	case m.unheard():
		w.WriteHeader(http.StatusAccepted) // nobody listens for it
	case modern:
		t.sync()
		t.modern.ServeHTTP(w, r)
	case r.Header.Get(headerSession) == "" && m.method != "initialize":
		answer(w, http.StatusBadRequest, &refusal{id: m.id, code: jsonrpc.CodeInvalidRequest,
			text: "no session: begin with initialize, or name protocol version " + statelessEra + " in " + headerVersion + " and _meta"})
	default:
		t.sync()
		t.stateful.ServeHTTP(w, r)
	}
}

// notifications are those of clients that mean something here.
var notifications = map[string]bool{
	"notifications/initialized": true, "notifications/cancelled": true, "notifications/progress": true, "notifications/roots/list_changed": true,
}

// namesTask refuses a request about a task whose header names another one than its body.
func namesTask(r *http.Request, m *message, body []byte) *refusal {
	if taskMethods[m.method] == nil {
		return nil
	}
	if params, ok := rawjson.Get(bytes.TrimSpace(body), "params"); ok {
		if id, ok := rawjson.Get(params, "taskId"); ok && id[0] == '"' && string(rawjson.AppendUnquoteLossy(nil, id)) == strings.TrimSpace(r.Header.Get(headerName)) {
			return nil
		}
	}
	return &refusal{id: m.id, code: mcp.CodeHeaderMismatch, text: headerName + " does not name the task of the request"}
}

// unheard reports whether nobody listens for a notification.
func (m *message) unheard() bool {
	return m.id == "" && m.method != "" && !notifications[m.method]
}

// statusOf is the HTTP status of a refused message. Up to 2025-11-25 an unknown method is an answer
// like any other.
func statusOf(no *refusal, modern bool) int {
	switch {
	case no.code == jsonrpc.CodeMethodNotFound && modern:
		return http.StatusNotFound
	case no.code == jsonrpc.CodeMethodNotFound:
		return http.StatusOK
	}
	return http.StatusBadRequest
}

// readBody reads a message within its limits of size and time.
func (s *Server) readBody(w *patientWriter, r *http.Request) (body []byte, status int, no *refusal) {
	if e := r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return nil, http.StatusUnsupportedMediaType, &refusal{code: jsonrpc.CodeInvalidRequest, text: "the body may not be encoded"}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w.ResponseWriter, r.Body, int64(s.opts.MaxMessageBytes)))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, http.StatusRequestEntityTooLarge, &refusal{code: jsonrpc.CodeInvalidRequest, text: "the message is too large"}
	}
	if err != nil {
		return nil, http.StatusBadRequest, &refusal{code: jsonrpc.CodeParseError, text: "the body did not come whole"}
	}
	_ = w.rc.SetReadDeadline(time.Time{}) // the answer may take longer
	return body, 0, nil
}

func busy(w http.ResponseWriter, text string) {
	w.Header().Set("Retry-After", "1")
	answer(w, http.StatusServiceUnavailable, &refusal{code: codeBusy, text: text})
}

func answer(w http.ResponseWriter, status int, no *refusal) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(no.append(nil)) // who is gone need not know
}

// hostAllowed keeps away requests for a name that is not the server's.
func (o *HTTPOptions) hostAllowed(r *http.Request) bool {
	host := hostName(r.Host)
	if o.Hosts == nil {
		return isLoopback(host)
	}
	return slices.ContainsFunc(o.Hosts, func(h string) bool { return h == "*" || strings.EqualFold(h, host) })
}

// originAllowed keeps away pages of other origins. A request without an Origin is not a page's.
func (o *HTTPOptions) originAllowed(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return !strings.EqualFold(r.Header.Get("Sec-Fetch-Site"), "cross-site")
	}
	if len(origins) > 1 {
		return false
	}
	if slices.Contains(o.Origins, origins[0]) {
		return true
	}
	u, err := url.Parse(origins[0])
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	if strings.EqualFold(r.Header.Get("Sec-Fetch-Site"), "cross-site") {
		return false
	}
	return strings.EqualFold(u.Host, r.Host) || isLoopback(hostName(u.Host)) && isLoopback(hostName(r.Host))
}

// hostName takes the port off, and the brackets of an IPv6 address.
func hostName(hostport string) string {
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		return h
	}
	return strings.Trim(hostport, "[]")
}

// isLoopback knows the loopback by its name and its addresses. Other names may point anywhere.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

// A patientWriter gives each write a time in which the client has to take it.
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
	_ = w.rc.SetWriteDeadline(time.Now().Add(w.wait)) // what has no deadlines does without
}

// Unwrap is for http.ResponseController.
func (w *patientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
