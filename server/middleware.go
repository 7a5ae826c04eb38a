package server

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/lathe-run/lathe/internal/gateway/admission"
	"github.com/lathe-run/lathe/internal/gateway/memory"
	"github.com/lathe-run/lathe/internal/gateway/middleware"
	problems "github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/gateway/workers"
	"github.com/lathe-run/lathe/internal/httpname"
	"github.com/lathe-run/lathe/internal/stack"
)

// Every request passes the same middleware, whatever its route. [Server.ServeHTTP] assigns an id to the request, sets a
// deadline for its body, logs and counts it, and writes a response if its handler panics. [gate.admit] then checks the
// request by the row of its route in the routing table. A handler gets an admitted caller and, if the bodyRule of the row
// is wholeBody, a body that was read within its limits.

// An access is what a caller may use: the tools and models of a setup that the key of the caller allows.
type access struct {
	key   *Key
	setup *setup
}

// A caller is the sender of one request, and the setup under which the request is served. The middleware sets its fields
// in the order of the groups; the handler of the route changes only those of the request log.
type caller struct {
	// serve sets these fields for each request, with anyone as the key.
	access
	requestID string
	arrived   time.Time
	form      problems.Form // the format of errors that the client expects
	console   bool          // the listener serves the console, so sessions of the console are accepted

	// admit sets these fields, and the key of access.
	pool     *workers.Pool       // the pool of a worker, if the request opens a worker's connection; else nil
	session  bool                // the caller was authenticated by a session of the console instead of a key
	memory   memory.Reservation  // the memory that is reserved for the request
	reserved *memory.Reservation // points to memory, also in copies of the caller; nil: the route has no body
	body     []byte              // the decompressed body, on routes with wholeBody; else nil

	challenge string // WWW-Authenticate header of a 401 response; "": Bearer
	left      bool   // the request is no longer counted as work, so a drain does not wait for it

	// These fields are for the request log: the route, the model that the request names, the run, the error code, and
	// whether the route is a probe.
	pattern, named, runID, code string
	probe                       bool
}

// A gate is the middleware in front of every route: it authenticates requests and enforces the limits of keys.
type gate struct {
	*core
	usage    *admission.Limiter
	browsers *signIns
}

// A handler responds to an admitted request. If it returns a problem it has written nothing, and the middleware writes the
// problem.
type handler func(w http.ResponseWriter, r *http.Request, c *caller) *problem

// ServeHTTP implements http.Handler.
func (g *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.gate.serve(w, r, g.mux, !g.opts.SeparateConsole)
}

// serve runs the middleware for one request and dispatches it to mux. console reports whether the listener serves the
// console.
func (g *gate) serve(w http.ResponseWriter, r *http.Request, mux *http.ServeMux, console bool) {
	c := &caller{access: access{anyone, g.work.begin()}, arrived: time.Now(), form: formOf(r), console: console}
	c.requestID = requestID(r.Header.Get("X-Request-Id"))
	rec := &recorder{ResponseWriter: w, caller: c, now: g.opts.Now}
	h := rec.Header()
	h.Set("X-Request-Id", c.requestID)
	h.Set("X-Content-Type-Options", "nosniff")
	if c.form == problems.Anthropic {
		h.Set("Request-Id", c.requestID)
	}
	middleware.LimitBodyTime(rec, r, g.opts.Limits.BodyTimeout)
	began := g.opts.Now()
	defer c.leave(g.core)
	defer func() {
		g.afterPanic(recover(), rec)
		g.observe(r, rec, began)
	}()
	mux.ServeHTTP(rec, r)
}

// afterPanic logs the value with which a handler panicked, and writes a response if the handler has not begun one. It does nothing if the
// value is nil, and passes http.ErrAbortHandler on.
func (g *gate) afterPanic(value any, rec *recorder) {
	if value == nil {
		return
	}
	if err, ok := value.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(value)
	}
	c := rec.caller
	g.opts.Log.Error("a request panicked", "request_id", c.requestID, "route", c.routeName(), "panic", fmt.Sprintf("%T", value), "stack", stack.Functions())
	if rec.status == 0 {
		c.fail(rec, &problem{Status: http.StatusInternalServerError, Code: "internal_error", Message: "The gateway failed.", NoRetry: true})
	}
}

