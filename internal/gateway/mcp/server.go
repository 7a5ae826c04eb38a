// Package mcp offers tools, resources and prompts to MCP clients: over standard streams and over streamable HTTP, in
// both protocol eras (2026-07-28, and `initialize` with 2024-11-05 to 2025-11-25).
//
// A tool.Runner executes every call, with its policy, limits, approvals and redaction. The sinks receive each call as a separate run:
// RunStarted, the events of the call, RunFinished. In both eras a caller sees and calls what the policy allows. The same applies to reading
// a resource and rendering a prompt: for policies and events they are the tools resource__NAME and prompt__NAME.
//
// All input of clients is untrusted. A message is limited in size and checked as strict JSON before it is decoded: duplicate keys, invalid
// UTF-8 and deep nesting are refused.
package mcp

import (
	"cmp"
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

	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/setting"
	"github.com/lathe-run/lathe/tool"
)

// Options of a [Server]. They are copied.
type Options struct {
	// Name, Title and Version identify the server to clients. The default of Name is lathe.
	Name    string `key:"name" default:"lathe"`
	Title   string
	Version string `key:"version" default:"0.0.0"`
	// Instructions are shown to the models of clients.
	Instructions string
	// Sinks get the events of each call.
	Sinks []event.Sink
	// Labels are added to every call. The server itself sets the labels `entry`, `transport` and `protocol`.
	Labels map[string]string
	// Depth is the run depth of the calls. It is 0 unless this server is itself part of a run.
	Depth int
	// PageSize is how many tools a page of tools/list has; 100.
	PageSize int `key:"page_size" default:"100"`
	// ProgressEvery is the time between progress notifications of a call whose client requests them; 5 s.
	ProgressEvery time.Duration `key:"progress_every" default:"5s"`
	// MaxMessageBytes bounds one message of a client; 4 MiB.
	MaxMessageBytes int `key:"max_message_bytes" default:"4MiB"`
	// MaxCalls bounds the calls at once, of all clients; one more is answered rate_limited; 64.
	MaxCalls int `key:"max_calls" default:"64"`
	// MaxSessions bounds the sessions at once; 256. Protocol version 2026-07-28 has no sessions.
	MaxSessions int `key:"max_sessions" default:"256"`
	// SessionIdle is the time without a message from the client after which a session ends; 30 min.
	SessionIdle time.Duration `key:"session_idle" default:"30m"`
	// AskTimeout is the time in which a client must answer a question of a tool; 5 min. MaxAsking bounds the calls of all clients that wait
	// for such an answer between two requests; 16. Each waiting call also counts towards MaxCalls.
	AskTimeout time.Duration `key:"ask_timeout" default:"5m"`
	MaxAsking  int           `key:"max_asking" default:"16"`
	// Tasks configures which calls become tasks.
	Tasks Tasks
	// Drain is how long ServeStdio waits for running calls once its input has ended; 30 s.
	Drain time.Duration `key:"drain" default:"30s"`
	HTTP  HTTPOptions
	Now   func() time.Time           // time.Now
	NewID func(prefix string) string // random
	Log   *slog.Logger               // of the operator: no arguments, no output, no keys
}

func (o *Options) withDefaults() {
	setting.Fill(o)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = func(prefix string) string { return prefix + rand.Text() }
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.Sinks = slices.Clone(o.Sinks)
	o.Tasks.Rules = maps.Clone(o.Tasks.Rules)
	o.Tasks.withDefaults()
	o.HTTP.withDefaults()
}

// maxTenants bounds the callers whose state is kept in memory. At the bound, a caller without sessions is removed.
const maxTenants = 1_000

// A Server serves the tools of one runner. Its methods may be called from several goroutines at once.
type Server struct {
	runners runners
	opts    Options                     // as given to New; for HTTP, the options in http apply
	http    atomic.Pointer[HTTPOptions] // the current options of the HTTP handler
	offer   atomic.Pointer[offering]
	slots   chan struct{} // one element for each running call
	asking  atomic.Int64  // calls that wait for their clients between two requests
	tasks   taskStore
	posts   chan struct{} // one element for each POST request in progress
	ctx     context.Context
	cancel  context.CancelFunc

	mu       sync.Mutex
	closed   bool
	tenants  map[string]*tenant
	sessions int
	watching sync.WaitGroup // the goroutines that wait for the end of sessions, and those of apart
}

// New returns a server of the tools that the runner allows.
func New(runner *tool.Runner, opts *Options) *Server {
	s := &Server{tenants: map[string]*tenant{}}
	s.runners.replace(runner)
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

// Use replaces the runner. Sessions stay open, running calls keep the former runner, and clients whose tools have changed
// are notified. The channel is closed when no call uses the former runner.
func (s *Server) Use(runner *tool.Runner) (unused <-chan struct{}) {
	unused = s.runners.replace(runner)
	s.Refresh()
	return unused
}

// Admit replaces the options of the HTTP handler; nil sets the defaults. Requests in progress are not affected. If the rights of a caller
// have changed, the next request in its session is answered that there is no such session, and its client opens a new one. Its tasks remain
// accessible, because they belong to the principal. MaxRequests does not change.
func (s *Server) Admit(opts *HTTPOptions) {
	o := HTTPOptions{}
	if opts != nil {
		o = *opts
	}
	o.withDefaults()
	s.http.Store(&o)
}

// Refresh checks whether the tools, or files that clients have subscribed to, have changed, and notifies the sessions concerned. A program
// that changes the tool set must call it; otherwise clients see the change only at their next request.
func (s *Server) Refresh() {
	for _, t := range s.everyTenant() {
		t.sync()
		t.checkWatched()
	}
}

func (s *Server) everyTenant() []*tenant {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.tenants))
}

// Sessions returns the number of open sessions.
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
		_ = session.Close() // an error means that it has already ended
	}
	s.watching.Wait()
}

var (
	errClosed  = errors.New("the server is closed")
	errTenants = errors.New("too many callers at once")
)

// tenantOf returns the state of a caller, and creates it if necessary.
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
