package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/leaktest"
	"github.com/lathe-run/lathe/internal/testkit/pgtest"
	"github.com/lathe-run/lathe/internal/testkit/remotetest"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/remote"
	"github.com/lathe-run/lathe/remote/worker"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/tool"
)

func TestMain(m *testing.M) { leaktest.Main(pgtest.M(m)) }

const token = "a-token-of-workers-0123456789"

// network connects workers and gateways by pipes, all in one bubble, whose time stands still while anybody
// is at work.
type network struct {
	mu    sync.Mutex
	to    *node // where new connections lead; nil: nowhere
	conns []*line
}

// A line is one connection. While it is down what is written is lost, and nothing comes.
type line struct {
	net.Conn
	mu   sync.Mutex
	down bool
}

func (l *line) Write(b []byte) (int, error) {
	l.mu.Lock()
	down := l.down
	l.mu.Unlock()
	if down {
		return len(b), nil
	}
	return l.Conn.Write(b)
}

func (n *network) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	n.mu.Lock()
	to := n.to
	n.mu.Unlock()
	if to == nil {
		return nil, errors.New("no server")
	}
	here, there := net.Pipe()
	mine, theirs := &line{Conn: here}, &line{Conn: there}
	select {
	case to.incoming <- theirs:
	case <-to.closed:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.conns = append(n.conns, mine, theirs)
	return mine, nil
}

// lead directs new connections to a node.
func (n *network) lead(to *node) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.to = to
}

// fail breaks all connections: with cut it closes them, else they go silent and neither side gets an error.
func (n *network) fail(cut bool) {
	if end := n.mute(); cut {
		end()
	}
}

// mute has all connections go silent. cut ends them.
func (n *network) mute() (cut func()) {
	n.mu.Lock()
	conns := n.conns
	n.conns = nil
	n.mu.Unlock()
	for _, c := range conns {
		c.mu.Lock()
		c.down = true
		c.mu.Unlock()
	}
	return func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}
}

// node is a gateway: a site, and its handler of workers.
type node struct {
	*remotetest.Site
	t        *testing.T
	workers  *server.Workers
	incoming chan net.Conn
	closed   chan struct{}
	stop     func()
}

func (n *node) Accept() (net.Conn, error) {
	select {
	case c := <-n.incoming:
		return c, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

func (n *node) Close() error   { return nil }
func (n *node) Addr() net.Addr { return &net.TCPAddr{} }

func startNode(t *testing.T, queue remote.Queue, pools ...server.WorkerPool) *node {
	t.Helper()
	if pools == nil {
		pools = []server.WorkerPool{{Name: "f", Token: secret.New(token), Tools: []string{"*"}, Effects: []lathe.Effect{lathe.ReadOnly, lathe.Idempotent}}}
	}
	n := &node{Site: remotetest.Open(t, queue), t: t, incoming: make(chan net.Conn), closed: make(chan struct{})}
	var err error
	if n.workers, err = server.NewWorkers(&server.WorkerOptions{Queue: queue, Registry: n.Catalogue, Pools: pools}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var over sync.WaitGroup
	over.Go(func() { n.workers.Serve(ctx) })
	srv := &http.Server{Handler: n.workers}
	over.Go(func() { _ = srv.Serve(n) })
	var once sync.Once
	n.stop = func() {
		once.Do(func() {
			gone, enough := context.WithTimeout(context.Background(), time.Minute)
			defer enough()
			n.workers.Close(gone)
			close(n.closed)
			_ = srv.Close()
			cancel()
			over.Wait()
			n.Site.Close()
		})
	}
	return n
}

// run has a run of that id make one call.
func (n *node) run(ctx context.Context, id, name string) lathe.ToolResult {
	n.t.Helper()
	return n.Run(ctx, id, remotetest.Ask(name))
}

// has waits until the set has the tool, or, if want is false, until it does not.
func (n *node) has(name string, want bool) {
	n.t.Helper()
	for range 1000 {
		if _, ok := n.Set.Lookup(name); ok == want {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	n.t.Fatalf("the tool %s: want %t", name, want)
}

// body is what a tool does.
type body func(ctx context.Context, args json.RawMessage) (*lathe.Output, error)

type fake struct {
	spec lathe.ToolSpec
	call body
}

func (f *fake) Spec() *lathe.ToolSpec { return &f.spec }
func (f *fake) Call(ctx context.Context, args json.RawMessage) (*lathe.Output, error) {
	return f.call(ctx, args)
}

func does(name string, effect lathe.Effect, call body) *fake {
	return &fake{lathe.ToolSpec{Name: name, Description: "Does.", Schema: json.RawMessage(`{"type":"object"}`), Effect: effect, Allowlist: []string{"*"}, Timeout: 5 * time.Minute}, call}
}

func returns(data string) body {
	return func(context.Context, json.RawMessage) (*lathe.Output, error) {
		return &lathe.Output{Data: json.RawMessage(data)}, nil
	}
}

// startWorker starts a worker of the tools. stop has it end, and waits until it has.
func startWorker(t *testing.T, net *network, opts *worker.Options, tools ...lathe.Tool) (stop func()) {
	t.Helper()
	var w *worker.Worker
	return startWorkerAs(t, net, opts, &w, tools...)
}

// startWorkerAs is startWorker for who wants to know the worker.
func startWorkerAs(t *testing.T, net *network, opts *worker.Options, as **worker.Worker, tools ...lathe.Tool) (stop func()) {
	t.Helper()
	set, err := tool.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	o := worker.Options{}
	if opts != nil {
		o = *opts
	}
	transport := &http.Transport{DialContext: net.dial}
	o.URL, o.Client = "http://127.0.0.1", &http.Client{Transport: transport}
	if o.Token.IsZero() {
		o.Token = secret.New(token)
	}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.AllowAll(), Limits: lathe.Limits{ToolTimeout: 5 * time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	w, err := worker.New(runner, &o)
	if err != nil {
		t.Fatal(err)
	}
	*as = w
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() { w.Run(ctx); close(over) }()
	return func() {
		cancel()
		<-over
		transport.CloseIdleConnections()
	}
}

func bubble(t *testing.T, fn func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, fn)
}

func memory() *store.Memory { return store.NewMemory(nil) }
