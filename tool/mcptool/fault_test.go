package mcptool

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/secret"
)

// If a server ends during a call, the call returns the code of its effect, and the next call succeeds.
func TestT35_ServerThatEndsInTheMiddleComesBack(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		effect lathe.Effect
		want   lathe.Code
	}{{lathe.ReadOnly, lathe.CodeUnavailable}, {lathe.Idempotent, lathe.CodeUnavailable}, {lathe.Writes, lathe.CodeInterrupted}, {lathe.EffectUndeclared, lathe.CodeInterrupted}} {
		t.Run(tt.effect.String(), func(t *testing.T) {
			t.Parallel()
			conf := testConf(t, "")
			conf.Effects = map[string]lathe.Effect{"any.thing": tt.effect}
			r := newRig(t, nil, conf)
			before := r.group.Status()[0].PID
			wantCode(t, r.do("crash"), tt.want)
			if got := r.call("box__echo", map[string]string{"text": "again"}); got.Content != "again" {
				t.Errorf("after the crash: got %+v", got)
			}
			st := r.group.Status()[0]
			if st.PID == before || st.Starts != 2 || !gone(t, before) {
				t.Errorf("the server was not started anew: pid %d, then %+v", before, st)
			}
		})
	}
}

func TestKilledServerComesBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, testConf(t, ""))
	pid := r.group.Status()[0].PID
	p, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	r.until("another start", func(st Status) bool { return st.Starts == 2 && st.State == StateReady })
	if got := r.call("box__echo", map[string]string{"text": "x"}); got.Content != "x" {
		t.Errorf("got %+v", got)
	}
}

// It never gives up, says that it has failed, and answers calls at once meanwhile.
func TestServerThatCannotComeBackIsTriedOn(t *testing.T) {
	t.Parallel()
	conf := testConf(t, "once")
	setEnv(&conf, "MARK", filepath.Join(t.TempDir(), "mark"))
	r := newRig(t, nil, conf)
	wantCode(t, r.do("crash"), lathe.CodeInterrupted)
	st := r.until("failed", func(st Status) bool { return st.State == StateFailed })
	wantCode(t, r.do(""), lathe.CodeUnavailable)
	r.until("more attempts", func(now Status) bool { return now.Failures > st.Failures+1 })
}

func TestT11_FaultyAnswers(t *testing.T) {
	t.Parallel()
	conf := testConf(t, "")
	conf.MaxLineBytes = 1 << 20
	r := newRig(t, nil, conf)
	for _, tt := range []struct {
		do      string
		want    lathe.Code
		message string
	}{
		{"utf8", lathe.CodeInvalidOutput, ""},
		{"twice", lathe.CodeInvalidOutput, ""},
		{"deep", lathe.CodeInvalidOutput, ""},
		{"abyss", lathe.CodeInvalidOutput, ""},
		{"open", lathe.CodeInvalidOutput, ""},
		{"refuse", lathe.CodeInvalidArguments, "no such [2Jpath"},
		{"", "", "{}"},
	} {
		res := r.do(tt.do)
		wantCode(t, res, tt.want)
		if !strings.Contains(res.Content, tt.message) || strings.ContainsAny(res.Content, "\x1b\U000E0041") {
			t.Errorf("%s: got %q, want %q in it", tt.do, res.Content, tt.message)
		}
	}
	if st := r.group.Status()[0]; st.Starts != 1 || st.BadMessages != 5 {
		t.Errorf("got %d starts and %d bad messages, want 1 and 5", st.Starts, st.BadMessages)
	}
}

// A message over the limit is not kept, and ends the connection alone.
func TestT15_HugeLineIsNotRead(t *testing.T) {
	t.Parallel()
	conf := testConf(t, "")
	conf.MaxLineBytes = 1 << 20
	r := newRig(t, nil, conf)
	res := r.do("huge")
	wantCode(t, res, lathe.CodeOutputTooLarge)
	if !strings.Contains(res.Content, "1048576") {
		t.Errorf("the limit is not named: %s", res.Content)
	}
	if got := r.call("box__echo", map[string]string{"text": "x"}); got.Content != "x" {
		t.Errorf("got %+v", got)
	}
}

// The same before the first call: the status shows the reason, not that the process was killed.
func TestT15_HugeLineAtTheStartIsReported(t *testing.T) {
	t.Parallel()
	conf := testConf(t, "huge-start")
	conf.MaxLineBytes = 1 << 20
	r := newRig(t, nil, conf)
	if st := r.group.Status()[0]; !strings.Contains(st.LastError, "max_message_bytes") {
		t.Errorf("got %+v", st)
	}
}

