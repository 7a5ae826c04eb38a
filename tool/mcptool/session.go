package mcptool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// legacyProtocol is the last protocol version that begins with `initialize`. A server that does not
// answer to the newer beginning is asked with this one at the next attempt.
const legacyProtocol = "2025-11-25"

// A session is one connection to a server, from its start to its end.
type session struct {
	mcp     *mcp.ClientSession
	tap     *tap
	proc    *process // nil: over HTTP
	ended   chan struct{}
	changed chan struct{}   // holds a mark when the server says that its tools have changed
	life    context.Context // of the connection
	stop    context.CancelFunc
	client  *http.Client
	// fresh is how long the last list of tools may be kept, as its hint ttlMs says; 0: the server gave no such hint.
	fresh time.Duration
}

// connect starts the server's program or reaches its endpoint, and shakes hands.
func (s *supervisor) connect(ctx context.Context, legacy bool) (*session, error) {
	x := &session{tap: newTap(s.refusedRequest), ended: make(chan struct{}), changed: make(chan struct{}, 1)}
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	x.life, x.stop = life, stop
	var late atomic.Bool
	timer := time.AfterFunc(s.conf.StartTimeout, func() { late.Store(true); stop() })
	defer timer.Stop()
	defer context.AfterFunc(ctx, stop)()

	var err error
	if s.conf.Command != "" {
		err = x.connectStdio(life, s, legacy)
	} else {
		err = x.connectHTTP(life, s, legacy)
	}
	if err != nil {
		slow := late.Load()
		if why := x.tap.broken(); why != nil {
			err = why
		} else if x.proc != nil && !slow && within(x.proc.done, lastWords) {
			err = fmt.Errorf("the program ended before it had answered: %s", x.proc.cmd.ProcessState)
		}
		x.close(0)
		if slow {
			return nil, fmt.Errorf("%w (%s)", errLate, s.conf.StartTimeout)
		}
		return nil, err
	}
	go func() {
		_ = x.mcp.Wait() // the requests that it cut off return the cause
		close(x.ended)
	}()
	return x, nil
}

func (x *session) connectStdio(ctx context.Context, s *supervisor, legacy bool) error {
	p, err := startProcess(&s.conf, s.opts.Environ, s.stderr)
	if err != nil {
		return err
	}
	x.proc = p
	x.mcp, err = x.newClient(s).Connect(ctx, newStdioConn(p, x, s.conf.MaxLineBytes, s.opts.StopGrace), sessionOptions(legacy))
	return err
}

func (x *session) connectHTTP(ctx context.Context, s *supervisor, legacy bool) error {
	client, g, err := newGate(&s.conf, s.http, x.tap)
	if err != nil {
		return err
	}
	x.client = client
	x.mcp, err = x.newClient(s).Connect(ctx, &mcp.StreamableClientTransport{Endpoint: s.conf.URL, HTTPClient: client, MaxEventSize: s.conf.MaxLineBytes}, sessionOptions(legacy))
	if err == nil || ctx.Err() != nil {
		return err
	}
	if why := g.unauthorized.Load(); why != nil {
		return why
	}
	if status := g.status.Load(); status == 400 || status == 404 || status == 405 {
		// The transport of 2024-11-05: a stream that names the place to post to.
		old, oldErr := x.newClient(s).Connect(ctx, &mcp.SSEClientTransport{Endpoint: s.conf.URL, HTTPClient: client, MaxEventSize: s.conf.MaxLineBytes}, sessionOptions(true))
		if oldErr == nil {
			x.mcp = old
			return nil
		}
	}
	if status := g.status.Load(); status != 0 {
		return &errHTTP{int(status), err}
	}
	return err
}

// errLate says that a server did not answer in time.
var errLate = errors.New("no answer within start_timeout")

// errHTTP says with which status a server refused the connection.
type errHTTP struct {
	status int
	err    error
}

func (e *errHTTP) Error() string { return fmt.Sprintf("HTTP %d: %v", e.status, e.err) }
func (e *errHTTP) Unwrap() error { return e.err }

