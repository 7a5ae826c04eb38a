package guest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/guest"
	. "github.com/lathe-run/lathe/internal/wasmrt/wasmtest"
)

// How programs begin and end.
func TestGuestEntryAndEnd(t *testing.T) {
	t.Parallel()
	exit := func(g *spear, code int32) string { return Const(code) + Call(g.index["proc_exit"]) }
	for _, tc := range []struct {
		name   string
		build  func(g *spear)
		limits guest.Limits
		opts   guest.RunOptions
		reason lathe.Reason
		code   int
		err    string
	}{
		{name: "_start", build: func(g *spear) { g.Func("_start", nil, nil, 0) }, reason: lathe.ReasonAnswered},
		{name: "_start before main", build: func(g *spear) { g.Func("_start", nil, nil, 0); g.Func("main", nil, nil, 0, Unreachable) }, reason: lathe.ReasonAnswered},
		{name: "main", build: func(g *spear) { g.Func("main", nil, nil, 0, exit(g, 4)) }, reason: lathe.ReasonAnswered, code: 4},
		{name: "main with a result", build: func(g *spear) { g.Func("main", nil, T{I32}, 0, Const(5)) }, reason: lathe.ReasonAnswered, code: 5},
		{name: "main of C", build: func(g *spear) { g.Func("main", T{I32, I32}, T{I32}, 0, Get(0), Get(1), Add) }, reason: lathe.ReasonAnswered},
		{name: "start section", build: func(g *spear) {
			g.Start(g.Func("", nil, nil, 0, g.call("cchat_create"), Const(1000), Sub, If(Unreachable)))
			g.Func("_start", nil, nil, 0, g.call("cchat_create"), Const(1001), Sub, If(Unreachable))
		}, reason: lathe.ReasonAnswered},
		{name: "exit 0", build: func(g *spear) { g.Func("_start", nil, nil, 0, exit(g, 0), Unreachable) }, reason: lathe.ReasonAnswered},
		{name: "trap", build: func(g *spear) { g.Func("_start", nil, nil, 0, Unreachable) }, reason: lathe.ReasonGuestFault, err: "trap"},
		{name: "T32: memory", build: func(g *spear) { g.Func("_start", nil, nil, 0, Const(-4), Load(0), Drop) }, reason: lathe.ReasonGuestFault, err: "memory fault"},
		{name: "T30: recursion", build: func(g *spear) { g.Func("_start", nil, nil, 0, Call(len(g.index))) }, reason: lathe.ReasonGuestFault, err: "stack"},
		{name: "T30: memory bomb", build: func(g *spear) {
			g.Func("_start", nil, nil, 0, Loop(Const(1), MemoryGrow, Const(-1), Eq, If(Unreachable), Br(0)))
		}, limits: guest.Limits{MemoryPages: 16}, reason: lathe.ReasonGuestFault, err: "memory_pages"},
		{name: "T30: host calls", build: func(g *spear) { g.Func("_start", nil, nil, 0, Loop(g.call("cchat_create"), Drop, Br(0))) },
			limits: guest.Limits{HostCalls: 1000}, reason: lathe.ReasonGuestFault, err: "host_calls"},
		{name: "T30: output", build: func(g *spear) { g.Func("_start", nil, nil, 0, Loop(g.print(Const(0), Const(1000)), Br(0))) },
			limits: guest.Limits{StdoutBytes: 5000}, reason: lathe.ReasonGuestFault, err: "stdout_bytes"},
		{name: "T30: calls without a loop", build: func(g *spear) {
			f := len(g.index)
			g.Func("", T{I32}, nil, 0, Get(0), If(strings.Repeat(Get(0)+Const(1)+Sub+Call(f), 2)))
			g.Func("_start", nil, nil, 0, Const(60), Call(f))
		}, opts: guest.RunOptions{Timeout: 30 * time.Millisecond}, reason: lathe.ReasonRunTimeout, err: "longer than 30ms"},
		{name: "T30: endless loop", build: func(g *spear) { g.Func("_start", nil, nil, 0, Loop(Br(0))) },
			opts: guest.RunOptions{Timeout: 30 * time.Millisecond}, reason: lathe.ReasonRunTimeout, err: "longer than 30ms"},
		{name: "waits for ever", build: func(g *spear) {
			g.Func("_start", nil, nil, 0, g.call("spear_epoll_create"), Drop, Const(wordAt), Const(8), Store(0), g.call("spear_epoll_wait", 1000, recordAt, wordAt, -1), Drop)
		}, opts: guest.RunOptions{Timeout: 30 * time.Millisecond}, reason: lathe.ReasonRunTimeout, err: "longer than 30ms"},
		{name: "sleeps with a clock", build: func(g *spear) { g.Func("_start", nil, nil, 0, Const(1<<30), Call(g.index["sleep_ms"])) },
			opts: guest.RunOptions{Timeout: 30 * time.Millisecond, Now: time.Now}, reason: lathe.ReasonRunTimeout, err: "longer than 30ms"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			g := newGuest()
			tc.build(g)
			r := runGuest(t, g.Bytes(), newWorld(&script{}), &tc.limits, &tc.opts)
			if r.Reason != tc.reason || r.Code != tc.code {
				t.Errorf("ended %s with %d, want %s with %d", r.Reason, r.Code, tc.reason, tc.code)
			}
			if tc.err == "" && r.Err != nil || tc.err != "" && (r.Err == nil || !strings.Contains(r.Err.Error(), tc.err)) {
				t.Errorf("error %v, want %q", r.Err, tc.err)
			}
		})
	}
}

