package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/store/sqlite"
)

// A world is a server whose endpoints tools call. The first call to each hangs until the test ends
// it: that is when the process is killed.
type world struct {
	mu     sync.Mutex
	keys   map[string][]string // idempotency keys by path, in the order of the calls
	called chan string
	freed  chan struct{}
}

func (w *world) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	w.keys[r.URL.Path] = append(w.keys[r.URL.Path], r.Header.Get("Idempotency-Key"))
	first := len(w.keys[r.URL.Path]) == 1
	w.mu.Unlock()
	if first {
		w.called <- r.URL.Path
		<-w.freed
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	fmt.Fprint(rw, `{"done":true}`)
}

// A process is killed while it waits for a tool. The next one goes on: what writes is not called
// again and answered `interrupted`, what reads or is idempotent is called again, under the same key.
func TestKilledInTheMiddleOfACall(t *testing.T) {
	t.Parallel()
	path := lathePath(t)
	for effect, want := range map[string]string{"read_only": "ok", "idempotent": "ok", "writes": "interrupted"} {
		t.Run(effect, func(t *testing.T) {
			t.Parallel()
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
			method := "GET"
			if effect != "read_only" {
				method = "POST"
			}
			write("lathe.yaml", fmt.Sprintf(`tools:
  egress: {private: [127.0.0.1]}
  http:
    act: {description: Acts., url: "%s/act", method: %s, effect: %s, allowlist: ["*"], max_attempts: 1}
policy: {tools: {act: allow}}
`, srv.URL, method, effect))
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
			<-w.called
			if err := victim.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = victim.Wait() // it was killed
			id := onlyRun(t, dir, "running")
			out, err := lathe1("runs", "resume", "-q", "--model", "sim/script", "--script", turns, id).CombinedOutput()
			if err != nil || strings.TrimSpace(string(out)) != "Done." {
				t.Fatalf("%v: %s", err, out)
			}
			if onlyRun(t, dir, "completed") != id {
				t.Error("another run was completed")
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			keys := w.keys["/act"]
			if n := len(keys); (n == 1) != (want == "interrupted") || n > 2 {
				t.Errorf("the tool was called %d times", n)
			}
			if effect == "idempotent" && (keys[0] == "" || keys[0] != keys[1]) {
				t.Errorf("keys %q", keys)
			}
			if got := outcome(t, dir, id); got != want {
				t.Errorf("the call was answered %q, want %q", got, want)
			}
			again, err := lathe1("runs", "resume", "--model", "sim/script", "--script", turns, id).CombinedOutput()
			if err == nil || !strings.Contains(string(again), "the run has ended") {
				t.Errorf("resumed twice: %v, %s", err, again)
			}
		})
	}
}

func kept(t *testing.T, dir string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(filepath.Join(dir, "runs.db"), &sqlite.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func onlyRun(t *testing.T, dir, status string) string {
	t.Helper()
	rows, _, err := kept(t, dir).Runs(t.Context(), &store.RunFilter{Status: status})
	if err != nil || len(rows) != 1 {
		t.Fatalf("%d runs %s, %v", len(rows), status, err)
	}
	return rows[0].RunID
}

// outcome returns how the only call of the run was answered, once, in a log without gaps.
func outcome(t *testing.T, dir, id string) (status string) {
	t.Helper()
	s := kept(t, dir)
	if _, err := engine.ReadState(t.Context(), s, id); err != nil {
		t.Fatal(err)
	}
	for e, err := range s.Read(t.Context(), id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if r, ok := e.Data.(*event.ToolCallResult); ok {
			if status != "" {
				t.Error("the call was answered twice")
			}
			if status = r.Status; r.ErrorType != "" {
				status = string(r.ErrorType)
			}
		}
	}
	return status
}