func (g *gate) observe(r *http.Request, rec *recorder, began time.Time) {
	route := rec.caller.routeName()
	if m := g.opts.Metrics; m != nil {
		m.CountRequest(route, rec.status)
		if !rec.first.IsZero() {
			m.ObserveFirstByte(route, rec.first.Sub(began))
		}
		m.ObserveRequest(route, g.opts.Now().Sub(began))
	}
	g.logRequest(r, rec, g.opts.Now().Sub(began))
}

// guarded returns the HTTP handler of a route: it admits the request, checks permissions, calls the handler of the route
// and writes its problem.
func (g *gate) guarded(rt *route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := callerOf(w)
		c.pattern, c.probe = rt.name(), rt.probe
		release, p := g.admit(w, r, c, rt)
		if p != nil {
			if p.Status == http.StatusUnauthorized && rt.credential == apiKey {
				c.challenge = c.setup.challenge(r, p.Code == codeInvalidToken)
			}
			c.fail(w, p)
			return
		}
		defer release()
		defer c.reserved.Release()
		if rt.outlivesDrain {
			c.leave(g.core)
		}
		if p = g.permits(c, rt); p == nil {
			p = rt.handle(w, r, c)
		}
		if p != nil {
			c.fail(w, p)
		}
	})
}

// admit checks a request by the row of its route: the cheap checks, and those that need no secret, come first. If p is nil,
// the request has a place in its pool, and the caller must call release once to return it, and c.reserved.Release.
func (g *gate) admit(w http.ResponseWriter, r *http.Request, c *caller, rt *route) (release func(), p *problem) {
	if p = c.setup.admits(w.Header(), r, rt); p != nil {
		return nil, p
	}
	if release, p = g.enter(w, r, c, rt); p != nil {
		return nil, p
	}
	p = checkQuery(rt.pattern, r)
	if p == nil && rt.startsRun {
		p = g.takes()
	}
	if p == nil && rt.body != noBody {
		c.body, p = g.readBody(w, r, c, rt)
	}
	if p != nil { // the caller of admit releases only what an admitted request has
		c.reserved.Release()
		release()
		return nil, p
	}
	return release, nil
}

// enter sets the key of the request and counts the request in the pool of its route, until release is called.
func (g *gate) enter(w http.ResponseWriter, r *http.Request, c *caller, rt *route) (release func(), p *problem) {
	if rt.credential == noCredential {
		return func() {}, nil
	}
	key, p := g.authenticate(r, c, rt)
	if p != nil {
		return nil, p
	}
	c.key = key
	manyKeys := len(c.setup.Keys) > 1 || c.setup.Identity != nil
	release, p = g.usage.Enter(key.admitted(), rt.pool, manyKeys && rt.credential == apiKey)
	g.usage.ShowRate(w.Header(), key.admitted())
	return release, p
}

// maxMessage is the maximum size in bytes that is assumed for a messageBody; a smaller Content-Length is used as is. It
// is also assumed if the request has no Content-Length. Twice the assumed size is reserved.
const maxMessage = 4 << 20

// authenticate returns the key that the credential of the request belongs to, unless it returns a problem. For a route with
// workerToken it sets c.pool. For a route with apiKey it accepts a session of the console if the request has no key, and
// then sets c.session.
func (g *gate) authenticate(r *http.Request, c *caller, rt *route) (key *Key, p *problem) {
	switch rt.credential {
	case workerToken:
		if c.pool, p = g.opts.Workers.handler.Authenticate(r); p != nil {
			return nil, p
		}
		return &Key{Name: "workers " + c.pool.Name}, nil
	case clusterKey:
		return clusterPeers, g.opts.Cluster.authenticate(r)
	}
	key, p = c.setup.authenticate(r)
	if p == nil || p.Code != codeNoKey {
		return key, p
	}
	signedIn, refused := g.browsers.signedIn(r, c, rt)
	c.session = signedIn != nil
	if c.session || refused != nil {
		return signedIn, refused
	}
	return nil, p // there is no session
}

