package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire/workers"
	"github.com/lathe-run/lathe/remote"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
)

const workerToken = "a-token-of-workers-0123456789"

// roster takes every tool.
type roster struct{ queue remote.Queue }

func (r roster) Announce(ctx context.Context, w *remote.Worker, ttl time.Duration) (map[string]string, error) {
	return nil, r.queue.PutWorker(ctx, w, ttl)
}
func (r roster) Refused(string) map[string]string { return nil }

var errDown = errors.New("down")

// flaky is a queue whose store cannot be reached while it is down.
type flaky struct {
	remote.Queue
	mu   sync.Mutex
	down bool
	puts chan time.Duration // for how long workers were put, or at most are known; room for some
	// If kept is not nil, it receives after a result was stored, and the call returns after a receive from goOn.
	kept, goOn chan struct{}
}

func (f *flaky) PutWorker(ctx context.Context, w *remote.Worker, ttl time.Duration) error {
	f.count(ttl)
	return f.Queue.PutWorker(ctx, w, ttl)
}

func (f *flaky) ShortenWorker(ctx context.Context, id string, ttl time.Duration) error {
	f.count(ttl)
	return f.Queue.ShortenWorker(ctx, id, ttl)
}

func (f *flaky) count(ttl time.Duration) {
	select {
	case f.puts <- ttl:
	default: // the test does not read them
	}
}

func (f *flaky) set(down bool) { f.mu.Lock(); f.down = down; f.mu.Unlock() }

func (f *flaky) FinishCall(ctx context.Context, c remote.Ref, r *remote.Result) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down {
		return &lathe.Error{Code: lathe.CodeUnavailable, Err: errDown}
	}
	err := f.Queue.FinishCall(ctx, c, r)
	if f.kept != nil {
		f.kept <- struct{}{}
		<-f.goOn
	}
	return err
}

type workerRig struct {
	t     *testing.T
	queue *flaky
	w     *server.Workers
	srv   *httptest.Server
}

func newWorkerRig(t *testing.T, opts server.WorkerOptions) *workerRig {
	t.Helper()
	r := &workerRig{t: t, queue: &flaky{Queue: store.NewMemory(nil), puts: make(chan time.Duration, 100)}}
	opts.Queue, opts.Registry = r.queue, roster{r.queue}
	if opts.Lease == 0 {
		opts.Lease = 5 * time.Minute // the peers of most tests send no beats
	}
	if opts.Pools == nil {
		opts.Pools = []server.WorkerPool{{Name: "f", Token: secret.New(workerToken), Tools: []string{"act"}}, {Name: "g", Token: secret.New(workerToken + "g"), Tools: []string{"act"}}}
	}
	var err error
	if r.w, err = server.NewWorkers(&opts); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() { r.w.Serve(ctx); close(over) }()
	r.srv = httptest.NewServer(r.w)
	t.Cleanup(func() {
		gone, enough := context.WithCancel(context.Background())
		enough()
		r.w.Close(gone)
		r.srv.Close()
		cancel()
		<-over
	})
	return r
}

// peer is a worker that does as the test says.
type peer struct {
	t  *testing.T
	ws *websocket.Conn
}

func (r *workerRig) dial(token string) *peer {
	r.t.Helper()
	ws, res, err := websocket.Dial(r.t.Context(), r.srv.URL, &websocket.DialOptions{Subprotocols: []string{workers.Protocol}, HTTPHeader: http.Header{"Authorization": {"Bearer " + token}}})
	if err != nil {
		r.t.Fatal(err, res)
	}
	ws.SetReadLimit(workers.MaxFrame)
	r.t.Cleanup(func() { _ = ws.CloseNow() })
	return &peer{r.t, ws}
}

func (p *peer) send(f *workers.Frame) {
	p.t.Helper()
	b, err := workers.Encode(f)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.ws.Write(p.t.Context(), websocket.MessageText, b); err != nil {
		p.t.Fatal(err)
	}
}

// next returns the next frame of the type; what comes before it, or the end of the connection, is passed over or fails.
func (p *peer) next(kind string) *workers.Frame {
	p.t.Helper()
	for {
		_, b, err := p.ws.Read(p.t.Context())
		if err != nil {
			p.t.Fatalf("waiting for a %s: %v", kind, err)
		}
		f, err := workers.Decode(b)
		if err != nil {
			p.t.Fatal(err)
		}
		if f.Type == kind {
			return f
		}
	}
}

// ended waits for the end of the connection, and returns why.
func (p *peer) ended() string {
	for {
		if _, _, err := p.ws.Read(p.t.Context()); err != nil {
			if e := (websocket.CloseError{}); errors.As(err, &e) {
				return e.Reason
			}
			return err.Error()
		}
	}
}