func TestGarbageOnStdoutIsPassedOver(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, testConf(t, "garbage"))
	if got := r.call("box__echo", map[string]string{"text": "x"}); got.Content != "x" {
		t.Errorf("got %+v", got)
	}
	if st := r.group.Status()[0]; st.BadMessages < 8 || st.Starts != 1 {
		t.Errorf("got %+v", st)
	}
}

func TestHangAtInitializeIsCutOff(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"hang", "deaf"} {
		conf := testConf(t, mode)
		conf.StartTimeout = 100 * time.Millisecond
		r := newRig(t, nil, conf)
		st := r.group.Status()[0]
		if st.Problem != ProblemTimeout || !strings.Contains(st.LastError, "start_timeout") {
			t.Errorf("%s: got %+v", mode, st)
		}
		conf.Required = true
		if _, err := tryRig(t, nil, conf); lathe.CodeOf(err) != lathe.CodeUnavailable {
			t.Errorf("%s, required: got %v, want unavailable", mode, err)
		}
	}
}

// A server that does not answer what it does not know is asked in the older way.
func TestT38_OlderServerThatIgnoresTheNewBeginning(t *testing.T) {
	t.Parallel()
	conf := testConf(t, "oldhang")
	conf.StartTimeout = 3 * time.Second
	r := newRig(t, nil, conf)
	r.until("ready", func(st Status) bool { return st.State == StateReady })
	if got := r.call("box__echo", map[string]string{"text": "x"}); got.Content != "x" {
		t.Errorf("got %+v", got)
	}
}

func TestProgressKeepsACallAlive(t *testing.T) {
	t.Parallel()
	conf := testConf(t, "")
	conf.IdleTimeout = 3 * time.Second
	r := newRig(t, nil, conf)
	res := r.call("box__any_thing", map[string]any{"do": "progress", "n": 100}) // 4 s
	if res.Content != "done" {
		t.Errorf("with progress: got %+v", res)
	}
	if p := r.progress.Load(); p == nil || p.Tool != "box__any_thing" || p.Done < 1 || p.Total != 0 {
		t.Errorf("the last report is %+v", p)
	}
	wantCode(t, r.do("hang"), lathe.CodeTimeout)
	conf.CallTimeout = 300 * time.Millisecond
	r = newRig(t, nil, conf)
	wantCode(t, r.call("box__any_thing", map[string]any{"do": "progress", "n": 100}), lathe.CodeTimeout)
}

func TestCancellationIsSent(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "mark")
	conf := testConf(t, "")
	setEnv(&conf, "MARK", mark)
	r := newRig(t, nil, conf)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var begun sync.WaitGroup
	begun.Go(func() { // cancels the call once the server has it
		for ctx.Err() == nil {
			if _, err := os.Stat(mark + ".begun"); err == nil {
				cancel()
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
	wantCode(t, r.callCtx(ctx, "box__any_thing", map[string]string{"do": "cancelled"}), lathe.CodeCancelled)
	cancel()
	begun.Wait()
	r.await("the server was notified", func() bool { _, err := os.Stat(mark); return err == nil })
	if got := r.call("box__echo", map[string]string{"text": "x"}); got.Content != "x" {
		t.Errorf("after the cancelled call: got %+v", got)
	}
	if b, err := os.ReadFile(mark); string(b) != "notifications/cancelled" {
		t.Errorf("the server received %q, %v", b, err)
	}
}

// A call returns when it is cancelled, even if the server ignores the cancellation.
func TestServerThatIgnoresCancellation(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, testConf(t, ""))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	wantCode(t, r.callCtx(ctx, "box__any_thing", map[string]string{"do": "hang"}), lathe.CodeCancelled) // else its tool's timeout ends it
}

// No process is left, not even one that a server has started and left behind, nor one that does not
// want to end.
func TestCloseLeavesNoProcess(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"", "immortal"} {
		r := newRig(t, &Options{StopGrace: 50 * time.Millisecond}, testConf(t, mode))
		pid := r.group.Status()[0].PID
		child, err := strconv.Atoi(r.do("child").Content)
		if err != nil {
			t.Fatal(err)
		}
		if gone(t, pid) || gone(t, child) {
			t.Fatal("a process is gone too early")
		}
		if err := r.group.Close(); err != nil {
			t.Fatal(err)
		}
		r.await("the processes are gone", func() bool { return gone(t, pid) && gone(t, child) })
		if st := r.group.Status()[0]; st.State != StateClosed || st.PID != 0 {
			t.Errorf("got %+v", st)
		}
		wantCode(t, r.do(""), lathe.CodeUnavailable)
	}
}

// A server that was started through another program is found when that one ends.
func TestGrandchildDoesNotOutliveItsParent(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, testConf(t, ""))
	child, err := strconv.Atoi(r.do("child").Content)
	if err != nil {
		t.Fatal(err)
	}
	wantCode(t, r.do("crash"), lathe.CodeInterrupted)
	r.await("the grandchild is gone", func() bool { return gone(t, child) })
}