// admits refuses requests that a page of another site makes a browser send: requests with an unknown host name (DNS
// rebinding), and requests from an origin that is not allowed. Allowed origins get the headers of CORS.
func (s *setup) admits(h http.Header, r *http.Request, rt *route) *problem {
	if rt.machinesOnly {
		return refusePages(r)
	}
	if !s.knowsHost(r) {
		return forbidden("unknown_host", "The gateway is not known under this host name; serve.hosts in the configuration adds it.")
	}
	checked := r
	if rt.upgrades { // the check of origins accepts every GET, so it is shown a POST
		checked = r.Clone(r.Context())
		checked.Method = http.MethodPost
	}
	if err := s.origins.Check(checked); err != nil && !preflight(r) {
		return forbidden("unknown_origin", "Pages of this origin may not call the gateway; serve.origins in the configuration allows it.")
	}
	origin := r.Header.Get("Origin")
	if origin != "" && slices.Contains(s.Origins, origin) {
		allowOrigin(h, r, origin)
	}
	return nil
}

// refusePages refuses requests that a page sends, which have an Origin header. It is for routes with machinesOnly.
func refusePages(r *http.Request) *problem {
	if r.Header.Get("Origin") == "" {
		return nil
	}
	return forbidden("unknown_origin", "This path is for programs: a request with an Origin is refused.")
}

func preflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
}

// knowsHost reports whether the host name of a request is that of this server: localhost, an IP address or a name in
// serve.hosts. If serve.hosts is not set, any name is accepted on an address that is not loopback, provided that requests
// need a key.
func (s *setup) knowsHost(r *http.Request) bool {
	host := httpname.Host(r.Host)
	if host == "localhost" || s.hosts[host] || middleware.IsAddress(host) {
		return true
	}
	if s.Hosts != nil {
		return false
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return s.needsKey() && local != nil && !httpname.IsLoopback(local.String())
}

// readBody reads and decompresses the body of a request within the limits of the server. It reserves memory for the body
// and for the conversation that is decoded from it. For a messageBody it only reserves the memory. If the request is a message
// of a WebSocket, its text was read before, and readBody returns that.
func (g *gate) readBody(w http.ResponseWriter, r *http.Request, c *caller, rt *route) ([]byte, *problem) {
	c.memory = g.memory.Begin(c.key.Name, c.setup.needsKey())
	c.reserved = &c.memory
	if rt.body == messageBody {
		size := r.ContentLength
		if size < 0 || size > maxMessage {
			size = maxMessage
		}
		return nil, c.reserved.Grow(2 * size)
	}
	if s := socketOf(r.Context()); s != nil {
		c.reserved.Beside = s.message.reserved.Size() + s.reserved.Size()
		return s.message.text, c.reserved.Converse(int64(len(s.message.text)))
	}
	most := int64(g.opts.Limits.MaxBody)
	if rt.maxBody > 0 {
		most = min(most, rt.maxBody)
	}
	body, err := middleware.ReadBody(w, r, middleware.BodyLimit{MaxBytes: most, Reserve: c.reserved.Reserve})
	var full *problem
	switch {
	case err == nil:
		c.reserved.Settle(body)
		return body, c.reserved.Converse(int64(len(body)))
	case errors.As(err, &full):
		return nil, full
	case errors.Is(err, middleware.ErrTooLarge):
		return nil, problems.New(http.StatusRequestEntityTooLarge, "request_too_large", "The request body is larger than %d bytes.", most)
	case errors.Is(err, middleware.ErrTimeout):
		return nil, &problem{Status: http.StatusRequestTimeout, Code: "request_timeout", Message: "The request body did not come in time.", NoRetry: true}
	case errors.Is(err, middleware.ErrEncoding):
		return nil, problems.New(http.StatusUnsupportedMediaType, "unsupported_encoding", "The body may be plain, gzip or zstd.")
	}
	return nil, badRequest("", "The request body could not be read.").WithCode("invalid_body")
}