var act = remote.Tool{Name: "act", Schema: json.RawMessage(`{"type":"object"}`), Effect: "read_only", Allowlist: []string{"*"}}

// hello connects and says what is served. The effect is not believed: no fleet here may claim one.
func (r *workerRig) hello(token, name string, held ...workers.Ref) *peer {
	p := r.dial(token)
	p.send(&workers.Frame{Type: workers.Hello, Worker: name, Credits: 4, Offers: []remote.Tool{act}, Held: held})
	if f := p.next(workers.Welcome); f.LeaseMS == 0 {
		r.t.Errorf("the welcome is %+v", f)
	}
	return p
}

func (r *workerRig) put(key string) {
	r.t.Helper()
	writes := act
	writes.Effect = "writes"
	if _, err := r.queue.PutCall(r.t.Context(), &remote.Call{Key: key, RunID: "r", CallID: "c", Tool: "act", Definition: writes.Definition(), Effect: lathe.Writes,
		Arguments: json.RawMessage(`{"a":1}`)}, time.Hour); err != nil {
		r.t.Fatal(err)
	}
}

// is polls until the call is in the state.
func (r *workerRig) is(key string, want remote.State) *remote.Call {
	r.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		row, err := r.queue.FindCall(r.t.Context(), key)
		if err != nil {
			r.t.Fatal(err)
		}
		if row.State == want {
			return row
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("the call is %s, want %s", row.State, want)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestNegativeWorkerOptionsAreRefused(t *testing.T) {
	queue := store.NewMemory(nil)
	if _, err := server.NewWorkers(&server.WorkerOptions{Queue: queue, Registry: roster{queue}, Lease: -time.Second}); err == nil || !strings.Contains(err.Error(), "lease") {
		t.Errorf("a negative lease: %v; want an error that names it", err)
	}
}

func TestWorkersAreIdentified(t *testing.T) {
	t.Parallel()
	r := newWorkerRig(t, server.WorkerOptions{MaxWorkers: 1})
	for name, tt := range map[string]struct {
		header http.Header
		want   int
	}{
		"nothing":    {http.Header{}, 401},
		"wrong":      {http.Header{"Authorization": {"Bearer " + workerToken + "x"}}, 401},
		"no bearer":  {http.Header{"Authorization": {workerToken}}, 401},
		"two":        {http.Header{"Authorization": {"Bearer " + workerToken, "Bearer " + workerToken}}, 401},
		"page":       {http.Header{"Authorization": {"Bearer " + workerToken}, "Origin": {"https://evil.example"}}, 403},
		"own origin": {http.Header{"Authorization": {"Bearer " + workerToken}, "Origin": {r.srv.URL}}, 403},
	} {
		_, res, err := websocket.Dial(t.Context(), r.srv.URL, &websocket.DialOptions{Subprotocols: []string{workers.Protocol}, HTTPHeader: tt.header})
		if err == nil || res == nil || res.StatusCode != tt.want {
			t.Errorf("%s: %v, %v, want %d", name, err, res, tt.want)
		}
	}
	p := r.hello(workerToken, "w")
	if _, res, err := websocket.Dial(t.Context(), r.srv.URL, &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + workerToken}}}); err == nil || res.StatusCode != 503 {
		t.Errorf("a worker too many: %v", err)
	}
	if err := r.w.Reload([]server.WorkerPool{{Name: "f", Token: secret.New(workerToken), Tools: nil}}); err != nil {
		t.Fatal(err)
	}
	if why := p.ended(); !strings.Contains(why, "token has changed") {
		t.Errorf("it ended because %q", why)
	}
	for name, bad := range map[string][]server.WorkerPool{
		"no name": {{Token: secret.New(workerToken)}}, "slash": {{Name: "a/b", Token: secret.New(workerToken)}}, "short": {{Name: "a", Token: secret.New("short")}},
		"twice":    {{Name: "a", Token: secret.New(workerToken)}, {Name: "a", Token: secret.New(workerToken + "1")}},
		"the same": {{Name: "a", Token: secret.New(workerToken)}, {Name: "b", Token: secret.New(workerToken)}}} {
		if err := r.w.Reload(bad); lathe.CodeOf(err) != lathe.CodeInvalidConfig || strings.Contains(err.Error(), workerToken) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A reload that changes other settings leaves the workers of a pool connected.
func TestReloadKeepsWorkersOfUnchangedPools(t *testing.T) {
	t.Parallel()
	fleets := func(tools ...string) []server.WorkerPool {
		return []server.WorkerPool{{Name: "f", Token: secret.New(workerToken), Tools: tools}}
	}
	r := newWorkerRig(t, server.WorkerOptions{Pools: fleets("act")})
	p := r.hello(workerToken, "w")
	if err := r.w.Reload(fleets("act")); err != nil {
		t.Fatal(err)
	}
	r.put("k")
	if f := p.next(workers.Call); f.Key != "k" {
		t.Errorf("got %+v", f)
	}
	if err := r.w.Reload(fleets("act", "more")); err != nil {
		t.Fatal(err)
	}
	if why := p.ended(); !strings.Contains(why, "token has changed") {
		t.Errorf("it ended because %q", why)
	}
}

func TestWorkersMustSpeakTheProtocol(t *testing.T) {
	t.Parallel()
	r := newWorkerRig(t, server.WorkerOptions{})
	for name, tt := range map[string]struct {
		say  func(p *peer)
		want string
	}{
		"no hello":  {func(p *peer) { p.send(&workers.Frame{Type: workers.Beat}) }, "first frame is a hello"},
		"no name":   {func(p *peer) { p.send(&workers.Frame{Type: workers.Hello}) }, "first frame is a hello"},
		"slash":     {func(p *peer) { p.send(&workers.Frame{Type: workers.Hello, Worker: "a/b"}) }, "first frame is a hello"},
		"no JSON":   {func(p *peer) { _ = p.ws.Write(t.Context(), websocket.MessageText, []byte("canary")) }, "not one of this protocol"},
		"binary":    {func(p *peer) { _ = p.ws.Write(t.Context(), websocket.MessageBinary, []byte("{}")) }, "frames are text"},
		"too large": {func(p *peer) { _ = p.ws.Write(t.Context(), websocket.MessageText, make([]byte, workers.MaxHello+1)) }, ""},
	} {
		p := r.dial(workerToken)
		tt.say(p)
		if why := p.ended(); !strings.Contains(why, tt.want) || strings.Contains(why, "canary") {
			t.Errorf("%s: it ended because %q, want %q", name, why, tt.want)
		}
	}
	ws, _, err := websocket.Dial(t.Context(), r.srv.URL, &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + workerToken}}})
	if err != nil {
		t.Fatal(err)
	}
	if why := (&peer{t, ws}).ended(); !strings.Contains(why, workers.Protocol) {
		t.Errorf("another subprotocol: %q", why)
	}
}

