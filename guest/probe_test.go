package guest_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/guest"
	. "github.com/lathe-run/lathe/internal/wasmrt/wasmtest"
)

// A probe is a guest that makes one host call after the other and writes what they return.
type probe struct {
	*spear
	*texts
	code  string
	steps int
}

const resultsAt = 4096 // what the calls of a probe return

func newProbe() *probe {
	g := newGuest()
	return &probe{spear: g, texts: &texts{g, textAt}}
}

// do makes a call whose result is kept.
func (p *probe) do(code string) {
	p.code += Const(int32(resultsAt+4*p.steps)) + code + Store(0)
	p.steps++
}

func (p *probe) call(name string, args ...any) { p.do(p.spear.call(name, args...)) }

// word puts a word into memory.
func (p *probe) word(at, v int) { p.code += Const(int32(at)) + Const(int32(v)) + Store(0) }

// look keeps a word of memory among the results.
func (p *probe) look(at int) { p.do(Const(int32(at)) + Load(0)) }

// show writes n bytes of memory, and a line end.
func (p *probe) show(at, n int) { p.code += p.print(Const(int32(at)), Const(int32(n))) }

// set sets a parameter, given as JSON.
func (p *probe) set(fd int, json string) {
	at := p.at
	p.put(json)
	p.word(wordAt, len(json))
	p.call("cchat_ctl", fd, 1, at, wordAt)
}

// printText writes a message of a person.
func (p *probe) printText(fd int, text string) {
	p.call("cchat_write_msg", fd, p.put("user"), p.put(text))
}

// run makes the calls and returns what they returned, and what was shown.
func (p *probe) run(t testing.TB, w guest.Host, limits *guest.Limits, opts *guest.RunOptions) (results []int32, shown []string, r *ran) {
	t.Helper()
	if p.at > resultsAt {
		t.Fatal("the texts are too long")
	}
	p.Func("_start", nil, nil, 4, p.code, p.print(Const(resultsAt), Const(int32(4*p.steps))))
	if w == nil {
		w = newWorld(&script{})
	}
	r = runGuest(t, p.Bytes(), w, limits, opts)
	n := 4*p.steps + 1
	if len(r.out) < n {
		return nil, nil, r
	}
	raw := r.out[len(r.out)-n:]
	for i := range p.steps {
		results = append(results, int32(binary.LittleEndian.Uint32([]byte(raw[4*i:]))))
	}
	if rest := strings.TrimSuffix(r.out[:len(r.out)-n], "\n"); rest != "" {
		shown = strings.Split(rest, "\n")
	}
	return results, shown, r
}

func (p *probe) want(t testing.TB, w guest.Host, limits *guest.Limits, opts *guest.RunOptions, want ...int32) []string {
	t.Helper()
	got, shown, r := p.run(t, w, limits, opts)
	r.ended(t, 0)
	if !slices.Equal(got, want) {
		t.Errorf("the calls return %d, want %d", got, want)
	}
	return shown
}

// Every call of the module is there with its signature; those of speech, microphone and streams answer
// -ENOSYS.
func TestGuestImportsAreComplete(t *testing.T) {
	t.Parallel()
	p := newProbe()
	var want []int32
	for _, name := range names {
		if strings.HasPrefix(name, "rtasr") || strings.HasPrefix(name, "mic") || strings.HasPrefix(name, "user_stream") {
			args := make([]any, signatures[name])
			for i := range args {
				args[i] = 0
			}
			p.call(name, args...)
			want = append(want, -38)
		}
	}
	if len(want) != 15 {
		t.Errorf("%d calls, want 15", len(want))
	}
	p.want(t, nil, nil, nil, want...)
}

