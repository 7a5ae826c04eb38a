package server_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/leaktest"
	"github.com/lathe-run/lathe/internal/testkit/pgtest"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/observe"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/preset"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/sim"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/builtin"
)

func TestMain(m *testing.M) { leaktest.Main(pgtest.M(m)) }

// A fixture is a gateway on a real address of this machine, over the simulated model.
type fixture struct {
	t       testing.TB
	url     string
	cut     func() // ends its connections, and takes no more
	gateway *server.Server
	client  *http.Client
	store   *store.Memory
	index   store.RunIndex // the store, or what is in its place
	engine  *engine.Engine
	crew    *engine.Supervisor
	metrics *observe.Metrics
	models  *models
	tools   *tools
	seen    *seen // what model servers were sent
	key     string
	busy    busy
}

// busy counts the requests that are worked on.
type busy struct {
	mu   sync.Mutex
	n    int
	none chan struct{} // closed when n is zero; nil: no goroutine waits
}

func (b *busy) add(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.n += n; b.n == 0 && b.none != nil {
		close(b.none)
		b.none = nil
	}
}

// idle waits until no request is worked on.
func (f *fixture) idle() {
	f.busy.mu.Lock()
	if f.busy.n == 0 {
		f.busy.mu.Unlock()
		return
	}
	if f.busy.none == nil {
		f.busy.none = make(chan struct{})
	}
	none := f.busy.none
	f.busy.mu.Unlock()
	<-none
}

// stop ends the process, once its runs have ended.
func (f *fixture) stop() {
	f.idle()
	f.crew.Drain(context.Background())
	f.cut()
}

// A setting changes a fixture before it is served.
type setting struct {
	opts      func(*server.Options)
	sim       *sim.Options
	settings  lathe.Settings
	limits    lathe.Limits
	tools     []lathe.Tool
	search    tool.Search // of the tools
	policy    lathe.Policy
	model     lathe.Model     // in place of the simulated ones, whatever the name
	store     store.RunIndex  // in place of one in memory
	approvals *approval.Queue // nil: no call can be approved, unless there is an approver
	approver  lathe.Approver
	bus       *observe.BusOptions
	now       func() time.Time // of everything
	instead   func(n int, r *http.Request) (*http.Response, error)
	pass      []string      // members that models get besides those that servers are known to take
	silence   time.Duration // for which model servers may be silent; a minute
	nothing   bool          // no store keeps runs
	meter     loop.Meter    // of the model calls; nil: none
	retention *loop.Retention
	narrow    bool // connections hold few bytes that the client has not read
}

// build returns the tools of the setting and further ones, with their runner.
func (s *setting) build(t testing.TB, further ...lathe.Tool) (*tool.Set, *tool.Runner) {
	t.Helper()
	// The time that get_current_time returns is the same in each answer of a test.
	clock := func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	set, err := tool.NewSetWithSearch(lathe.Limits{}, s.search, slices.Concat(builtin.Tools(&builtin.Options{Now: clock}), s.tools, further)...)
	if err != nil {
		t.Fatal(err)
	}
	own := &tool.Options{Policy: s.policy, Approver: s.approver, Settings: s.settings, Limits: s.limits, Now: s.now}
	if s.approvals != nil {
		own.Approver = s.approvals
	}
	runner, err := tool.NewRunner(set, own)
	if err != nil {
		t.Fatal(err)
	}
	return set, runner
}

