package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lathe-run/lathe/internal/testdata"
)

// A collector keeps what is posted to it.
type collector struct {
	mu    sync.Mutex
	paths []string
	spans []map[string]any
	text  strings.Builder
}

func (c *collector) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body) // what is missing shows
	var in struct {
		ResourceSpans []struct {
			ScopeSpans []struct{ Spans []map[string]any }
		}
	}
	_ = json.Unmarshal(b, &in)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paths = append(c.paths, r.URL.Path+" "+r.Header.Get("X-Key"))
	c.text.Write(b)
	for _, rs := range in.ResourceSpans {
		for _, ss := range rs.ScopeSpans {
			c.spans = append(c.spans, ss.Spans...)
		}
	}
}

// got returns the names of the spans that came, and the spans.
func (c *collector) got() (string, []map[string]any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for _, s := range c.spans {
		names = append(names, s["name"].(string))
	}
	return strings.Join(names, ", "), slices.Clone(c.spans)
}

// lathePath returns the path of the command, which is this test's program. A short run skips the test: it starts processes.
func lathePath(t *testing.T) string {
	t.Helper()
	testdata.NeedLong(t)
	path, err := exec.LookPath("lathe")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A run sends its spans where the configuration or the environment says, and nothing where neither does.
func TestSpansAreSentOnDemand(t *testing.T) {
	t.Parallel()
	c := &collector{}
	srv := httptest.NewServer(c)
	t.Cleanup(srv.Close)
	for _, tt := range []struct {
		env  []string
		want int
	}{
		{nil, 0},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + srv.URL, "OTEL_SDK_DISABLED=true"}, 0},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + srv.URL + "/", "OTEL_EXPORTER_OTLP_HEADERS=x-key=a%20b"}, 4},
		{[]string{"LATHE_TELEMETRY_OTLP_ENDPOINT=" + srv.URL}, 8},
	} {
		cmd := exec.CommandContext(t.Context(), lathePath(t), "run", "-q", "What is 7 + 35?")
		cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), tt.env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if names, spans := c.got(); len(spans) != tt.want || tt.want > 0 && !strings.Contains(names, "chat sim/demo, execute_tool calculator, chat sim/demo, invoke_agent") {
			t.Errorf("%v: %d spans: %s", tt.env, len(spans), names)
		}
	}
	c.mu.Lock()
	if c.paths[0] != "/v1/traces a b" || strings.Contains(c.text.String(), "7 + 35") {
		t.Errorf("%q: %s", c.paths, c.text.String())
	}
	c.mu.Unlock()
	cmd := exec.CommandContext(t.Context(), lathePath(t), "run", "Hi.")
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "OTEL_EXPORTER_OTLP_ENDPOINT=localhost:4318")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "OTEL_EXPORTER_OTLP_ENDPOINT: want the URL of a collector") {
		t.Errorf("%v: %s", err, out)
	}
}

// The gateway's spans are below the caller's, and its log may be JSON.
func TestDaemonTakesPartInTraces(t *testing.T) {
	t.Parallel()
	c := &collector{}
	srv := httptest.NewServer(c)
	t.Cleanup(srv.Close)
	cmd := exec.CommandContext(t.Context(), lathePath(t), "serve", "--addr", "127.0.0.1:0", "--log-format", "json")
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "OTEL_EXPORTER_OTLP_ENDPOINT="+srv.URL)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	output := bufio.NewScanner(stderr)
	url := ""
	for url == "" && output.Scan() {
		url = regexp.MustCompile(`http://[0-9.:]+/v1`).FindString(output.Text())
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/chat/completions", strings.NewReader(`{"model":"sim/demo","messages":[{"role":"user","content":"What is 7 + 35?"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	lines := 0
	for output.Scan() {
		var line struct{ Msg string }
		if json.Unmarshal(output.Bytes(), &line) == nil && line.Msg == "run finished" {
			lines++
		}
	}
	_ = cmd.Wait() // it was interrupted
	names, spans := c.got()
	if len(spans) != 4 || lines != 1 {
		t.Fatalf("%s; %d lines", names, lines)
	}
	for _, s := range spans {
		if s["traceId"] != "0af7651916cd43dd8448eb211c80319c" || s["name"] == "invoke_agent" && s["parentSpanId"] != "b7ad6b7169203331" {
			t.Errorf("%v", s)
		}
	}
}