// Who sends no hello, or says nothing after it, is cut.
func TestSilentWorkersAreCut(t *testing.T) {
	t.Parallel()
	newWorkerRig(t, server.WorkerOptions{HelloTimeout: 50 * time.Millisecond}).dial(workerToken).ended()
	newWorkerRig(t, server.WorkerOptions{Lease: 300 * time.Millisecond}).hello(workerToken, "w").ended()
}

// F14: a result that is sent twice, too late, for another attempt, or by another worker does not count.
func TestResultsCountOnce(t *testing.T) {
	t.Parallel()
	r := newWorkerRig(t, server.WorkerOptions{})
	p := r.hello(workerToken, "w")
	r.put("k")
	f := p.next(workers.Call)
	if f.Invoke == nil || f.Invoke.Tool != "act" || string(f.Invoke.Arguments) != `{"a":1}` || f.Invoke.RunID != "r" || f.Invoke.CallID != "c" || f.Attempt != 1 || f.Key != "k" || f.Invoke.DeadlineMS <= f.AtMS {
		t.Errorf("the call is %+v %+v", f, f.Invoke)
	}
	r.is("k", remote.Started)
	result := func(ref workers.Ref, text string) *workers.Frame {
		return &workers.Frame{Type: workers.Result, Ref: ref, Output: &remote.Result{Data: json.RawMessage(text)}}
	}
	for name, other := range map[string]*peer{"the same name of another token": r.hello(workerToken+"g", "w"), "another name": r.hello(workerToken, "other")} {
		other.send(result(f.Ref, `"theirs"`))
		if a := other.next(workers.Ack); a.Taken || a.Ref != f.Ref {
			t.Errorf("%s: %+v", name, a)
		}
	}
	for _, ref := range []workers.Ref{{Key: "k", Attempt: 2}, {Key: "k", Attempt: 0}, {Key: "none", Attempt: 1}} {
		p.send(result(ref, `"wrong"`))
		if a := p.next(workers.Ack); a.Taken || a.Ref != ref {
			t.Errorf("%+v: %+v", ref, a)
		}
	}
	for _, text := range []string{`"first"`, `"second"`} {
		p.send(result(f.Ref, text))
		if a := p.next(workers.Ack); !a.Taken || a.Ref != f.Ref {
			t.Errorf("%+v", a)
		}
	}
	if row := r.is("k", remote.Done); string(row.Result.Data) != `"first"` {
		t.Errorf("the result is %s", row.Result.Data)
	}
}

