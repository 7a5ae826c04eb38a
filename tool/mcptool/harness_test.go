package mcptool

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/tool"
)

// testConf is a server that is this binary, in a mode.
func testConf(t testing.TB, mode string) Server {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Server{Name: "box", Command: exe, Allowlist: []string{"*"}, StartTimeout: time.Minute,
		Env: map[string]secret.Secret{serverEnv: secret.New(mode), "GORACE": secret.New("atexit_sleep_ms=0")}}
}

func setEnv(s *Server, name, value string) { s.Env[name] = secret.New(value) }

// rig is a group whose tools are in a set that a runner calls.
type rig struct {
	progress atomic.Pointer[event.ToolCallProgress] // last report of a call
	t        testing.TB
	group    *Group
	set      *tool.Set
	run      *tool.Runner
	pins     *Pins
}

func newRig(t testing.TB, opts *Options, servers ...Server) *rig {
	t.Helper()
	r, err := tryRig(t, opts, servers...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func tryRig(t testing.TB, opts *Options, servers ...Server) (*rig, error) {
	t.Helper()
	set, err := tool.NewSet()
	if err != nil {
		t.Fatal(err)
	}
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Pins == nil {
		o.Pins = NewPins(filepath.Join(t.TempDir(), "pins.json"))
	}
	if o.BackoffMin == 0 {
		o.BackoffMin, o.BackoffMax = 10*time.Millisecond, 50*time.Millisecond
	}
	o.OnChange = set.Replace
	group, err := Start(t.Context(), servers, &o)
	if err != nil {
		return nil, err
	}
	r := &rig{t: t, group: group, set: set, pins: o.Pins}
	t.Cleanup(func() { _ = group.Close() })
	all := policy.Effects{ReadOnly: lathe.Allow, Idempotent: lathe.Allow, Writes: lathe.Allow}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.Tools{Else: all}, Limits: lathe.Limits{ToolTimeout: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	r.run = runner
	return r, nil
}

// call calls a tool through the runner and returns the result that the model gets.
func (r *rig) call(name string, args any) lathe.ToolResult {
	r.t.Helper()
	return r.callCtx(r.t.Context(), name, args)
}

func (r *rig) callCtx(ctx context.Context, name string, args any) lathe.ToolResult {
	r.t.Helper()
	b, err := json.Marshal(args)
	if err != nil {
		r.t.Fatal(err)
	}
	work := r.run.Begin(nil, nil)
	msg := lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.ToolCall{Name: name, Arguments: string(b)}}}
	work.Adopt(&msg)
	out := work.Execute(ctx, 1, []tool.Call{{ToolCall: msg.Calls()[0]}}, func(d event.Data) {
		if p, ok := d.(*event.ToolCallProgress); ok {
			r.progress.Store(p)
		}
	})
	for _, m := range out.Messages {
		for _, p := range m.Parts {
			if res, ok := p.(lathe.ToolResult); ok {
				return res
			}
		}
	}
	r.t.Fatalf("%s: no result", name)
	return lathe.ToolResult{}
}

func (r *rig) do(do string) lathe.ToolResult {
	r.t.Helper()
	return r.call("box__any_thing", map[string]any{"do": do})
}

// until waits for a change of the first server's status that satisfies fn.
func (r *rig) until(what string, fn func(Status) bool) Status {
	r.t.Helper()
	s := r.group.servers[0]
	deadline := time.After(time.Minute)
	for {
		s.mu.Lock()
		moved := s.moved
		s.mu.Unlock()
		st := s.Status()
		if fn(st) {
			return st
		}
		select {
		case <-moved:
		case <-time.After(20 * time.Millisecond): // what changes without a change of state
		case <-deadline:
			r.t.Fatalf("%s did not happen: %+v", what, st)
		}
	}
}

func (r *rig) states() map[string]ToolStatus {
	out := map[string]ToolStatus{}
	for _, st := range r.group.Status() {
		for _, t := range st.Tools {
			out[t.Name] = t
		}
	}
	return out
}

// gone reports whether no process of that id is left. A zombie, which its parent has not reaped, counts as gone.
func gone(t testing.TB, pid int) bool {
	t.Helper()
	p, err := os.FindProcess(pid)
	if err != nil || p.Signal(syscall.Signal(0)) != nil {
		return true
	}
	b, err := os.ReadFile(filepath.Join("/proc", itoa(pid), "stat"))
	return err != nil || strings.Contains(string(b), ") Z ")
}

func itoa(n int) string { b, _ := json.Marshal(n); return string(b) }

func wantCode(t testing.TB, res lathe.ToolResult, code lathe.Code) {
	t.Helper()
	if res.Code != code || res.IsError != (code != "") {
		t.Errorf("got code %q and %.300s, want %q", res.Code, res.Content, code)
	}
}
