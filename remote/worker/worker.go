// Package worker executes tools for gateways elsewhere. It makes one outgoing connection, advertises its
// tools, and executes each call that the gateway sends with a runner of its own, under its own policy and limits.
//
// It keeps each call until a gateway has acknowledged the result. When the connection breaks, calls continue,
// and the worker sends their results on the next connection, to any gateway that shares the store.
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

// Options of a [Worker].
type Options struct {
	// URL is the gateway's: https://gateway.example.com, or wss. If it has no path, the path is /v1/worker.
	URL   string        // required
	Token secret.Secret // required: what the gateway's configuration has under workers
	// AllowHTTP lets the token be sent in the clear to another machine.
	AllowHTTP bool
	// Name tells the workers of a token apart: 1 to 64 of a-z, A-Z, 0-9, _, - and dots. Made up where it is empty. No two
	// processes may have the same.
	Name        string
	Tools       []string      // those that are served; nil: all of the runner's set that its policy could allow
	Concurrency int           // calls at once; 8
	Drain       time.Duration // how long calls may run after the worker has begun to stop; 30 s. Negative: not at all
	// Backoff is the time before the second try to connect, doubled before each further one up to MaxBackoff, and up to half
	// the time after which the gateway gives calls up, less up to half at random: 500 ms, 15 s.
	Backoff, MaxBackoff time.Duration
	Client              *http.Client // makes the connection; nil: a client that uses the proxies of the environment
	SDK                 string       // name and version of the program, for the gateway
	// OnState is called when the worker has connected or lost its connection, and OnCall when a call has ended; code is ""
	// if the call succeeded. Each is called by one goroutine at a time, and must not block.
	OnState func(State)
	OnCall  func(tool string, code lathe.Code, took time.Duration)
	// Sinks get the events of each call, from one goroutine at a time; the events have no IDs, since the gateway owns the run.
	Sinks []event.Sink
	Log   *slog.Logger // nil: nothing is logged
}

// A State says how a worker is connected.
type State struct {
	Connected bool
	Refused   map[string]string // tools that the gateway refused, and why
	Err       error             // why the worker is not connected
	Retry     time.Duration     // until the next try
}

// A Worker serves the tools of a runner.
type Worker struct {
	opts   Options
	runner *tool.Runner
	url    string
	// instance distinguishes the process from others of the same name.
	instance string

	mu        sync.Mutex
	held      map[workers.Ref]*job
	now       *session // nil: not connected
	draining  bool
	count     Count         // its numbers that only grow
	empty     chan struct{} // signalled when no call is held any more; buffers one signal
	jobs      sync.WaitGroup
	reporting sync.Mutex
}

// New returns a worker. The error is a *[lathe.Error] of code invalid_config.
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
	if w.url, err = address(o); err == nil && !workers.ValidName(o.Name) {
		err = errors.New("the name is not 1 to 64 of the characters a-z, A-Z, 0-9, _, - and dots")
	}
	if err == nil && o.Token.IsZero() {
		err = errors.New("a token is required: the gateway's configuration has it under workers")
	}
	if err != nil {
		return nil, &lathe.Error{Code: lathe.CodeInvalidConfig, Op: "worker", Err: err}
	}
	return w, nil
}

// address returns where to connect.
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

// Name returns the name of the worker.
func (w *Worker) Name() string { return w.opts.Name }

// Offers returns what the worker serves now: the tools that its policy could allow a call of, as it
// describes them to gateways, sorted by name.
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

// Run serves until ctx is done, connecting again whenever the connection is lost. Then it takes no more
// calls, and returns when those that it has are finished and their results taken, or their time is over.
func (w *Worker) Run(ctx context.Context) {
	hard, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		select {
		case <-ctx.Done():
		case <-hard.Done():
			return
		}
		w.drain(hard)
		stop()
	}()
	defer func() { <-drained }()
	wait, most := w.opts.Backoff, w.opts.MaxBackoff // most: in time to keep what is held
	for hard.Err() == nil {
		s := &session{w: w, began: time.Now(), outbox: make(chan *workers.Frame, maxOutbox)}
		err := s.serve(hard)
		if hard.Err() != nil {
			break
		}
		if s.welcomed {
			wait = w.opts.Backoff
		}
		if s.lease > 0 {
			most = min(w.opts.MaxBackoff, s.lease/2)
		}
		pause := jitter(min(wait, most))
		w.reportState(State{Err: err, Retry: pause})
		_ = reconnect.Wait(hard, pause)
		wait = min(2*wait, most)
	}
	w.mu.Lock()
	for _, j := range w.held {
		j.cancel()
	}
	w.mu.Unlock()
	w.jobs.Wait()
}

// drain takes no more calls and waits until nothing is held.
func (w *Worker) drain(ctx context.Context) {
	w.mu.Lock()
	w.draining = true
	now, left := w.now, len(w.held)
	w.mu.Unlock()
	if w.opts.Drain < 0 {
		return
	}
	if now != nil {
		now.write(&workers.Frame{Type: workers.Drain})
	}
	timer := time.NewTimer(w.opts.Drain)
	defer timer.Stop()
	for left > 0 {
		select {
		case <-w.empty:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
		w.mu.Lock()
		left = len(w.held)
		w.mu.Unlock()
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

// jitter takes up to half of a time off.
func jitter(d time.Duration) time.Duration {
	var b [1]byte
	_, _ = rand.Read(b[:]) // it never fails
	return d - d*time.Duration(b[0])/512
}