// A call that a worker has not run is queued again, and goes to a worker once more.
func TestReturnedCalls(t *testing.T) {
	t.Parallel()
	r := newWorkerRig(t, server.WorkerOptions{})
	p := r.hello(workerToken, "w")
	r.put("k")
	first := p.next(workers.Call)
	p.send(&workers.Frame{Type: workers.Error, Ref: first.Ref, NotRun: true})
	if a := p.next(workers.Ack); !a.Taken {
		t.Errorf("%+v", a)
	}
	second := p.next(workers.Call)
	if second.Key != "k" || second.Attempt != 2 {
		t.Errorf("%+v", second)
	}
	p.send(&workers.Frame{Type: workers.Error, Ref: second.Ref, Code: lathe.CodeUnavailable, Detail: "closed"})
	p.next(workers.Ack)
	if row := r.is("k", remote.Done); !row.Result.IsError || row.Result.Code != lathe.CodeUnavailable || row.Result.Detail != "closed" {
		t.Errorf("%+v", row.Result)
	}
}

// While the store cannot be reached a result is not acknowledged; the worker tells it again on the next connection.
func TestResultsWaitForTheStore(t *testing.T) {
	t.Parallel()
	r := newWorkerRig(t, server.WorkerOptions{})
	p := r.hello(workerToken, "w")
	r.put("k")
	f := p.next(workers.Call)
	r.queue.set(true)
	result := &workers.Frame{Type: workers.Result, Ref: f.Ref, Output: &remote.Result{Data: json.RawMessage(`1`)}}
	p.send(result)
	if why := p.ended(); !strings.Contains(why, "store") {
		t.Errorf("it ended because %q", why)
	}
	r.queue.set(false)
	p = r.hello(workerToken, "w", f.Ref)
	p.send(result)
	if a := p.next(workers.Ack); !a.Taken {
		t.Errorf("%+v", a)
	}
	r.is("k", remote.Done)
}

// Who wants a call cancelled is heard by the worker that has it, also when it comes back with it.
func TestWorkersHearOfCancels(t *testing.T) {
	t.Parallel()
	r := newWorkerRig(t, server.WorkerOptions{})
	p := r.hello(workerToken, "w")
	r.put("k")
	f := p.next(workers.Call)
	if _, err := r.queue.CancelCall(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	if c := p.next(workers.Cancel); c.Ref != f.Ref {
		t.Errorf("%+v", c)
	}
	_ = p.ws.CloseNow()
	p = r.hello(workerToken, "w", f.Ref)
	if c := p.next(workers.Cancel); c.Ref != f.Ref {
		t.Errorf("%+v", c)
	}
	// Two connections of one worker: the older one is cut.
	next := r.hello(workerToken, "w", f.Ref)
	p.ended()
	next.send(&workers.Frame{Type: workers.Error, Ref: f.Ref, Code: lathe.CodeCancelled})
	next.next(workers.Ack)
}

// What a worker says of itself is bounded before anybody keeps or logs it.
func TestWorkersAreBounded(t *testing.T) {
	t.Parallel()
	r := newWorkerRig(t, server.WorkerOptions{Pools: []server.WorkerPool{{Name: "f", Token: secret.New(workerToken), Tools: []string{"*"}}}})
	p := r.dial(workerToken)
	p.send(&workers.Frame{Type: workers.Hello, Worker: "w", Offers: []remote.Tool{{Name: strings.Repeat("x", 5000)}, {Name: "a b"}, {Name: "a.b"}, act, act}})
	f := p.next(workers.Welcome)
	if len(f.Refused) != 4 || f.Refused["act"] != "it is offered twice" {
		t.Errorf("refused %v", f.Refused)
	}
	for name := range f.Refused {
		if len(name) > 64 {
			t.Errorf("a name of %d bytes", len(name))
		}
	}
	big := act
	big.Description = strings.Repeat("x", workers.MaxHello)
	p.send(&workers.Frame{Type: workers.Tools, Offers: []remote.Tool{big}})
	if why := p.ended(); !strings.Contains(why, "definitions are too large") {
		t.Errorf("it ended because %q", why)
	}
	workers, err := r.queue.Workers(t.Context())
	if err != nil || len(workers) != 1 || len(workers[0].Tools) != 1 {
		t.Errorf("%+v, %v", workers, err)
	}
}
