package mcptool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lathe-run/lathe/internal/jsonlines"
)

// legacyProtocol is the last protocol version whose connections begin with `initialize`. If a server does not answer the newer request, the
// next attempt uses this version.
const legacyProtocol = "2025-11-25"

// A session is one connection to a server, from its start to its end.
type session struct {
	mcp     *mcp.ClientSession
	tap     *tap
	proc    *process        // nil: an HTTP server
	ended   chan struct{}   // closed when the connection has ended
	changed chan struct{}   // receives a value when the server reports that its tools have changed; buffers one
	life    context.Context // context of the connection
	stop    context.CancelFunc
	until   time.Time    // deadline for the handshake and the first list of tools
	client  *http.Client // nil: a stdio server
	// isSilentAtFirst reports that the server answered `initialize` but not the request before it.
	isSilentAtFirst bool
	// isOffered reports that the tools of the connection were offered.
	isOffered bool

	// fresh is the time for which the last list of tools is valid according to its hint ttlMs; 0: no hint.
	fresh time.Duration

	mu     sync.Mutex
	calls  int           // number of calls in progress
	isLost bool          // the server no longer knows the session; see lose
	loss   chan struct{} // closed when isLost is set
	unused chan struct{} // closed when a lost session has no calls in progress
}

// connect starts the server's program or connects to its endpoint, and completes the handshake before the deadline until.
func (s *supervisor) connect(ctx context.Context, until time.Time) (*session, error) {
	x := &session{tap: newTap(s.refusedRequest), ended: make(chan struct{}), changed: make(chan struct{}, 1), loss: make(chan struct{}), unused: make(chan struct{})}
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	x.life, x.stop, x.until = life, stop, until
	var late atomic.Bool
	timer := time.AfterFunc(time.Until(until), func() { late.Store(true); stop() })
	defer timer.Stop()
	defer context.AfterFunc(ctx, stop)()

	var err error
	if s.conf.Command != "" {
		err = x.connectStdio(life, s)
	} else {
		err = x.connectHTTP(life, s)
	}
	if err != nil {
		if late.Load() {
			x.close(0)
			return nil, x.late(&s.conf)
		}
		err = x.connectError(err)
		x.close(0)
		return nil, err
	}
	go func() {
		_ = x.mcp.Wait() // requests that are cut off return the cause themselves
		close(x.ended)
	}()
	return x, nil
}

// connectError returns the reason of a failed connection. err is that of the protocol library.
func (x *session) connectError(err error) error {
	if why := x.tap.broken(); why != nil {
		return why
	}
	if x.proc != nil && within(x.proc.done, 2*lastWords) {
		return fmt.Errorf("the program ended before it had answered: %s", x.proc.cmd.ProcessState)
	}
	return err
}

func (x *session) connectStdio(ctx context.Context, s *supervisor) error {
	p, err := startProcess(&s.conf, s.opts.Environ, s.stderr)
	if err != nil {
		return err
	}
	x.proc = p
	x.mcp, err = x.newClient(s).Connect(ctx, &stdioConn{proc: p, tap: x.tap, lost: x.stop, grace: s.opts.StopGrace,
		lines: jsonlines.NewReader(p.stdout, s.conf.MaxLineBytes)}, sessionOptions(s))
	return err
}

