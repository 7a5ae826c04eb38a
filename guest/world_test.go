package guest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/guest"
	"github.com/lathe-run/lathe/internal/leaktest"
	. "github.com/lathe-run/lathe/internal/wasmrt/wasmtest"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/observe"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/sim"
	"github.com/lathe-run/lathe/tool"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// A world is a host of the real parts: the loop, the one runner, the engine and the metrics, with the
// simulated model or a script in its place.
type world struct {
	model  lathe.Model
	limits lathe.Limits
	policy lathe.Policy

	mu       sync.Mutex
	events   []event.Event
	requests []*guest.Request
	metrics  *observe.Metrics
}

func newWorld(model lathe.Model) *world {
	if model == nil {
		model = sim.New(nil).Model("")
	}
	return &world{model: model, policy: policy.All(policy.Effects{Writes: lathe.Allow}), metrics: observe.NewMetrics(nil)}
}

// Emit keeps the events that are stored.
func (w *world) Emit(_ context.Context, e event.Event) {
	if !event.IsDelta(e.Data) {
		w.mu.Lock()
		w.events = append(w.events, e)
		w.mu.Unlock()
	}
}

func (w *world) Send(ctx context.Context, req *guest.Request) (*guest.Reply, error) {
	w.mu.Lock()
	w.requests = append(w.requests, req)
	w.mu.Unlock()
	set, err := tool.NewSet(req.Tools...)
	if err != nil {
		return nil, &lathe.Error{Code: lathe.CodeInvalidRequest, Op: "world: send", Err: err}
	}
	limits := w.limits
	limits.MaxIterations, limits.MaxToolCalls, limits.MaxOutputBytes = req.Limits.MaxIterations, req.Limits.MaxToolCalls, req.Limits.MaxOutputBytes
	settings := lathe.Settings{OnLimit: lathe.OnLimitStop, StrictUnknownTool: req.StrictUnknownTool, ToolChoice: req.ToolChoice,
		ParallelToolCalls: req.ParallelToolCalls, NoFixEmptyFinal: !req.Auto}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: w.policy, Limits: limits, Settings: settings})
	if err != nil {
		return nil, err
	}
	l, err := loop.New(w.model, runner,
		&loop.Options{Settings: settings, Limits: limits, Overrides: req.Overrides})
	if err != nil {
		return nil, err
	}
	in := &loop.Input{Run: req.Run, Messages: req.Messages, ClientTools: req.Offers}
	id := &runID{}
	e, err := engine.New(&engine.Options{Sinks: []event.Sink{w, w.metrics}})
	if err != nil {
		return nil, err
	}
	res, _ := e.Run(ctx, l, in, &engine.RunOptions{Sinks: []event.Sink{id}})
	return &guest.Reply{Result: res, History: loop.SessionHistory(res.History, nil), RunID: id.id, Backend: "sim", Model: "demo"}, nil
}

type runID struct{ id string }

func (r *runID) Emit(_ context.Context, e event.Event) { r.id = e.RunID }

// calls are the results of tools, in their order.
func (w *world) calls() (out []*event.ToolCallResult) {
	for _, e := range w.events {
		if d, ok := e.Data.(*event.ToolCallResult); ok {
			out = append(out, d)
		}
	}
	return out
}

// ends are the reasons of the runs.
func (w *world) ends() (out []lathe.Reason) {
	for _, e := range w.events {
		if d, ok := e.Data.(*event.RunFinished); ok {
			out = append(out, d.Reason)
		}
	}
	return out
}

// rc is what lathe_tool_call_failures_total says, as label=count.
func (w *world) rc(t testing.TB) (out []string) {
	t.Helper()
	for line := range strings.Lines(scrape(t, w.metrics)) {
		if rest, ok := strings.CutPrefix(line, `lathe_tool_call_failures_total{rc="`); ok {
			label, count, _ := strings.Cut(rest, `"} `)
			if count = strings.TrimSpace(count); count != "0" {
				out = append(out, label+"="+count)
			}
		}
	}
	return out
}

func scrape(t testing.TB, m *observe.Metrics) string {
	t.Helper()
	rec := httptest.NewRecorder()
	m.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	return rec.Body.String()
}

// script is a model with configured answers, one per turn, and then "done".
type script struct {
	mu    sync.Mutex
	turns [][]lathe.ToolCall
	seen  []*lathe.Request
}

func (*script) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (s *script) Generate(_ context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	s.mu.Lock()
	defer s.mu.Unlock()
	copied := *req
	copied.Messages = append([]lathe.Message(nil), req.Messages...)
	s.seen = append(s.seen, &copied)
	f := &lathe.Finish{Reason: lathe.FinishStop, Usage: lathe.Usage{InputTokens: 10, OutputTokens: 5, TotalTokens: 15}}
	f.Message = lathe.Assistant("done")
	if len(s.turns) > 0 {
		f.Message = lathe.Message{Role: lathe.RoleAssistant}
		for _, c := range s.turns[0] {
			f.Message.Parts = append(f.Message.Parts, c)
		}
		f.Reason = lathe.FinishToolCalls
		s.turns = s.turns[1:]
	}
	return func(yield func(lathe.Delta, error) bool) { yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: f}, nil) }
}