func serve(t testing.TB, s *setting) *fixture {
	t.Helper()
	if s == nil {
		s = &setting{}
	}
	if s.policy == nil {
		s.policy = policy.Effects{ReadOnly: lathe.Allow, Idempotent: lathe.Allow, Writes: lathe.Allow}
	}
	set, runner := s.build(t)
	upstream := sim.New(s.sim)
	f := &fixture{t: t, store: store.NewMemory(nil), metrics: observe.NewMetrics(nil), seen: &seen{next: upstream.Transport(), instead: s.instead}}
	f.models = &models{sim: upstream, runner: runner, of: map[string]*server.Model{}, set: s, seen: f.seen}
	f.tools = &tools{set, runner}
	switch kept := s.store.(type) {
	case nil:
		f.index = f.store
	case *store.Memory:
		f.store, f.index = kept, kept
	default:
		f.index = kept
	}
	bus := observe.NewBus(s.bus)
	kept := store.Store(f.index)
	if s.nothing {
		kept = nil
	}
	eng := newEngine(t, &engine.Options{Store: kept, Now: s.now, Sinks: []event.Sink{f.metrics, bus}})
	f.engine, f.crew = eng, newSupervisor(t, eng)
	opts := &server.Options{Engine: eng, Supervisor: f.crew, Index: f.index, Bus: bus, Approvals: s.approvals, Metrics: f.metrics, Now: s.now,
		Setup: server.Setup{Models: f.models, Tools: f.tools}}
	if s.opts != nil {
		s.opts(opts)
	}
	if len(opts.Setup.Keys) > 0 {
		f.key = opts.Setup.Keys[0].Secret.Reveal()
	}
	var err error
	if f.gateway, err = server.New(opts); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.url = "http://" + ln.Addr().String()
	if s.narrow {
		ln = narrowListener{ln}
	}
	srv := f.gateway.HTTPServer()
	next, busy := srv.Handler, &f.busy
	srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		busy.add(1)
		defer busy.add(-1)
		next.ServeHTTP(w, r)
	})
	f.cut = func() { _ = srv.Close() }
	var done sync.WaitGroup
	done.Go(func() { _ = srv.Serve(ln) })
	f.client = &http.Client{Transport: &described{t, theDocument(t), &http.Transport{DisableCompression: true}}}
	t.Cleanup(func() {
		f.client.CloseIdleConnections()
		_ = srv.Close()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		f.gateway.Drain(ctx)
		f.crew.Drain(ctx)
		done.Wait()
	})
	return f
}

// models are those of the simulator, each over the provider and its own wire.
type models struct {
	sim    *sim.Sim
	runner *tool.Runner
	set    *setting
	seen   *seen
	mu     sync.Mutex
	of     map[string]*server.Model
}

func (m *models) Names() []string { return []string{"sim/demo", "sim/slow"} }

func (m *models) Model(name string) (*server.Model, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !strings.HasPrefix(name, "sim/") {
		return nil, &lathe.Error{Code: lathe.CodeNotFound, Op: "models", Err: errors.New("no such model")}
	}
	if found := m.of[name]; found != nil {
		return found, nil
	}
	chat := m.set.model
	if chat == nil {
		var err error
		chat, err = provider.OpenAI(name, &provider.Options{Name: "sim", BaseURL: "http://sim.invalid/v1", Transport: m.seen,
			Retry: provider.Retry{Attempts: 1}, Timeouts: provider.Timeouts{Read: cmp.Or(m.set.silence, 10*time.Minute)}})
		if err != nil {
			return nil, err
		}
	}
	l, err := loop.New(chat, m.runner, &loop.Options{Settings: m.set.settings, Limits: m.set.limits, Meter: m.set.meter, Retention: m.set.retention})
	if err != nil {
		return nil, err
	}
	m.of[name] = &server.Model{Loop: l, Settings: m.set.settings, Limits: m.set.limits, Pass: slices.Concat(preset.Members(""), m.set.pass)}
	return m.of[name], nil
}

// seen keeps the bodies that model servers were sent.
type seen struct {
	next http.RoundTripper
	// instead, when set, answers the nth request (from 1) in place of the simulator; nil: it answers.
	instead func(n int, r *http.Request) (*http.Response, error)
	mu      sync.Mutex
	bodies  []string
}

func (s *seen) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	_ = r.Body.Close()
	s.mu.Lock()
	s.bodies = append(s.bodies, string(body))
	n := len(s.bodies)
	s.mu.Unlock()
	if s.instead != nil {
		if resp, err := s.instead(n, r); resp != nil || err != nil {
			return resp, err
		}
	}
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	return s.next.RoundTrip(r)
}

func (s *seen) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.bodies)
}

type tools struct {
	set    *tool.Set
	runner *tool.Runner
}

func (t *tools) Specs() []*lathe.ToolSpec { return t.set.SharedSpecs() }

func (t *tools) Advertised(run *lathe.RunInfo, allow []string) []*lathe.ToolSpec {
	return t.runner.Begin(run, &tool.RunOptions{Allow: allow}).Specs()
}

func (t *tools) Execute(ctx context.Context, run *lathe.RunInfo, allow []string, limits lathe.Limits, call lathe.ToolCall, emit func(event.Data)) (lathe.ToolResult, error) {
	limits, _ = t.runner.Limits().Narrow(limits)
	work := t.runner.Begin(run, &tool.RunOptions{Allow: allow, Limits: &limits})
	msg := lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{call}}
	work.Adopt(&msg)
	out := work.Execute(ctx, 1, []tool.Call{{ToolCall: msg.Calls()[0]}}, emit)
	if len(out.Messages) == 0 {
		return lathe.ToolResult{}, lathe.ErrPending
	}
	return out.Messages[0].Parts[0].(lathe.ToolResult), nil
}