func sessionOptions(legacy bool) *mcp.ClientSessionOptions {
	if legacy {
		return &mcp.ClientSessionOptions{ProtocolVersion: legacyProtocol}
	}
	return nil
}

// newClient returns a protocol client that offers a server no more than to ask a person, where the
// configuration says so: it answers all other requests, but for ping, with an error.
func (x *session) newClient(s *supervisor) *mcp.Client {
	c := mcp.NewClient(&mcp.Implementation{Name: "lathe", Version: "1"}, &mcp.ClientOptions{
		Logger:         slog.New(slog.DiscardHandler), // its records may hold what servers say
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
	if len(s.opts.Observers) > 0 {
		c.AddSendingMiddleware(x.observed(s))
	}
	return c
}

// close ends the session and its process, and waits for both. Calls that run are cut off.
func (x *session) close(grace time.Duration) {
	x.stop()
	if x.proc != nil {
		x.proc.stop(grace)
	}
	if x.mcp != nil {
		_ = x.mcp.Close() // nothing more is wanted of it
	}
	if x.client != nil {
		x.client.CloseIdleConnections()
	}
}

// list asks for all tools of the server. unchanged says that the answer is the one of before.
func (x *session) list(ctx context.Context, s *Server) (defs []*definition, refused map[string]error, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.StartTimeout)
	defer cancel()
	refused = map[string]error{}
	cursor, fresh := "", time.Duration(0)
	for page := 0; ; page++ {
		if page == maxPages {
			return nil, nil, fmt.Errorf("the list of tools has more than %d pages", maxPages)
		}
		r := &request{}
		res, err := x.mcp.ListTools(x.tap.watch(ctx, r), &mcp.ListToolsParams{Cursor: cursor})
		x.tap.forget(r)
		got := x.tap.state(r)
		switch {
		case got.err != nil:
			return nil, nil, fmt.Errorf("listing tools: %w", got.err)
		case got.result == nil && err != nil:
			return nil, nil, fmt.Errorf("listing tools: %w", err)
		case got.result == nil:
			return nil, nil, errCached
		case got.result[0] != '{':
			return nil, nil, errors.New("listing tools: the result is not an object")
		}
		fresh = shorter(fresh, freshFor(got.result))
		more, bad := readList(got.result)
		if err == nil { // else one definition is so odd that none was decoded; each is looked at here
			refuseMisfits(res.Tools, more, bad)
		}
		defs = append(defs, more...)
		for name, why := range bad {
			refused[name] = why
		}
		if len(defs)+len(refused) > 2*s.MaxTools || len(defs) > s.MaxTools {
			return nil, nil, fmt.Errorf("it has more tools than tools.mcp.%s.max_tools (%d)", s.Name, s.MaxTools)
		}
		if cursor, _ = memberText(got.result, "nextCursor"); cursor == "" {
			x.fresh = fresh
			return defs, refused, nil
		}
	}
}

// freshFor returns how long a page of a list may be kept, as its hint ttlMs says, within bounds; 0: it has no hint that is a whole
// number of ms above 0.
func freshFor(page []byte) time.Duration {
	raw, _ := rawjson.Get(page, "ttlMs")
	ms, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || ms <= 0 {
		return 0
	}
	return max(time.Duration(min(ms, maxFreshMS))*time.Millisecond, minFresh)
}

// shorter returns the shorter of two times, of which 0 is none.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

const (
	minFresh   = time.Second      // a server cannot make this process list its tools more often by its hints
	maxFreshMS = 24 * 3600 * 1000 // a list is asked for once a day at least, if it has a hint
)

// refuseMisfits notes the definitions that the decoder has left out.
func refuseMisfits(taken []*mcp.Tool, defs []*definition, bad map[string]error) {
	fit := map[string]bool{}
	for _, t := range taken {
		fit[t.Name] = true
	}
	for _, d := range defs {
		if !fit[d.name] && bad[d.name] == nil {
			bad[d.name] = errors.New("an x-mcp-header of its schema is not valid")
		}
	}
}

// errCached says that the list was answered without asking: by its hint ttlMs it may be kept, and it is the one of before.
var errCached = errors.New("the list of tools is the one of before")