// What cannot be a program is refused when it is compiled.
func TestCompileRefuses(t *testing.T) {
	t.Parallel()
	rt, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	for name, build := range map[string]func(g *spear){
		"exports neither _start nor main": func(*spear) {},
		"_start takes parameters":         func(g *spear) { g.Func("_start", T{I32}, nil, 0) },
		"main has another signature":      func(g *spear) { g.Func("main", T{I32}, nil, 0) },
		"which is not there":              func(g *spear) { g.Import("spear", "open_socket", nil, nil) },
	} {
		g := newGuest()
		if name == "which is not there" {
			g = &spear{New(), map[string]int{}}
		}
		build(g)
		if _, err := rt.Compile(t.Context(), g.Bytes(), nil); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %q", err, name)
		}
	}
}

// The guest reads the error of a host that fails to start a run, and ends with the context of its host.
type failing func(ctx context.Context, req *guest.Request) (*guest.Reply, error)

func (f failing) Send(ctx context.Context, req *guest.Request) (*guest.Reply, error) {
	return f(ctx, req)
}

func TestGuestSeesWhatTheHostRefuses(t *testing.T) {
	t.Parallel()
	upstream := func(e *lathe.UpstreamError) *guest.Reply {
		return &guest.Reply{Result: &event.Result{Reason: lathe.ReasonUpstreamError, Err: &lathe.Error{Code: lathe.CodeUpstream, Err: e}}}
	}
	for _, tc := range []struct {
		name string
		host failing
		want string
	}{
		{"refused", func(context.Context, *guest.Request) (*guest.Reply, error) {
			return nil, &lathe.Error{Code: lathe.CodeInvalidRequest, Err: errors.New("too many tools")}
		}, `{"error":{"code":"invalid_request","message":"too many tools"}}`},
		{"broken", func(context.Context, *guest.Request) (*guest.Reply, error) { return nil, errors.New("secret") },
			`{"error":{"code":"internal","message":"the request could not be sent"}}`},
		{"nothing", func(context.Context, *guest.Request) (*guest.Reply, error) { return nil, nil },
			`{"error":{"code":"internal","message":"the request could not be sent"}}`},
		{"no server", func(context.Context, *guest.Request) (*guest.Reply, error) {
			return upstream(&lathe.UpstreamError{Kind: lathe.UpstreamAborted, Connect: true, Message: "secret"}), nil
		}, `{"error":{"code":"network_error","message":"the model server could not be reached"}}`},
		{"a server's error", func(context.Context, *guest.Request) (*guest.Reply, error) {
			return upstream(&lathe.UpstreamError{Kind: lathe.UpstreamRateLimited, Status: 429, Message: "secret"}), nil
		}, `{"error":{"code":"upstream_error","message":"the model server failed: rate_limited (HTTP 429)"}}`},
		{"timeout", func(context.Context, *guest.Request) (*guest.Reply, error) {
			return &guest.Reply{Result: &event.Result{Reason: lathe.ReasonRunTimeout}}, nil
		}, `{"error":{"code":"run_timeout","message":"the run ended run_timeout"}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := &flow{prompt: "go", flags: 3}
			r := runGuest(t, f.build(newGuest()), tc.host, nil, nil)
			r.ended(t, 0)
			if body, _, _ := strings.Cut(r.out, "\n"); body != tc.want {
				t.Errorf("answer %s, want %s", body, tc.want)
			}
		})
	}
}

func TestGuestEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	host := failing(func(ctx context.Context, _ *guest.Request) (*guest.Reply, error) {
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	})
	rt, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	p, err := rt.Compile(ctx, (&flow{prompt: "go", flags: 2}).build(newGuest()), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close() //nolint:errcheck // what it returns is the engine's
	if o := p.Run(ctx, host, nil); o.Reason != lathe.ReasonCancelled || !errors.Is(o.Err, context.Canceled) {
		t.Errorf("ended %s, %v", o.Reason, o.Err)
	}
}

// A function that sends: its own session is busy, another one is a run within the run, and a third one
// is too deep.
func TestGuestFunctionThatSends(t *testing.T) {
	t.Parallel()
	g := newGuest()
	x := &texts{g, 2048}
	rc := func(at int32, code string) string { return Const(at) + code + Store(0) }
	const second, third = 3072, 3076
	inner := g.call("cchat_send", Get(4), 2)
	busy := rc(3080, g.call("cchat_send", 1000, 2)) + rc(3084, g.call("cchat_write_msg", 1000, x.put("user"), x.put("x"))) + rc(3088, g.call("cchat_close", 1000))
	nest := func(result int32) string {
		return g.call("cchat_create") + Set(4) + g.call("cchat_write_msg", Get(4), x.put("user"), x.put("go")) + Drop +
			g.call("cchat_write_fn", Get(4), 5, x.put(definition("inner"))) + Drop + x2param(g, x, "tool_arena_ptr", 60000) + x2param(g, x, "tool_arena_len", 4096) +
			rc(result, inner)
	}
	g.place(3, 1, busy, nest(second), textTool(g, 700, `"outer"`))
	g.place(5, 1, nest(third), textTool(g, 720, `"inner"`))
	f := &flow{prompt: "go", flags: 2, functions: map[int]string{3: definition("outer")}, then: func(g *spear, _ *texts) string {
		code := g.print(Const(3072), Const(20))
		for _, fd := range []int32{second, third} {
			code += Const(wordAt) + Const(outLen) + Store(0) + g.call("cchat_recv", Const(fd)+Load(0), outAt, wordAt) + Set(5) + g.print(Const(outAt), Get(5))
		}
		return code
	}}
	w := newWorld(asks("outer", "inner"))
	w.limits.MaxDepth = 1
	r := runGuest(t, f.build(g), w, nil, nil)
	r.ended(t, 0)
	lines := strings.Split(r.out, "\n")
	if len(lines) < 5 || !strings.Contains(lines[0], `"done"`) || !strings.Contains(lines[3], `"done"`) || !strings.Contains(lines[4], `"code":"max_depth"`) {
		t.Errorf("it prints %q", r.out)
	}
	if len(lines) > 2 && lines[2][8:20] != "\xf5\xff\xff\xff\xf5\xff\xff\xff\xf5\xff\xff\xff" {
		t.Errorf("a busy session answers %q", lines[2][8:])
	}
	if got := w.ends(); len(got) != 3 || r.Sends != 3 {
		t.Errorf("%d sends end %q", r.Sends, got)
	}
}

// A session can be held from the start section, before any export is called.
func TestGuestSendsFromItsStartSection(t *testing.T) {
	t.Parallel()
	g := newGuest()
	x := &texts{g, textAt}
	g.place(3, 0, textTool(g, 700, `"second"`))
	code := g.call("cchat_create") + Drop + g.call("cchat_write_msg", 1000, x.put("user"), x.put("go")) + Drop +
		g.call("cchat_write_fn", 1000, 3, x.put(definition("f"))) + Drop +
		Const(1000) + Set(4) + x2param(g, x, "tool_arena_ptr", arenaAt) + x2param(g, x, "tool_arena_len", arenaLen) +
		Const(wordAt) + Const(outLen) + Store(0) + g.call("cchat_send", 1000, 3) + Set(0) +
		g.call("cchat_recv", Get(0), outAt, wordAt) + Set(1) + g.print(Const(outAt), Get(1))
	g.Start(g.Func("", nil, nil, 5, code))
	g.Func("_start", nil, nil, 0)
	w := newWorld(asks("f"))
	r := runGuest(t, g.Bytes(), w, nil, nil)
	r.ended(t, 0)
	if c := w.calls(); len(c) != 1 || c[0].Result != "second" {
		t.Errorf("%d calls: %+v", len(c), c)
	}
}

// x2param is texts.param for the session in local 4.
func x2param(g *spear, x *texts, key string, value any) string {
	return strings.ReplaceAll(x.param(key, value), Get(0), Get(4)) + Drop
}

// T29: a guest sees the files that it was granted and no others, and what it may only read it cannot change.
func TestT29GuestFiles(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	for name, text := range map[string]string{"mine/a.txt": "mine!", "other/b.txt": "other"} {
		if err := os.MkdirAll(filepath.Join(base, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(base, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(base, "other"), filepath.Join(base, "mine", "link")); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(filepath.Join(base, "mine"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	for _, tc := range []struct {
		path    string
		granted bool
		create  int
		opens   bool
	}{
		{"a.txt", true, 0, true}, {"a.txt", false, 0, false}, {"new.txt", true, 1, false}, {"../other/b.txt", true, 0, false},
		{"link/b.txt", true, 0, false}, {"/etc/passwd", true, 0, false}, {"nothing", true, 0, false},
	} {
		t.Run(tc.path, func(t *testing.T) {
			t.Parallel()
			p := &probe{spear: &spear{New(), map[string]int{}}}
			open := p.Import("wasi_snapshot_preview1", "path_open", T{I32, I32, I32, I32, I32, I64, I64, I32, I32}, T{I32})
			p.index["fd_write"] = p.Import("wasi_snapshot_preview1", "fd_write", T{I32, I32, I32, I32}, T{I32})
			p.Memory(2, 2)
			p.texts = &texts{p.spear, textAt}
			p.do(Const(3) + Const(0) + p.put(tc.path) + Const(int32(tc.create)) + Const64(2) + Const64(0) + Const(0) + Const(600) + Call(open))
			opts := &guest.RunOptions{}
			if tc.granted {
				opts.Files = []guest.FileGrant{{Guest: "/data", Root: root}}
			}
			got, _, r := p.run(t, nil, nil, opts)
			r.ended(t, 0)
			if (got[0] == 0) != tc.opens {
				t.Errorf("opening returns %d", got[0])
			}
		})
	}
}

// Two tenants run the same program at once: neither sees the other's memory, descriptors or sessions.
func TestGuestsOfTwoTenantsSeeNothingOfEachOther(t *testing.T) {
	t.Parallel()
	// It looks whether memory is clean and whether 1000 is open, then keeps a secret in memory and in a
	// session, and sends. The other one runs while this one waits for its answer.
	p := newProbe()
	p.look(7000)
	p.call("cchat_recv", 1000, outAt, wordAt)
	p.call("cchat_write_msg", 1000, p.put("user"), p.put("stolen"))
	p.word(7000, 42)
	p.call("cchat_create")
	p.printText(1000, "my secret")
	p.call("cchat_send", 1000, 2)
	p.Func("_start", nil, nil, 4, p.code, p.print(Const(resultsAt), Const(int32(4*p.steps))))
	rt, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	program, err := rt.Compile(t.Context(), p.Bytes(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close() //nolint:errcheck // what it returns is the engine's
	var both sync.WaitGroup
	both.Add(2)
	meet := failing(func(ctx context.Context, req *guest.Request) (*guest.Reply, error) {
		both.Done()
		both.Wait() // both are in the middle of a send
		return &guest.Reply{Result: &event.Result{Reason: lathe.ReasonAnswered, History: req.Messages}, History: req.Messages}, nil
	})
	var wg sync.WaitGroup
	outs := make([]strings.Builder, 2)
	requests := make([]*guest.Request, 2)
	for i, principal := range []string{"ada", "bob"} {
		wg.Go(func() {
			host := failing(func(ctx context.Context, req *guest.Request) (*guest.Reply, error) {
				requests[i] = req
				return meet(ctx, req)
			})
			if o := program.Run(t.Context(), host, &guest.RunOptions{Stdout: &outs[i], Principal: principal}); o.Err != nil {
				t.Errorf("%s: %v", principal, o.Err)
			}
		})
	}
	wg.Wait()
	for i, principal := range []string{"ada", "bob"} {
		want := "\x00\x00\x00\x00\xf7\xff\xff\xff\xf7\xff\xff\xff\xe8\x03\x00\x00\x00\x00\x00\x00\xe9\x03\x00\x00\n"
		if outs[i].String() != want {
			t.Errorf("%s: the calls return %q, want %q", principal, outs[i].String(), want)
		}
		if r := requests[i]; r.Run.Principal != principal || len(r.Messages) != 1 {
			t.Errorf("%s: request of %q with %d messages", principal, r.Run.Principal, len(r.Messages))
		}
	}
	if requests[0].Run.SessionID == requests[1].Run.SessionID {
		t.Error("the sessions have the same id")
	}
}

// A call that comes when its send is over is cancelled and does not run in the guest.
func TestGuestFunctionAfterItsSend(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGuest()
		g.place(3, 0, Unreachable)
		f := &flow{prompt: "go", flags: 2, functions: map[int]string{3: definition("f")}}
		rt, err := guest.New(&guest.Options{Interpreter: true})
		if err != nil {
			t.Fatal(err)
		}
		defer rt.Close() //nolint:errcheck // what it returns is the engine's
		program, err := rt.Compile(t.Context(), f.build(g), nil)
		if err != nil {
			t.Fatal(err)
		}
		var late lathe.Tool
		o := program.Run(t.Context(), failing(func(_ context.Context, req *guest.Request) (*guest.Reply, error) {
			late = req.Tools[0]
			return &guest.Reply{Result: &event.Result{Reason: lathe.ReasonAnswered}}, nil
		}), nil)
		if o.Err != nil {
			t.Fatal(o.Err)
		}
		call := late.Call
		if _, err := call(t.Context(), []byte(`{}`)); lathe.CodeOf(err) != lathe.CodeCancelled {
			t.Errorf("a late call: %v", err)
		}
	})
}

// T31: what a module declares is bounded before it is compiled.
func TestT31GuestModuleLimits(t *testing.T) {
	t.Parallel()
	rt, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	g := newGuest()
	sumTool(g, 3)
	wasm := (&flow{prompt: "go", functions: map[int]string{3: sumJSON}}).build(g)
	for name, l := range map[string]guest.Limits{
		"module_bytes": {ModuleBytes: len(wasm) - 1}, "functions": {Functions: 1}, "function_bytes": {FunctionBytes: 50},
		"memory_pages": {MemoryPages: 1}, "table_elements": {TableElements: 7},
	} {
		if _, err := rt.Compile(t.Context(), wasm, &l); err == nil || !strings.Contains(err.Error(), "limit "+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p, err := rt.Compile(t.Context(), wasm, &guest.Limits{ModuleBytes: len(wasm), Functions: 2, FunctionBytes: 4096, MemoryPages: 2, TableElements: 8})
	if err != nil {
		t.Fatalf("at the limits: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// Compiled and interpreted, a guest does the same.
func TestGuestIsTheSameWhenInterpreted(t *testing.T) {
	t.Parallel()
	wasm, err := os.ReadFile("testdata/sum.wasm")
	if err != nil {
		t.Fatal(err)
	}
	var outs [2]strings.Builder
	for i := range outs {
		rt, err := guest.New(&guest.Options{Interpreter: i == 1})
		if err != nil {
			t.Fatal(err)
		}
		p, err := rt.Compile(t.Context(), wasm, nil)
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(nil)
		if o := p.Run(t.Context(), w, &guest.RunOptions{Stdout: &outs[i]}); o.Err != nil || len(w.calls()) != 1 || w.calls()[0].Result != `{"sum":42}` {
			t.Errorf("%v, %d calls", o.Err, len(w.calls()))
		}
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
	}
	_, first, _ := strings.Cut(outs[0].String(), `"object"`) // what follows the id
	_, second, _ := strings.Cut(outs[1].String(), `"object"`)
	if first == "" || first != second {
		t.Errorf("compiled:\n%s\ninterpreted:\n%s", first, second)
	}
}

// A guest has no arguments, no environment and no input.
func TestGuestHasNoSurroundings(t *testing.T) {
	t.Parallel()
	p := &probe{spear: &spear{New(), map[string]int{}}}
	two := T{I32, I32}
	args := p.Import("wasi_snapshot_preview1", "args_sizes_get", two, T{I32})
	environ := p.Import("wasi_snapshot_preview1", "environ_sizes_get", two, T{I32})
	read := p.Import("wasi_snapshot_preview1", "fd_read", T{I32, I32, I32, I32}, T{I32})
	p.index["fd_write"] = p.Import("wasi_snapshot_preview1", "fd_write", T{I32, I32, I32, I32}, T{I32})
	p.Memory(2, 2)
	p.texts = &texts{p.spear, textAt}
	for _, f := range []int{args, environ} {
		p.word(600, -1)
		p.do(Const(600) + Const(604) + Call(f))
		p.look(600)
	}
	p.word(620, outAt)
	p.word(624, 100)
	p.do(Const(0) + Const(620) + Const(1) + Const(628) + Call(read))
	p.look(628)
	p.want(t, nil, nil, nil, 0, 0, 0, 0, 0, 0)
}
