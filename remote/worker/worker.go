// Package worker executes tools for gateways on other machines. It makes one outgoing connection, advertises its tools, and executes each
// call that the gateway sends with its own runner, under its own policy and limits.
//
// It stores each call in memory until a gateway has acknowledged the result. If the connection breaks, calls continue, and the worker sends
// their results on the next connection, to any gateway with the same store.
package worker

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/httpname"
	"github.com/lathe-run/lathe/internal/reconnect"
	"github.com/lathe-run/lathe/internal/wire/workers"
	"github.com/lathe-run/lathe/remote"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/tool"
)

// Options configure a [Worker]. URL and Token are required.
type Options struct {
	// URL is the URL of the gateway, such as https://gateway.example.com, or with the scheme wss. If it has no path, the path is /v1/worker.
	// http and ws are allowed for a gateway on the same machine only, unless AllowHTTP is set.
	URL   string        // required
	Token secret.Secret // required: the token of a worker pool in the gateway's configuration, under workers
	// AllowHTTP allows the worker to send the token without encryption to another machine.
	AllowHTTP bool
	// Name distinguishes the workers with one token: 1 to 64 characters of a-z, A-Z, 0-9, _, - and dots; "": a random name. No two
	// processes may have the same name.
	Name        string
	Tools       []string      // the names of the tools to serve; nil: all tools of the runner that its policy could allow
	Concurrency int           // the maximum number of concurrent calls; 0: 8, at most 1,024
	Drain       time.Duration // the maximum time that calls may continue after ctx of Run is done; 0: 30 s. Negative: they are cancelled at once
	// Backoff is the time before the second attempt to connect; 0: 500 ms. It is doubled before each further attempt, up to MaxBackoff (0:
	// 15 s) and up to half the lease of the gateway. A random part of up to half is subtracted.
	Backoff, MaxBackoff time.Duration
	Client              *http.Client // makes the connection; nil: a client that uses the proxies of the environment
	SDK                 string       // name and version of the program, which the worker reports to the gateway
	// OnState is called when the worker has connected or lost its connection, when an attempt to connect has failed, and when the gateway has
	// answered a change of the tools. OnCall is called when a call has ended; code is "" if the call succeeded. At most one of them is called
	// at a time. Neither may block.
	OnState func(State)
	OnCall  func(tool string, code lathe.Code, took time.Duration)
	// Sinks receive the events of each call, one event at a time. The events have no IDs, since the gateway owns the run.
	Sinks []event.Sink
	Log   *slog.Logger // receives log records; nil: no logging
}

// A State is the state of a worker's connection.
type State struct {
	Connected bool
	Refused   map[string]string // reasons of the gateway by the name of each refused tool
	Err       error             // why the worker is not connected; nil: it is connected
	Retry     time.Duration     // the time until the next attempt to connect; 0: it is connected
}

// A Worker executes the calls that a gateway sends it with the tools of a runner. Its methods may be called from several goroutines at once.
type Worker struct {
	opts   Options
	runner *tool.Runner
	url    string
	// instance is a random id that distinguishes this process from others with the same name.
	instance string

	mu       sync.Mutex // guards held, session, draining and count
	held     map[workers.Ref]*job
	session  *session // the current connection; nil: not connected
	draining bool     // no further calls are started
	count    Count    // the fields Connects, OK, Failed, NotRun and Late; the others stay 0

	empty     chan struct{}  // receives a value when held becomes empty; buffers one
	jobs      sync.WaitGroup // the goroutines that execute calls
	reporting sync.Mutex     // held while a function of Options or a sink is called
}

// New returns a worker. The worker connects when Run is called. runner and opts are required; opts is copied. An error has the code
// invalid_config: the URL, the name or the token is not valid.
func New(runner *tool.Runner, opts *Options) (*Worker, error) {
	w := &Worker{opts: *opts, runner: runner, instance: rand.Text(), held: map[workers.Ref]*job{}, empty: make(chan struct{}, 1)}
	o := &w.opts
	o.Tools, o.Sinks = slices.Clone(opts.Tools), slices.Clone(opts.Sinks)
	if o.Concurrency <= 0 {
		o.Concurrency = 8
	}
	o.Concurrency = min(o.Concurrency, workers.MaxHeld)
	if o.Drain == 0 {
		o.Drain = 30 * time.Second
	}
	if o.Backoff <= 0 {
		o.Backoff = 500 * time.Millisecond
	}
	if o.MaxBackoff <= 0 {
		o.MaxBackoff = 15 * time.Second
	}
	if o.Name == "" {
		o.Name = strings.ToLower(rand.Text())
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Client == nil {
		o.Client = &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: false, TLSHandshakeTimeout: dialTimeout}}
	}
	var err error
	if w.url, err = address(o); err != nil {
		return nil, lathe.CodeInvalidConfig.Wrap("worker", err)
	}
	if !workers.ValidName(o.Name) {
		return nil, lathe.CodeInvalidConfig.Errorf("worker", "the name is not 1 to 64 of the characters a-z, A-Z, 0-9, _, - and dots")
	}
	if o.Token.IsZero() {
		return nil, lathe.CodeInvalidConfig.Errorf("worker", "a token is required: the gateway's configuration has it under workers")
	}
	return w, nil
}