// stored returns the runs of the store, once those that have ended are in it.
func (f *fixture) stored(filter *store.RunFilter) []store.RunSummary {
	f.t.Helper()
	if err := f.engine.Flush(f.t.Context(), ""); err != nil {
		f.t.Fatal(err)
	}
	rows, _, err := f.index.Runs(f.t.Context(), filter)
	if err != nil {
		f.t.Fatal(err)
	}
	return rows
}

// do makes a request and returns the answer with its body read.
func (f *fixture) do(method, path, body string, header ...string) (*http.Response, string) {
	f.t.Helper()
	req, err := http.NewRequest(method, f.url+path, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	if f.key != "" {
		req.Header.Set("Authorization", "Bearer "+f.key)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := f.client.Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return resp, string(b)
}

// A completion is what a client reads of an answer, streamed or not.
type completion struct {
	ID      string `json:"id"`
	Model   string `json:"model"`
	Choices []struct {
		Index        int     `json:"index"`
		Message      message `json:"message"`
		Delta        message `json:"delta"`
		FinishReason *string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Total int `json:"total_tokens"`
	} `json:"usage"`
	Lathe *report `json:"lathe"`
	Error *struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Code    *string `json:"code"`
		Param   *string `json:"param"`
	} `json:"error"`
}

type message struct {
	Role      string     `json:"role,omitempty"`
	Content   string     `json:"content"`
	Reasoning string     `json:"reasoning_content,omitempty"`
	ToolCalls []wireCall `json:"tool_calls,omitempty"`
	CallID    string     `json:"tool_call_id,omitempty"`
}

type wireCall struct {
	Index    *int   `json:"index,omitempty"`
	ID       string `json:"id,omitempty"`
	Type     string `json:"type,omitempty"`
	Function struct {
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type report struct {
	RunID     string `json:"run_id"`
	Continues string `json:"continues"`
	Reason    string `json:"reason"`
	Session   string `json:"session"`
	ToolCalls []struct {
		Tool     string `json:"tool"`
		OK       bool   `json:"ok"`
		Code     string `json:"code"`
		Executed bool   `json:"executed"`
	} `json:"tool_calls"`
	Turns   []json.RawMessage `json:"turns"`
	Pending []string          `json:"pending"`
	Ignored []string          `json:"ignored"`
	Passed  []string          `json:"passed"`
}

func (f *fixture) complete(body string, header ...string) *completion {
	f.t.Helper()
	resp, text := f.do("POST", "/v1/chat/completions", body, header...)
	if resp.StatusCode != http.StatusOK {
		f.t.Fatalf("status %d: %s", resp.StatusCode, text)
	}
	c := &completion{}
	if err := json.Unmarshal([]byte(text), c); err != nil {
		f.t.Fatalf("%v: %s", err, text)
	}
	return c
}

// A streamed answer, put together as an official client would.
type streamed struct {
	message
	finish   string
	usage    int
	usages   int
	done     bool
	err      string
	errCode  string
	report   *report
	frames   []string
	comments int
}

func readStream(t testing.TB, body string) *streamed {
	t.Helper()
	s := &streamed{}
	sc := bufio.NewScanner(strings.NewReader(body))
	sc.Buffer(nil, 16<<20)
	for sc.Scan() {
		line := sc.Text()
		if strings.HasPrefix(line, ":") {
			s.comments++
			continue
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			if line != "" {
				t.Errorf("a line that is no data: %q", line)
			}
			continue
		}
		if s.done || s.err != "" {
			t.Errorf("data after the end: %s", data)
		}
		s.frames = append(s.frames, data)
		if data == "[DONE]" {
			s.done = true
			continue
		}
		var c completion
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		if c.Error != nil {
			s.err = c.Error.Message
			if c.Error.Code != nil {
				s.errCode = *c.Error.Code
			}
			continue
		}
		if c.Lathe != nil {
			s.report = c.Lathe
		}
		if c.Usage != nil {
			s.usage, s.usages = c.Usage.Total, s.usages+1
		}
		for _, ch := range c.Choices {
			if s.finish != "" {
				t.Errorf("a delta after the finish reason: %s", data)
			}
			if s.Role == "" && ch.Delta.Role == "" {
				t.Errorf("the first delta has no role: %s", data)
			}
			if ch.Delta.Role != "" {
				if s.Role != "" {
					t.Errorf("the role comes twice: %s", data)
				}
				s.Role = ch.Delta.Role
			}
			s.Content += ch.Delta.Content
			s.Reasoning += ch.Delta.Reasoning
			for _, d := range ch.Delta.ToolCalls {
				if d.Index == nil {
					t.Fatalf("a call without an index: %s", data)
				}
				if *d.Index == len(s.ToolCalls) {
					s.ToolCalls = append(s.ToolCalls, wireCall{ID: d.ID, Type: d.Type})
				}
				call := &s.ToolCalls[*d.Index]
				call.Function.Name += d.Function.Name
				call.Function.Arguments += d.Function.Arguments
			}
			if ch.FinishReason != nil {
				if ch.Delta.Content != "" || len(ch.Delta.ToolCalls) > 0 {
					t.Errorf("the finish reason does not stand alone: %s", data)
				}
				s.finish = *ch.FinishReason
			}
		}
	}
	return s
}

func (f *fixture) streamed(body string, header ...string) *streamed {
	f.t.Helper()
	resp, text := f.do("POST", "/v1/chat/completions", body, header...)
	if resp.StatusCode != http.StatusOK {
		f.t.Fatalf("status %d: %s", resp.StatusCode, text)
	}
	if ct := resp.Header.Get("Content-Type"); ct != "text/event-stream" {
		f.t.Errorf("content type %q", ct)
	}
	return readStream(f.t, text)
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func ask(model, prompt, more string) string {
	return `{"model":` + quote(model) + `,"messages":[{"role":"user","content":` + quote(prompt) + `}]` + more + `}`
}

// A fake says what the model says in a turn, and keeps what it was asked.
type fake struct {
	wait func(context.Context) // before each turn, where it is set
	turn func(n int, req *lathe.Request) lathe.Message
	mu   sync.Mutex
	reqs []lathe.Request
}

func (*fake) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (f *fake) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		f.mu.Lock()
		kept := *req
		kept.Messages = slices.Clone(req.Messages)
		f.reqs = append(f.reqs, kept)
		n := len(f.reqs)
		f.mu.Unlock()
		if f.wait != nil {
			f.wait(ctx)
		}
		if ctx.Err() != nil {
			yield(lathe.Delta{}, ctx.Err())
			return
		}
		m := f.turn(n, req)
		reason := lathe.FinishStop
		for i, p := range m.Parts {
			switch p := p.(type) {
			case lathe.Text:
				for _, word := range strings.SplitAfter(p.Text, " ") {
					if !yield(lathe.Delta{Kind: lathe.DeltaText, Text: word}, nil) {
						return
					}
				}
			case lathe.Reasoning:
				if !yield(lathe.Delta{Kind: lathe.DeltaReasoning, Text: p.Text}, nil) {
					return
				}
			case lathe.ToolCall:
				reason = lathe.FinishToolCalls
				if !yield(lathe.Delta{Kind: lathe.DeltaCallStart, Index: i, ID: p.ID, Name: p.Name}, nil) ||
					!yield(lathe.Delta{Kind: lathe.DeltaCallArgs, Index: i, Text: p.Arguments}, nil) ||
					!yield(lathe.Delta{Kind: lathe.DeltaCallEnd, Index: i}, nil) {
					return
				}
			case lathe.Refusal, lathe.Blob, lathe.ToolResult:
			}
		}
		m.Role = lathe.RoleAssistant
		yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: &lathe.Finish{Message: m, Reason: reason, Usage: lathe.Usage{TotalTokens: 1}}}, nil)
	}
}

func (f *fake) all() []lathe.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.reqs)
}

func says(parts ...lathe.Part) lathe.Message { return lathe.Message{Parts: parts} }

func calls(id, name, args string) lathe.ToolCall {
	return lathe.ToolCall{ID: id, Name: name, Arguments: args}
}

// An endless model says something until it is stopped.
type endless struct{ ended chan struct{} }

func (endless) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (m endless) Generate(_ context.Context, _ *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		defer close(m.ended)
		text := strings.Repeat("x", 4096)
		for yield(lathe.Delta{Kind: lathe.DeltaText, Text: text}, nil) {
		}
	}
}