// Descriptors begin at 1000, are not given again, and are gone once they are closed.
func TestGuestDescriptors(t *testing.T) {
	t.Parallel()
	p := newProbe()
	p.call("cchat_create")
	p.call("cchat_create")
	p.call("cchat_close", 1000)
	p.call("cchat_close", 1000)
	p.call("cchat_create")
	p.printText(1000, "x")
	p.call("cchat_recv", 1001, outAt, wordAt) // a session
	p.call("cchat_send", 1003, 0)             // not there
	p.printText(1001, "x")
	p.call("cchat_send", 1001, 0)
	p.call("cchat_send", 1003, 0) // an answer
	p.call("cchat_close", 1003)
	p.word(wordAt, outLen)
	p.call("cchat_recv", 1003, outAt, wordAt)
	p.call("cchat_ctl", 1001, 2, outAt, wordAt) // metrics of a session
	p.call("cchat_ctl", 1001, 3, outAt, wordAt)
	p.want(t, nil, nil, nil, 1000, 1001, 0, -9, 1002, -9, -9, -9, 0, 1003, -9, 0, -9, -9, -22)

	t.Run("limit", func(t *testing.T) {
		t.Parallel()
		p := newProbe()
		for range 2 {
			p.call("cchat_create")
		}
		p.printText(1000, "x")
		p.call("cchat_send", 1000, 0)
		p.call("cchat_send", 1000, 0)
		p.call("spear_epoll_create")
		p.call("cchat_close", 1001)
		p.call("spear_epoll_create")
		p.want(t, nil, &guest.Limits{Descriptors: 3}, nil, 1000, 1001, 0, 1002, -12, -12, 0, 1003)
	})
}

// Answers can be read again; for too small a buffer the call returns the length.
func TestGuestReceivesAgain(t *testing.T) {
	t.Parallel()
	p := newProbe()
	p.call("cchat_create")
	p.printText(1000, "x")
	p.call("cchat_send", 1000, 1)
	p.word(wordAt, 3)
	p.call("cchat_recv", 1001, outAt, wordAt)
	p.look(wordAt)
	p.call("cchat_recv", 1001, outAt, wordAt)
	p.call("cchat_recv", 1001, outAt, wordAt)
	p.call("cchat_recv", 1001, outAt, wordAt)
	p.call("cchat_recv", 1001, -8, wordAt)
	p.call("cchat_recv", 1001, outAt, -2)
	p.word(wordAt, 3)
	p.call("cchat_ctl", 1001, 2, outAt, wordAt)
	p.call("cchat_ctl", 1001, 2, outAt, wordAt)
	got, _, r := p.run(t, nil, nil, nil)
	r.ended(t, 0)
	n := got[4]
	usage := int32(len(`{"completion_tokens":5,"prompt_tokens":10,"total_tokens":15}`))
	if want := []int32{1000, 0, 1001, -28, n, n, n, n, -14, -14, -28, usage}; !slices.Equal(got, want) || n < 100 {
		t.Errorf("the calls return %d, want %d", got, want)
	}
}

// T32: what a guest says of its memory is checked.
func TestT32GuestPointers(t *testing.T) {
	t.Parallel()
	p := newProbe()
	p.call("cchat_create")
	p.call("cchat_write_msg", 1000, -1, 4, 0, 0)
	p.call("cchat_write_msg", 1000, 0, -1, 0, 0)
	p.call("cchat_write_msg", 1000, p.put("user"), 131072, 1)
	p.call("cchat_write_msg", 1000, p.put("user"), 131072, 0)
	p.call("cchat_write_msg", 1000, p.put("tool"), 0, 0)
	p.call("cchat_write_msg", 1000, p.put("user"), p.put("caf\xe9"))
	p.call("cchat_write_fn", 1000, 0, 131071, 2)
	p.call("cchat_ctl", 1000, 1, 0, 131070)
	p.word(wordAt, -1)
	p.call("cchat_ctl", 1000, 1, 0, wordAt)
	p.call("log", 2, -1, 4)
	p.call("log", 2, 0, 16385)
	p.call("log", 2, 0, -1)
	p.call("spear_epoll_create")
	p.call("spear_epoll_wait", 1001, outAt, -4, 0)
	p.call("cchat_send", 1000, 0)
	p.call("spear_epoll_ctl", 1001, 1, 1002, 1)
	p.word(wordAt, 8)
	p.call("spear_epoll_wait", 1001, 131068, wordAt, 0)
	p.call("spear_fd_ctl", 1000, 1, -1, wordAt)
	w := newWorld(&script{})
	p.want(t, w, nil, nil, 1000, -14, -14, -14, 0, -22, 0, -14, -14, -14, -14, -22, -22, 1001, -14, 1002, 0, -14, -14)
	if got := w.requests[0].Messages; len(got) != 2 || got[1].Text() != "caf\uFFFD" {
		t.Errorf("messages: %+v", got)
	}
}

