package agents

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// lathe builds the command once for all tests.
var lathe = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "lathe-agents-")
	if err != nil {
		return "", err
	}
	buildDir = dir
	bin := filepath.Join(dir, "lathe")
	return bin, Build(bin, "./cmd/lathe")
})

// buildDir is the folder of the command; "" until it is built.
var buildDir string

// TestMain removes the command that was built.
func TestMain(m *testing.M) {
	code := m.Run()
	if buildDir != "" {
		_ = os.RemoveAll(buildDir) // a temporary folder
	}
	os.Exit(code)
}

// A server is a `lathe serve` process with a store, which can be killed and started again at the same address.
type server struct {
	bin, dir, addr string
	cmd            *exec.Cmd
	base           string // without a path

	mu  sync.Mutex
	log strings.Builder
}

// startServer starts `lathe serve` with a configuration.
func startServer(t *testing.T, config string) *server {
	t.Helper()
	bin, err := lathe()
	if err != nil {
		t.Fatal(err)
	}
	s := &server{bin: bin, dir: t.TempDir(), addr: "127.0.0.1:0"}
	if err := os.WriteFile(filepath.Join(s.dir, "lathe.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			s.mu.Lock()
			defer s.mu.Unlock()
			t.Logf("lathe serve:\n%s", s.log.String())
		}
	})
	s.start(t)
	return s
}

var serves = regexp.MustCompile(`http://(127\.0\.0\.1:\d+)/v1`)

// start starts the process and returns when it listens.
func (s *server) start(t *testing.T) {
	t.Helper()
	s.cmd = exec.Command(s.bin, "serve", "--config", "lathe.yaml", "--addr", s.addr, "--store", "sqlite:runs.db")
	s.cmd.Dir, s.cmd.Env = s.dir, append(os.Environ(), KeyEnv+"="+Key)
	stderr, err := s.cmd.StderrPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	listens := make(chan string, 1)
	go func() {
		defer close(listens)
		sc := bufio.NewScanner(stderr)
		for sc.Scan() {
			s.mu.Lock()
			fmt.Fprintln(&s.log, sc.Text())
			s.mu.Unlock()
			if m := serves.FindStringSubmatch(sc.Text()); m != nil {
				select {
				case listens <- m[1]:
				default:
				}
			}
		}
	}()
	select {
	case addr, ok := <-listens:
		if !ok {
			t.Fatal("lathe serve ended before it listened")
		}
		s.addr, s.base = addr, "http://"+addr
	case <-time.After(30 * time.Second):
		t.Fatal("lathe serve did not print its address")
	}
}

// kill ends the process without letting it finish anything.
func (s *server) kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill() // an error: it has ended
		_ = s.cmd.Wait()         // it was killed
		s.cmd = nil
	}
}

// A run is what the test reads of one.
type run struct {
	ID     string `json:"run_id"`
	Status string `json:"status"`
	Reason string `json:"reason"`
}

// runs returns the runs of the store, the newest first.
func (s *server) runs(t *testing.T) []run {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.base+"/api/runs", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+Key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Data []run }
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return list.Data
}