// asks is a script whose model asks for the tools of those names, one in each turn.
func asks(names ...string) *script {
	s := &script{}
	for i, n := range names {
		s.turns = append(s.turns, []lathe.ToolCall{{ID: fmt.Sprintf("c%d", i+1), Name: n, Arguments: fmt.Sprintf(`{"a":7,"b":35,"n":%d}`, i)}})
	}
	return s
}

// spear are the functions that a test module imports, by name.
type spear struct {
	*Module
	index map[string]int
}

var signatures = map[string]int{"cchat_create": 0, "cchat_write_msg": 5, "cchat_write_fn": 4, "cchat_ctl": 4, "cchat_send": 2, "cchat_recv": 3, "cchat_close": 1,
	"spear_epoll_create": 0, "spear_epoll_ctl": 4, "spear_epoll_wait": 4, "spear_epoll_close": 1, "spear_fd_ctl": 4, "log": 3,
	"rtasr_create": 0, "rtasr_ctl": 4, "rtasr_write": 3, "rtasr_read": 3, "rtasr_close": 1, "mic_create": 0, "mic_ctl": 4, "mic_read": 3, "mic_close": 1,
	"user_stream_open": 2, "user_stream_read": 3, "user_stream_write": 3, "user_stream_close": 1, "user_stream_ctl_open": 0, "user_stream_ctl_read": 3}

var names = []string{"cchat_create", "cchat_write_msg", "cchat_write_fn", "cchat_ctl", "cchat_send", "cchat_recv", "cchat_close",
	"spear_epoll_create", "spear_epoll_ctl", "spear_epoll_wait", "spear_epoll_close", "spear_fd_ctl", "log",
	"rtasr_create", "rtasr_ctl", "rtasr_write", "rtasr_read", "rtasr_close", "mic_create", "mic_ctl", "mic_read", "mic_close",
	"user_stream_open", "user_stream_read", "user_stream_write", "user_stream_close", "user_stream_ctl_open", "user_stream_ctl_read"}

// newGuest imports everything, has two pages of memory and a table of eight places.
func newGuest() *spear {
	g := &spear{New(), map[string]int{}}
	params := func(n int) (t T) {
		for range n {
			t = append(t, I32)
		}
		return t
	}
	for _, n := range names {
		g.index[n] = g.Import("spear", n, params(signatures[n]), T{I32})
	}
	for _, n := range []string{"time_now_ms", "wall_time_s", "random_i64"} {
		g.index[n] = g.Import("spear", n, nil, T{I64})
	}
	g.index["sleep_ms"] = g.Import("spear", "sleep_ms", T{I32}, nil)
	g.index["fd_write"] = g.Import("wasi_snapshot_preview1", "fd_write", T{I32, I32, I32, I32}, T{I32})
	g.index["proc_exit"] = g.Import("wasi_snapshot_preview1", "proc_exit", T{I32}, nil)
	g.Memory(2, -1)
	g.Table("__indirect_function_table", 8, -1)
	return g
}

// call calls a host function with those codes as its parameters.
func (g *spear) call(name string, args ...any) string {
	code := ""
	for _, a := range args {
		switch a := a.(type) {
		case int:
			code += Const(int32(a))
		case string:
			code += a
		default:
			panic(fmt.Sprintf("a parameter of type %T", a))
		}
	}
	return code + Call(g.index[name])
}

// Where a test module keeps things.
const (
	textAt   = 1024  // its texts
	wordAt   = 512   // lengths in and out
	recordAt = 600   // of epoll
	arenaAt  = 8192  // lent to the host
	arenaLen = 40960 // ends before outAt
	outAt    = 65536 // answers
	outLen   = 65536
)

// A texts is the data of a module.
type texts struct {
	g  *spear
	at int
}

// put keeps s and returns its address and length as two parameters.
func (x *texts) put(s string) string {
	at := x.at
	x.g.Data(at, s)
	x.at += len(s)
	return Const(int32(at)) + Const(int32(len(s)))
}

// param sets a parameter of the session in local 0.
func (x *texts) param(key string, value any) string {
	b, err := json.Marshal(map[string]any{"key": key, "value": value})
	if err != nil {
		panic(err)
	}
	at := x.at
	x.put(string(b))
	return Const(wordAt) + Const(int32(len(b))) + Store(0) + x.g.call("cchat_ctl", Get(0), 1, at, wordAt)
}

// print writes the n bytes at ptr to standard output, and a line end.
func (g *spear) print(ptr, n string) string {
	return Const(560) + ptr + Store(0) + Const(564) + n + Store(0) + Const(568) + Const(576) + Store(0) + Const(572) + Const(1) + Store(0) +
		Const(576) + Const('\n') + Store8(0) + g.call("fd_write", 1, 560, 2, 580) + Drop
}