func TestGuestEpoll(t *testing.T) {
	t.Parallel()
	const in, hup = 1, 16
	p := newProbe()
	p.call("spear_epoll_create")             // 1000
	p.call("cchat_create")                   // 1001
	p.printText(1001, "x")                   // 0
	p.call("cchat_send", 1001, 0)            // 1002
	p.call("cchat_send", 1001, 0)            // 1003
	p.call("spear_epoll_ctl", 1000, 1, 9, 1) // no such descriptor
	p.call("spear_epoll_ctl", 1001, 1, 1002, 1)
	p.call("spear_epoll_ctl", 1000, 1, 1000, 1)
	p.call("spear_epoll_ctl", 1000, 7, 1002, 1)
	p.call("spear_epoll_ctl", 1000, 1, 1001, 0x1f)
	p.word(wordAt, 64)
	p.call("spear_epoll_wait", 1000, recordAt, wordAt, 0)   // nothing: a session is not ready
	p.look(wordAt)                                          // 0
	p.word(wordAt, 64)                                      //
	p.call("spear_epoll_wait", 1000, recordAt, wordAt, 250) // nor later
	for _, fd := range []int{1003, 1002, 1003} {
		p.call("spear_epoll_ctl", 1000, 1, fd, 1)
	}
	p.call("cchat_close", 1001)
	p.word(wordAt, 7)
	p.call("spear_epoll_wait", 1000, recordAt, wordAt, -1) // too small
	p.look(wordAt)
	p.word(wordAt, 64)
	p.call("spear_epoll_wait", 1000, recordAt, wordAt, -1)
	p.look(wordAt)
	for i := range 6 {
		p.look(recordAt + 4*i)
	}
	p.word(wordAt, 15)
	p.call("spear_epoll_wait", 1000, recordAt, wordAt, 0) // there is room for one
	p.look(wordAt)
	p.call("spear_epoll_ctl", 1000, 2, 1003, 0)
	p.call("spear_epoll_ctl", 1000, 3, 1001, 0)
	p.word(wordAt, 64)
	p.call("spear_epoll_wait", 1000, recordAt, wordAt, 0)
	p.look(recordAt)
	p.call("spear_epoll_close", 1002)
	p.call("spear_epoll_close", 1000)
	p.call("spear_epoll_wait", 1000, recordAt, wordAt, 0)
	p.want(t, nil, nil, nil, 1000, 1001, 0, 1002, 1003, -9, -9, -22, -22, 0, 0, 0, 0, 0, 0, 0, 0, -28, 8,
		3, 24, 1001, hup, 1002, in, 1003, in, 1, 8, 0, 0, 1, 1002, -9, 0, -9)
}

func TestGuestDescriptorControl(t *testing.T) {
	t.Parallel()
	p := newProbe()
	p.call("cchat_create")
	p.call("spear_epoll_create")
	p.printText(1000, "x")
	p.call("cchat_send", 1000, 1)
	for _, flags := range []string{`{"set":["O_NONBLOCK","O_OTHER"],"clear":[]}`, `{"set":"O_NONBLOCK"}`, `[]`, `{`} {
		at := p.at
		p.put(flags)
		p.word(wordAt, len(flags))
		p.call("spear_fd_ctl", 1002, 1, at, wordAt)
	}
	want := []int32{1000, 1001, 0, 1002, 0, -22, -22, -22}
	wantShown := []string{`{"flags":["O_NONBLOCK"]}`, `{"kind":"ChatResponse"}`,
		`{"closed":false,"flags":["O_NONBLOCK"],"kind":"ChatResponse","poll_mask":["EPOLLIN"]}`,
		`{"completion_tokens":5,"prompt_tokens":10,"total_tokens":15}`,
		`{"closed":false,"flags":[],"kind":"ChatSession","poll_mask":[]}`, `{"kind":"Epoll"}`, `{}`}
	for i, q := range [][2]int{{1002, 2}, {1002, 3}, {1002, 4}, {1002, 5}, {1000, 4}, {1001, 3}, {1001, 5}} {
		p.word(wordAt, outLen)
		p.call("spear_fd_ctl", q[0], q[1], outAt, wordAt)
		n := len(wantShown[i])
		p.show(outAt, n)
		want = append(want, int32(n))
	}
	p.call("spear_fd_ctl", 1000, 6, outAt, wordAt)
	p.call("spear_fd_ctl", 1003, 3, outAt, wordAt)
	p.word(wordAt, 2)
	p.call("spear_fd_ctl", 1000, 3, outAt, wordAt)
	want = append(want, -22, -9, -28)
	if shown := p.want(t, nil, nil, nil, want...); !slices.Equal(shown, wantShown) {
		t.Errorf("shown\n%s\nwant\n%s", strings.Join(shown, "\n"), strings.Join(wantShown, "\n"))
	}
}