func (r *rig) await(what string, ok func() bool) {
	r.t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			r.t.Fatalf("not so: %s", what)
		}
	}
}

// A child gets three variables and what its configuration names.
func TestT49_ChildGetsNoOtherEnvironment(t *testing.T) {
	t.Parallel()
	conf := testConf(t, "")
	setEnv(&conf, "GRANTED", "yes")
	r := newRig(t, &Options{Environ: []string{"PATH=/bin", "HOME=/home/x", "LANG=C", "AWS_SECRET_ACCESS_KEY=canary", "PATHS=no"}}, conf)
	want := "GORACE=atexit_sleep_ms=0\nGRANTED=yes\nHOME=/home/x\nLANG=C\n" + serverEnv + "=\nPATH=/bin"
	if got := r.do("env").Content; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Requests of a server to its client are refused and counted.
func TestT40_RequestsOfAServerAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, testConf(t, ""))
	got := r.do("ask").Content
	for _, method := range []string{"sampling/createMessage", "elicitation/create", "roots/list"} {
		if !strings.Contains(got, method+` {"code":-32601,`) {
			t.Errorf("%s is not refused: %s", method, got)
		}
	}
	if st := r.group.Status()[0]; st.Refused != 3 {
		t.Errorf("got %d refused, want 3", st.Refused)
	}
}

// The end of standard error helps to find what is wrong: without secrets and without what steers a terminal.
func TestT20_T21_StderrIsShownSafely(t *testing.T) {
	t.Parallel()
	conf := testConf(t, "exit")
	setEnv(&conf, "TOKEN", "canary-token-1234")
	r := newRig(t, nil, conf)
	st := r.group.Status()[0]
	if want := `cannot \x1b[31mread [redacted]\x1b[0m`; !strings.Contains(st.Stderr, want) || strings.Contains(st.Stderr, "canary") {
		t.Errorf("got %q, want %q in it", st.Stderr, want)
	}
	if st.Problem != ProblemEnded || !strings.Contains(st.LastError, "status 3") {
		t.Errorf("got %s: %s", st.Problem, st.LastError)
	}
	if st.State != StateBackoff && st.State != StateStarting && st.State != StateFailed || strings.Contains(st.LastError, "canary") {
		t.Errorf("got %+v", st)
	}
}

func TestStderrIsBounded(t *testing.T) {
	t.Parallel()
	tl := &tail{}
	for range 100 {
		_, _ = tl.Write([]byte(strings.Repeat("x", 10_000)))
	}
	_, _ = tl.Write([]byte("the end"))
	if got := tl.text(nil); len(got) != maxStderr || !strings.HasSuffix(got, "the end") {
		t.Errorf("got %d bytes", len(got))
	}
}

// No shell stands between the configuration and the program.
func TestT14_NoShell(t *testing.T) {
	t.Parallel()
	conf := testConf(t, "")
	conf.Command += " ; touch /tmp/pwned"
	r := newRig(t, nil, conf)
	if st := r.group.Status()[0]; st.Problem != ProblemProgram {
		t.Errorf("got %+v", st)
	}
	p, err := findProgram(&Server{Command: "nothing-like-this"}, []string{"PATH=:/bin"})
	if err == nil {
		t.Errorf("got %s", p)
	}
}

func TestStartRefusesBadServers(t *testing.T) {
	t.Parallel()
	good := testConf(t, "")
	for name, change := range map[string]func(*Server){
		"name":         func(s *Server) { s.Name = "a__b" },
		"no command":   func(s *Server) { s.Command = "" },
		"both":         func(s *Server) { s.URL = "http://127.0.0.1/" },
		"no allowlist": func(s *Server) { s.Allowlist = nil },
		"pin":          func(s *Server) { s.Pin = "never" },
		"env":          func(s *Server) { s.Env = map[string]secret.Secret{"A=B": secret.New("x")} },
		"headers":      func(s *Server) { s.Headers = map[string]secret.Secret{"A": secret.New("x")} },
		"url":          func(s *Server) { *s = Server{Name: "x", URL: "file:///etc/passwd", Allowlist: []string{"*"}} },
	} {
		s := good
		change(&s)
		if g, err := Start(t.Context(), []Server{s}, nil); lathe.CodeOf(err) != lathe.CodeInvalidConfig || g != nil {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := Start(t.Context(), []Server{good, good}, nil); lathe.CodeOf(err) != lathe.CodeInvalidConfig {
		t.Errorf("two of a name: got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	good.Env[serverEnv] = secret.New("hang")
	if _, err := Start(ctx, []Server{good}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
}
