// Package mcpserve offers tools, resources and prompts to MCP clients: over standard streams and over streamable HTTP, in
// both protocol eras (2026-07-28, and `initialize` with 2024-11-05 to 2025-11-25).
//
// Every call goes through a tool.Runner, with its policy, limits, approvals and redaction, and is told
// to the sinks as a run of its own: RunStarted, the events of the call, RunFinished. A caller sees and
// calls what the policy allows it, whatever the era. The same holds for a resource that is read and a
// prompt that is filled in: to policies and events they are the tools resource__NAME and prompt__NAME.
//
// Every byte of a client is untrusted. A message is bounded and checked as strict JSON before it is
// decoded: a key that stands twice, invalid UTF-8 and deep nesting are refused.
package mcpserve

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/tool"
)

// Options of a [Server]. They are copied.
type Options struct {
	// Name, Title and Version are what the server says of itself; Name: lathe.
	Name, Title, Version string
	// Instructions are shown to the models of clients.
	Instructions string
	// Sinks are told the events of each call.
	Sinks []lathe.Sink
	// Labels are those of every call. `entry`, `transport` and `protocol` are set here.
	Labels map[string]string
	// Depth is that of the calls: 0, unless this server is itself part of a run.
	Depth int
	// PageSize is how many tools a page of tools/list has; 100.
	PageSize int
	// ProgressEvery is the time between signs of progress of a call whose client asks for them; 5 s.
	ProgressEvery time.Duration
	// MaxMessageBytes bounds one message of a client; 4 MiB.
	MaxMessageBytes int
	// MaxCalls bounds the calls at once, of all clients; one more is answered rate_limited; 64.
	MaxCalls int
	// MaxSessions bounds the sessions at once; 256. The era of 2026-07-28 has none.
	MaxSessions int
	// SessionIdle ends a session that has sent nothing for so long; 30 min.
	SessionIdle time.Duration
	// AskTimeout is the time in which a client answers what a tool asks; 5 min. MaxAsking bounds the calls
	// that wait for such an answer between two requests, of all clients; 16. Each is one of MaxCalls.
	AskTimeout time.Duration
	MaxAsking  int
	// Tasks says which calls go on as tasks.
	Tasks Tasks
	// Drain is how long ServeStdio waits for running calls once its input has ended; 30 s.
	Drain time.Duration
	HTTP  HTTPOptions
	Now   func() time.Time           // time.Now
	NewID func(prefix string) string // random
	Log   *slog.Logger               // of the operator: no arguments, no output, no keys
}

func (o *Options) withDefaults() {
	set := func(p *int, n int) {
		if *p <= 0 {
			*p = n
		}
	}
	wait := func(p *time.Duration, d time.Duration) {
		if *p <= 0 {
			*p = d
		}
	}
	if o.Name == "" {
		o.Name = "lathe"
	}
	if o.Version == "" {
		o.Version = "0.0.0"
	}
	set(&o.PageSize, 100)
	wait(&o.ProgressEvery, 5*time.Second)
	set(&o.MaxMessageBytes, 4<<20)
	set(&o.MaxCalls, 64)
	set(&o.MaxSessions, 256)
	wait(&o.SessionIdle, 30*time.Minute)
	wait(&o.Drain, 30*time.Second)
	wait(&o.AskTimeout, 5*time.Minute)
	set(&o.MaxAsking, 16)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = func(prefix string) string { return prefix + rand.Text() }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Sinks = slices.Clone(o.Sinks)
	o.Tasks.Rules = maps.Clone(o.Tasks.Rules)
	o.Tasks.withDefaults()
	o.HTTP.withDefaults()
}

// maxTenants bounds the callers whose tools are kept ready. One without sessions makes room.
const maxTenants = 1_000

// A Server serves the tools of one runner. Its methods may be called from several goroutines at once.
type Server struct {
	duties duties
	opts   Options                     // its HTTP is what the server began with
	http   atomic.Pointer[HTTPOptions] // as they are now
	offer  atomic.Pointer[offering]
	slots  chan struct{} // of calls
	asking atomic.Int64  // calls that wait for their clients between two requests
	tasks  shelf
	posts  chan struct{} // of HTTP requests
	ctx    context.Context
	cancel context.CancelFunc

	mu       sync.Mutex
	closed   bool
	tenants  map[string]*tenant
	sessions int
	watching sync.WaitGroup // of sessions
}

// New returns a server of the tools that the runner allows.
func New(runner *tool.Runner, opts *Options) *Server {
	s := &Server{tenants: map[string]*tenant{}}
	s.duties.replace(runner)
	s.offer.Store(&offering{})
	if opts != nil {
		s.opts = *opts
	}
	s.opts.withDefaults()
	s.http.Store(&s.opts.HTTP)
	s.slots = make(chan struct{}, s.opts.MaxCalls)
	s.posts = make(chan struct{}, s.opts.HTTP.MaxRequests)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Use puts another runner in the place of the one there is: sessions go on, calls that run keep theirs,
// and clients whose tools are others now are told. The channel is closed when no call uses the one before
// any more.
func (s *Server) Use(runner *tool.Runner) (unused <-chan struct{}) {
	unused = s.duties.replace(runner)
	s.Refresh()
	return unused
}

// Admit says anew who is served over HTTP; nil: as a server without options. What is at work goes on. The
// session of a caller who may do something else now is not found at its next request, and its client begins
// anew; tasks are found by the principal that they are of. MaxRequests stays as it was.
func (s *Server) Admit(opts *HTTPOptions) {
	o := HTTPOptions{}
	if opts != nil {
		o = *opts
	}
	o.withDefaults()
	s.http.Store(&o)
}

// Refresh looks whether the tools have changed, and tells the sessions whose tools have; it does the
// same for files that clients have subscribed to. It is for whoever changes the set; without it clients
// learn of a change at their next request.
func (s *Server) Refresh() {
	for _, t := range s.everyTenant() {
		t.sync()
		t.look()
	}
}

func (s *Server) everyTenant() []*tenant {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.tenants))
}

// Sessions is how many sessions there are.
func (s *Server) Sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions
}

// Close cancels all calls, ends all sessions and waits for them.
func (s *Server) Close() {
	s.cancel()
	s.mu.Lock()
	s.closed = true
	var open []*mcp.ServerSession
	for _, t := range s.tenants {
		open = slices.AppendSeq(open, t.server.Sessions())
	}
	s.mu.Unlock()
	for _, session := range open {
		_ = session.Close() // it is gone either way
	}
	s.watching.Wait()
}

var (
	errClosed  = errors.New("the server is closed")
	errTenants = errors.New("too many callers at once")
)

// tenantOf returns what is kept ready for a caller, made if need be.
func (s *Server) tenantOf(c *Caller) (*tenant, error) {
	key := c.key()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	if t := s.tenants[key]; t != nil {
		return t, nil
	}
	if len(s.tenants) >= maxTenants {
		for k, t := range s.tenants {
			if t.idle() {
				delete(s.tenants, k)
				break
			}
		}
		if len(s.tenants) >= maxTenants {
			return nil, errTenants
		}
	}
	t := newTenant(s, c)
	s.tenants[key] = t
	return t, nil
}