// address returns the URL to connect to.
func address(o *Options) (string, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return "", errors.New("the address of a gateway is like https://gateway.example.com")
	}
	switch u.Scheme {
	case "https", "wss":
		u.Scheme = "https"
	case "http", "ws":
		u.Scheme = "http"
		if !o.AllowHTTP && !httpname.IsLoopback(u.Hostname()) {
			return "", errors.New("the token would be sent in the clear to another machine: use https")
		}
	default:
		return "", errors.New("the address of a gateway begins with https://")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = workers.Path
	}
	return u.String(), nil
}

// Name returns the name of the worker: [Options].Name, or the random name that [New] generated.
func (w *Worker) Name() string { return w.opts.Name }

// Offers returns the descriptions of the tools that the worker serves now, sorted by name. The worker serves a tool if its runner's policy
// could allow a call of it. It serves at most 256 tools; the rest are left out.
func (w *Worker) Offers() []remote.Tool {
	work := w.runner.Begin(&lathe.RunInfo{Principal: principal}, &tool.RunOptions{Allow: w.opts.Tools})
	var out []remote.Tool
	for _, s := range work.Specs() {
		if s.Owner == lathe.OwnerClient || len(out) == workers.MaxTools {
			continue
		}
		out = append(out, remote.Tool{Name: s.Name, Description: s.Description, Schema: s.Schema, OutputSchema: s.OutputSchema, Effect: s.Effect.String(),
			Allowlist: s.Allowlist, Target: s.Target, Labels: s.Labels, Version: s.SchemaVersion, TimeoutMS: s.Timeout.Milliseconds()})
	}
	return out
}

// Run connects to the gateway and executes calls, and blocks until ctx is done. If the connection is lost or cannot be made, Run connects
// again. After ctx is done, Run accepts no more calls, and returns when the gateway has acknowledged the results of all calls in progress.
// If that takes longer than Options.Drain, Run cancels the calls that are left and returns after they have returned. Run must be called
// only once.
func (w *Worker) Run(ctx context.Context) {
	drained, stop := context.WithCancel(context.WithoutCancel(ctx)) // done after ctx, when the connection is not needed any more
	var draining sync.WaitGroup
	draining.Go(func() {
		<-ctx.Done()
		w.drain()
		stop()
	})
	w.connect(drained)
	draining.Wait()
	w.mu.Lock()
	for _, j := range w.held {
		j.cancel()
	}
	w.mu.Unlock()
	w.jobs.Wait()
}

// connect serves one connection after the other until ctx is done.
func (w *Worker) connect(ctx context.Context) {
	// maxWait keeps the pause below the lease, so that the worker reconnects before its claims expire.
	wait, maxWait := w.opts.Backoff, w.opts.MaxBackoff
	for ctx.Err() == nil {
		s := &session{w: w, began: time.Now(), outbox: make(chan *workers.Frame, maxOutbox)}
		err := s.serve(ctx)
		if ctx.Err() != nil {
			return
		}
		if s.welcomed {
			wait = w.opts.Backoff
			maxWait = min(w.opts.MaxBackoff, s.lease/2)
		}
		pause := jitter(min(wait, maxWait))
		w.reportState(State{Err: err, Retry: pause})
		_ = reconnect.Wait(ctx, pause)
		wait = min(2*wait, maxWait)
	}
}

// drain makes the worker refuse further calls and waits until it has no call, at most Options.Drain.
func (w *Worker) drain() {
	w.mu.Lock()
	w.draining = true
	s := w.session
	w.mu.Unlock()
	if w.opts.Drain < 0 {
		return
	}
	if s != nil {
		s.write(&workers.Frame{Type: workers.Drain})
	}
	late := time.After(w.opts.Drain)
	for len(w.refs()) > 0 {
		select {
		case <-w.empty:
		case <-late:
			return
		}
	}
}

func (w *Worker) reportState(s State) {
	w.reporting.Lock()
	defer w.reporting.Unlock()
	if s.Err != nil {
		w.opts.Log.Warn("not connected", "error", s.Err, "retry_ms", s.Retry.Milliseconds())
	}
	if w.opts.OnState != nil {
		w.opts.OnState(s)
	}
}

// jitter subtracts a random part of up to half from d.
func jitter(d time.Duration) time.Duration {
	var b [1]byte
	_, _ = rand.Read(b[:]) // never fails
	return d - d*time.Duration(b[0])/512
}