// A flow is the usual guest: one session, one prompt, functions, one send, and the answer and the
// metrics on standard output.
type flow struct {
	prompt    string
	flags     int
	functions map[int]string // by place in the table: their JSON
	params    []any          // key, value, …
	noArena   bool
	before    string                          // code
	then      func(g *spear, x *texts) string // after the answer was written
}

const sumJSON = `{"type":"function","function":{"name":"sum","description":"Adds two whole numbers.","parameters":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"]}}}`

// build makes the module: its `_start` exits with 0, or with the number of an error, negated.
func (f *flow) build(g *spear) []byte {
	x := &texts{g, textAt}
	ok := func(code string) string {
		return code + Tee(2) + Const(0) + "\x48" + If(Const(0), Get(2), Sub, Call(g.index["proc_exit"]))
	}
	code := f.before + ok(g.call("cchat_create")) + Get(2) + Set(0)
	code += ok(g.call("cchat_write_msg", Get(0), x.put("user"), x.put(f.prompt)))
	for place := -1; place < 8; place++ {
		if text, found := f.functions[place]; found {
			code += ok(g.call("cchat_write_fn", Get(0), place, x.put(text)))
		}
	}
	if !f.noArena {
		code += ok(x.param("tool_arena_ptr", arenaAt)) + ok(x.param("tool_arena_len", arenaLen))
	}
	for i := 0; i+1 < len(f.params); i += 2 {
		code += ok(x.param(f.params[i].(string), f.params[i+1]))
	}
	code += ok(g.call("cchat_send", Get(0), f.flags)) + Get(2) + Set(1)
	code += Const(wordAt) + Const(outLen) + Store(0) + ok(g.call("cchat_recv", Get(1), outAt, wordAt)) + g.print(Const(outAt), Get(2))
	code += Const(wordAt) + Const(outLen) + Store(0) + ok(g.call("cchat_ctl", Get(1), 2, outAt, wordAt)) + g.print(Const(outAt), Get(2))
	if f.then != nil {
		code += f.then(g, x)
	}
	if x.at > arenaAt {
		panic("the texts are too long")
	}
	g.Func("_start", nil, nil, 8, code)
	return g.Bytes()
}

// toolType is the signature of a tool.
var toolType = T{I32, I32, I32, I32}

// The parameters of a tool.
const (
	argsPtr = iota
	argsLen
	outPtr
	outLenPtr
)

// place puts a tool into the table.
func (g *spear) place(at int, locals int, code ...string) int {
	f := g.Func("", toolType, T{I32}, locals, code...)
	g.Elem(at, f)
	return f
}

// textTool is a tool that answers a text.
func textTool(g *spear, at int, text string) string {
	g.Data(at, text)
	return Get(outPtr) + Const(int32(at)) + Const(int32(len(text))) + MemoryCopy + Get(outLenPtr) + Const(int32(len(text))) + Store(0) + Const(0)
}

// A ran is what a program left.
type ran struct {
	*guest.Outcome
	body    map[string]any // the answer
	metrics string
	out     string
	log     []string
}

var shared = sync.OnceValues(func() (*guest.Runtime, error) { return guest.New(&guest.Options{CompileTimeout: 10 * time.Minute}) })

// runGuest runs a module under a world.
func runGuest(t testing.TB, wasm []byte, w guest.Host, limits *guest.Limits, opts *guest.RunOptions) *ran {
	t.Helper()
	rt, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	p, err := rt.Compile(t.Context(), wasm, limits)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	if opts == nil {
		opts = &guest.RunOptions{}
	}
	var out strings.Builder
	r := &ran{}
	opts.Stdout = &out
	opts.Log = func(level, text string) { r.log = append(r.log, level+": "+text) }
	r.Outcome = p.Run(t.Context(), w, opts)
	r.out = out.String()
	body, metrics, _ := strings.Cut(r.out, "\n")
	r.metrics = strings.TrimSuffix(metrics, "\n")
	if body != "" {
		_ = json.Unmarshal([]byte(body), &r.body) // what a test expects of it is compared
	}
	return r
}

// ended checks that a program ended by itself with that code.
func (r *ran) ended(t testing.TB, code int) {
	t.Helper()
	if r.Reason != lathe.ReasonAnswered || r.Code != code || r.Err != nil {
		t.Fatalf("ended %s with %d, %v; want answered with %d", r.Reason, r.Code, r.Err, code)
	}
}

// faulted checks that a program was ended.
func (r *ran) faulted(t testing.TB) {
	t.Helper()
	if r.Reason != lathe.ReasonGuestFault || !errors.Is(r.Err, tool.ErrGuestFault) {
		t.Fatalf("ended %s with %d, %v; want guest_fault", r.Reason, r.Code, r.Err)
	}
}

// at reads a path of the answer.
func (r *ran) at(path ...any) any {
	var v any = r.body
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			l, _ := v.([]any)
			if p >= len(l) {
				return nil
			}
			v = l[p]
		}
	}
	return v
}

func usageJSON(u lathe.Usage) []byte {
	return fmt.Appendf(nil, `{"completion_tokens":%d,"prompt_tokens":%d,"total_tokens":%d}`, u.OutputTokens, u.InputTokens, u.TotalTokens)
}
