package main

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/audit"
)

// The line of a call is on the disk before the tool is called: a process that is killed in the middle of the call leaves
// it, and the process that resumes the run continues the same chain.
func TestT36_AuditedBeforeTheCall(t *testing.T) {
	t.Parallel()
	path := lathePath(t)
	w := &world{keys: map[string][]string{}, called: make(chan string, 1), freed: make(chan struct{})}
	srv := httptest.NewServer(w)
	t.Cleanup(srv.Close)
	t.Cleanup(func() { close(w.freed) })
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("lathe.yaml", fmt.Sprintf(`audit: {path: audit.jsonl}
tools:
  egress: {private: [127.0.0.1]}
  http:
    act: {description: Acts., url: "%s/act", method: POST, effect: writes, allowlist: ["*"], max_attempts: 1}
policy: {tools: {act: allow}}
`, srv.URL))
	turns := write("turns.txt", "-- turn --\ncall: act {}\n-- turn --\ntext: Done.\n")
	lathe1 := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), path, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "LATHE_STORE=sqlite:"+filepath.Join(dir, "runs.db"))
		return cmd
	}
	victim := lathe1("run", "-q", "--model", "sim/script", "--script", turns, "Act.")
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	<-w.called // by now the line is there
	log := filepath.Join(dir, "audit.jsonl")
	calls := func() (n int, last audit.Entry) {
		for e, err := range audit.Lines(log) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == audit.OfCall {
				n++
			}
			last = e
		}
		return n, last
	}
	if n, last := calls(); n != 1 || last.Call == nil || last.Call.Tool != "act" || last.Call.Decision != "allow" {
		t.Errorf("%d calls, then %s", n, last.Raw)
	}
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = victim.Wait() // it was killed
	id := onlyRun(t, dir, "running")
	if out, err := lathe1("runs", "resume", "-q", "--model", "sim/script", "--script", turns, id).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	n, last := calls() // a call that writes is not made again
	if fields, err := last.Fields(); err != nil || n != 1 || fields.Type != "RunFinished" || fields.RunID != id {
		t.Errorf("%d calls, then %s, %v", n, last.Raw, err)
	}

	// Where the log was cut off, nothing is done.
	if err := os.WriteFile(log, []byte("{\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	out, err := lathe1("run", "-q", "--model", "sim/script", "--script", turns, "Act.").CombinedOutput()
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(string(out), "last line is damaged") {
		t.Errorf("%v: %s", err, out)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.keys["/act"]); n != 1 {
		t.Errorf("the tool was called %d times", n)
	}
}