// A guest's log lines have their level and are bounded.
func TestGuestLog(t *testing.T) {
	t.Parallel()
	p := newProbe()
	for level := range 6 {
		p.call("log", level, p.put(fmt.Sprintf("level %d", level)))
	}
	p.call("log", 0, 0, 16384)
	p.call("log", 0, p.put("more"))
	got, _, r := p.run(t, nil, &guest.Limits{LogBytes: 16384 + 42}, nil)
	r.ended(t, 0)
	if want := []int32{0, 0, 0, 0, 0, 0, 0, -28}; !slices.Equal(got, want) {
		t.Errorf("the calls return %d, want %d", got, want)
	}
	wantLog := []string{"trace: level 0", "debug: level 1", "info: level 2", "warn: level 3", "error: level 4", "info: level 5"}
	if len(r.log) != 7 || !slices.Equal(r.log[:6], wantLog) {
		t.Errorf("log: %.300q, want %q and a long one", r.log, wantLog)
	}
}

// What the runtime says of functions that it passes over is a part of what a guest may log.
func TestT30GuestNotesAreBounded(t *testing.T) {
	t.Parallel()
	p := newProbe()
	p.call("cchat_create")
	want := []int32{1000}
	for range 50 {
		p.call("cchat_write_fn", 1000, 0, Const(textAt), Const(1))
		want = append(want, 0)
	}
	p.call("log", 2, 0, 8)
	got, _, r := p.run(t, nil, &guest.Limits{LogBytes: 200}, nil)
	r.ended(t, 0)
	if !slices.Equal(got, append(want, -28)) {
		t.Errorf("the calls return %d", got)
	}
	if n := len(strings.Join(r.log, "")); len(r.log) == 0 || n > 300 {
		t.Errorf("%d bytes of log: %q", n, r.log)
	}
}

// Time that a guest without a clock sleeps passes, and never runs back.
func TestGuestSleepsLong(t *testing.T) {
	t.Parallel()
	p := newProbe()
	const days24 = 1<<31 - 1 // ms
	p.call("cchat_create")
	seconds := func() { p.do(p.spear.call("wall_time_s") + Wrap) }
	seconds()
	p.code += Const(days24) + Call(p.index["sleep_ms"])
	seconds()
	got, _, r := p.run(t, nil, nil, nil)
	r.ended(t, 0)
	if len(got) != 3 || got[2]-got[1] != days24/1000 {
		t.Errorf("%d", got)
	}
}

// Without grants time and random are the same in every run; sleeping takes no time.
func TestGuestClockAndRandomAreItsOwn(t *testing.T) {
	t.Parallel()
	var seen [2]string
	for i := range seen {
		p := newProbe()
		wrap := func(name string) string { return Call(p.index[name]) + Wrap }
		p.do(wrap("wall_time_s"))
		p.code += Const(3_600_000) + Call(p.index["sleep_ms"]) + Const(-1) + Call(p.index["sleep_ms"])
		p.do(wrap("wall_time_s"))
		p.do(wrap("time_now_ms"))
		p.do(wrap("random_i64"))
		got, _, r := p.run(t, nil, nil, nil)
		r.ended(t, 0)
		if got[0] != 946684800 || got[1] != 946684800+3600 {
			t.Errorf("time: %d", got)
		}
		seen[i] = fmt.Sprint(got)
	}
	if seen[0] != seen[1] {
		t.Errorf("two runs: %s and %s", seen[0], seen[1])
	}
}

