package main

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A worker serves its metrics, and says that it is not ready while no gateway is connected.
func TestWorkerServesMetrics(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "worker.yaml"), []byte("tools: {builtin: all}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), lathePath(t), "worker", "--config", "worker.yaml", "--connect", "http://127.0.0.1:1", "--metrics-addr", "127.0.0.1:0")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "LATHE_WORKER_TOKEN=0123456789abcdef")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	url := ""
	for url == "" && lines.Scan() {
		url = regexp.MustCompile(`http://[0-9.:]+/metrics`).FindString(lines.Text())
	}
	for path, want := range map[string]struct {
		status int
		text   string
	}{"/metrics": {200, `lathe_worker_connected{fleet=""} 0`}, "/livez": {200, "ok"}, "/readyz": {503, "not connected"}, "/healthz": {503, "not connected"}, "/other": {404, ""}} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(url, "/metrics")+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != want.status || !strings.Contains(string(b), want.text) {
			t.Errorf("%s: %d %s, %v", path, resp.StatusCode, b, err)
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, stderr) // to its end
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}