// connectHTTP connects to the endpoint, with the transport of protocol version 2024-11-05 if the server has no newer one.
func (x *session) connectHTTP(ctx context.Context, s *supervisor) error {
	client, g, err := newGate(&s.conf, s.http, x.tap)
	if err != nil {
		return err
	}
	x.client = client
	x.mcp, err = x.newClient(s).Connect(ctx, &mcp.StreamableClientTransport{Endpoint: s.conf.URL, HTTPClient: client, MaxEventSize: s.conf.MaxLineBytes}, sessionOptions(s))
	if err == nil || ctx.Err() != nil {
		return err
	}
	if why := g.unauthorized.Load(); why != nil {
		return why
	}
	status := g.lastFailure.Load()
	if status == 400 || status == 404 || status == 405 {
		// The older transport: an event stream that contains the URL for messages.
		old, oldErr := x.newClient(s).Connect(ctx, &mcp.SSEClientTransport{Endpoint: s.conf.URL, HTTPClient: client, MaxEventSize: s.conf.MaxLineBytes}, legacyOptions())
		if oldErr == nil {
			x.mcp = old
			return nil
		}
	}
	refused := &errHTTP{status: int(status), err: err}
	if to := g.redirect.Load(); to != nil {
		refused.redirect = *to
	}
	if status != 0 || g.isForeign.Load() {
		return refused
	}
	return err
}

// errLate means that a server did not answer in time.
var errLate = errors.New("no answer within start_timeout")

// late returns errLate with the number of invalid messages that the server sent.
func (x *session) late(s *Server) error {
	if n := x.tap.badMessages(); n > 0 {
		return fmt.Errorf("%w (%s); %d lines or messages of it were not strict JSON-RPC", errLate, s.StartTimeout, n)
	}
	return fmt.Errorf("%w (%s)", errLate, s.StartTimeout)
}

// errHTTP is an HTTP answer by which a server refused the connection.
type errHTTP struct {
	status   int    // 0: a success without an MCP message
	redirect string // target of the redirect; "": none
	err      error
}

func (e *errHTTP) Error() string {
	switch {
	case e.redirect != "":
		return fmt.Sprintf("HTTP %d: the server redirects to %s, and redirects are not followed", e.status, e.redirect)
	case e.status == 0:
		return e.err.Error()
	}
	return fmt.Sprintf("HTTP %d: %v", e.status, e.err)
}
func (e *errHTTP) Unwrap() error { return e.err }

func sessionOptions(s *supervisor) *mcp.ClientSessionOptions {
	if s.legacy {
		return legacyOptions()
	}
	return nil
}

func legacyOptions() *mcp.ClientSessionOptions {
	return &mcp.ClientSessionOptions{ProtocolVersion: legacyProtocol}
}

// sending changes requests before they are sent. The first request, which a server of an older protocol version need not answer, gets half
// of the time, so that `initialize` can follow on the same connection.
func (x *session) sending(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch method {
		case "server/discover":
			probe, cancel := context.WithTimeout(ctx, time.Until(x.until)/2)
			defer cancel()
			res, err := next(probe, method, req)
			x.isSilentAtFirst = err != nil && probe.Err() != nil && ctx.Err() == nil
			return res, err
		case "tools/list":
			req = withEmptyCursor(req)
		}
		return next(ctx, method, req)
	}
}

// newClient returns a protocol client. It declares only the elicitation capability, if configured, and answers all other requests of the
// server except ping with an error.
func (x *session) newClient(s *supervisor) *mcp.Client {
	c := mcp.NewClient(&mcp.Implementation{Name: "lathe", Version: "1"}, &mcp.ClientOptions{
		Logger:         slog.New(slog.DiscardHandler), // records of the library may contain texts of servers
		Capabilities:   s.capabilities(),
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
			select {
			case x.changed <- struct{}{}:
			default:
			}
		},
	})
	c.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			switch method {
			case "sampling/createMessage", "elicitation/create", "roots/list":
				return s.asked(ctx, x, method, req)
			}
			return next(ctx, method, req)
		}
	})
	c.AddSendingMiddleware(x.sending)
	if len(s.opts.Observers) > 0 {
		c.AddSendingMiddleware(x.observed(s))
	}
	return c
}

// close ends the session and its process, and waits for both. Calls in progress are cut off.
func (x *session) close(grace time.Duration) {
	x.stop()
	if x.proc != nil {
		x.proc.stop(grace)
	}
	if x.mcp != nil {
		_ = x.mcp.Close() // its error no longer matters
	}
	if x.client != nil {
		x.client.CloseIdleConnections()
	}
}