// What sessions hold is bounded over all of them, and given back when they are closed.
func TestGuestSessionBytes(t *testing.T) {
	t.Parallel()
	p := newProbe()
	p.call("cchat_create")
	p.call("cchat_create")
	big := Const(0) + Const(1000)
	p.call("cchat_write_msg", 1000, p.put("user"), big)
	p.call("cchat_write_msg", 1001, p.put("user"), big)
	p.call("cchat_write_fn", 1001, 0, big)
	p.call("cchat_close", 1000)
	p.call("cchat_write_msg", 1001, p.put("user"), big)
	p.call("cchat_write_fn", 1001, 0, p.put(definition("f")))
	p.call("cchat_write_fn", 1001, 0, p.put(definition("g")))
	p.want(t, nil, &guest.Limits{SessionBytes: 2500, SessionTools: 1}, nil, 1000, 1001, 0, 0, -12, 0, 0, 0, -12)
}

// A program makes so many sends and no more.
func TestGuestSends(t *testing.T) {
	t.Parallel()
	p := newProbe()
	p.call("cchat_create")
	p.printText(1000, "x")
	for range 3 {
		p.call("cchat_send", 1000, 0)
	}
	p.word(wordAt, outLen)
	p.call("cchat_recv", 1003, outAt, wordAt)
	const body = `{"error":{"code":"budget_exceeded","message":"exceeded sends"}}`
	p.show(outAt, len(body))
	w := newWorld(&script{})
	shown := p.want(t, w, &guest.Limits{Sends: 2}, nil, 1000, 0, 1001, 1002, 1003, int32(len(body)))
	if len(w.requests) != 2 || !slices.Equal(shown, []string{body}) {
		t.Errorf("%d sends, the last is answered %q", len(w.requests), shown)
	}
}

// Each limit of a session is enforced, one below, at it and above.
func TestGuestSessionLimits(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		params []any
		turns  int
		want   string // error.message, or the answer
		calls  int    // results
	}{
		{[]any{"max_iterations", 3}, 2, "done", 2},
		{[]any{"max_iterations", 2}, 2, "exceeded max_iterations", 2},
		{[]any{"max_iterations", 1}, 2, "exceeded max_iterations", 1},
		{[]any{"max_iterations", 0}, 2, "exceeded max_iterations", 0},
		{[]any{"max_total_tool_calls", 3}, 2, "done", 2},
		{[]any{"max_total_tool_calls", 2}, 2, "done", 2},
		{[]any{"max_total_tool_calls", 1}, 2, "exceeded max_total_tool_calls", 2},
		{[]any{"max_tool_calls", 1}, 2, "exceeded max_total_tool_calls", 2},
		{[]any{"max_total_tool_calls", 0}, 2, "exceeded max_total_tool_calls", 0},
		{[]any{"max_total_tool_calls", 0}, 0, "done", 0},
	} {
		t.Run(fmt.Sprint(tc.params), func(t *testing.T) {
			t.Parallel()
			g := newGuest()
			g.place(3, 0, Get(outPtr), Get(argsPtr), Get(argsLen), MemoryCopy, Get(outLenPtr), Get(argsLen), Store(0), Const(0))
			f := &flow{prompt: "go", flags: 3, functions: map[int]string{3: definition("f")}, params: tc.params,
				then: func(g *spear, x *texts) string { // the session can be sent again
					return g.call("cchat_send", Get(0), 0) + Drop
				}}
			model := asks(slices.Repeat([]string{"f"}, tc.turns)...)
			w := newWorld(model)
			r := runGuest(t, f.build(g), w, nil, nil)
			r.ended(t, 0)
			got := r.at("error", "message")
			if got == nil {
				got = r.at("choices", 0, "message", "content")
			} else if r.at("error", "code") != "tool_call_limit" {
				t.Errorf("code %v", r.at("error", "code"))
			}
			if got != tc.want || len(w.calls()) != tc.calls {
				t.Errorf("answer %v with %d results, want %s with %d", got, len(w.calls()), tc.want, tc.calls)
			}
			last := w.requests[len(w.requests)-1].Messages
			open := map[string]int{}
			for _, m := range last {
				for _, part := range m.Parts {
					switch part := part.(type) {
					case lathe.ToolCall:
						open[part.ID]++
					case lathe.ToolResult:
						open[part.CallID]--
					default: // no call
					}
				}
			}
			for id, n := range open {
				if n != 0 {
					t.Errorf("call %s is answered %d times", id, 1-n)
				}
			}
			if reason := w.ends()[len(w.ends())-1]; reason != lathe.ReasonAnswered && reason != lathe.ReasonMaxIterations && reason != lathe.ReasonClientToolCalls {
				t.Errorf("the next send ends %s", reason)
			}
		})
	}
}
