package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"github.com/lathe-run/lathe/engine/temporal"
)

// serverEnv names the program of a Temporal server; see `make temporal`.
const serverEnv = "LATHE_TEMPORAL_SERVER"

// asProgram makes the test binary the program itself.
const asProgram = "LATHE_TEMPORAL_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// startProgram starts a program, and returns what follows mark in the first line of its output that has it.
func startProgram(t *testing.T, stderr bool, mark string, cmd *exec.Cmd) (rest string) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if stderr {
		out, err = cmd.StderrPipe()
	}
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, rest, found := strings.Cut(lines.Text(), mark); found {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return rest
		}
	}
	t.Fatalf("%s has ended", cmd.Path)
	return ""
}

// serveWeather executes the activity weather on the task queue of that name.
func serveWeather(t *testing.T, address string) {
	t.Helper()
	c, err := client.DialContext(t.Context(), client.Options{HostPort: address, Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	w := worker.New(c, "weather", worker.Options{})
	w.RegisterActivityWithOptions(func(_ context.Context, in *temporal.CallInput) (*temporal.CallResult, error) {
		if string(in.Arguments) != `{"city":"Oslo"}` {
			return nil, errors.New("other arguments")
		}
		return &temporal.CallResult{Data: json.RawMessage(`{"degrees":4,"station":"x"}`)}, nil
	}, activity.RegisterOptions{Name: "weather"})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
}

// A run is begun, watched while it is executed, and approved in a gateway that was killed in between; its events have no gap. Another
// run calls a tool on a task queue that the configuration declares.
func TestRealGateway(t *testing.T) {
	binary := os.Getenv(serverEnv)
	if binary == "" {
		t.Skip("no Temporal server: run `make temporal`, which builds one")
	}
	dir := t.TempDir()
	address := startProgram(t, false, "", exec.CommandContext(t.Context(), binary, "-db", filepath.Join(dir, "temporal.db"), "-address", "127.0.0.1:0"))
	for name, content := range map[string]string{
		"lathe.yaml":  "policy: {tools: {calculator: ask}}\nsim: {scripts: {weather: weather.txt}}\n" + weatherTool,
		"weather.txt": "-- turn --\ncall: weather {\"city\":\"Oslo\"}\n-- turn --\nexpect: {\"degrees\":4}\ntext: It is 4.\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	serveWeather(t, address)
	gateway := func() (base string, process *os.Process) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), os.Args[0], "serve", "--engine", "temporal://"+address+"/default", "--store", "sqlite:runs.db", "--addr", "127.0.0.1:0", "--log", "warn")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), asProgram+"=1")
		rest := startProgram(t, true, "lathe serves on ", cmd)
		base, _, _ = strings.Cut(rest, "/v1")
		return base, cmd.Process
	}
	do := func(method, url, body string, into any) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		b, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode >= 300 || json.Unmarshal(b, into) != nil {
			t.Fatalf("%s %s: %d %s, %v", method, url, resp.StatusCode, b, err)
		}
	}
	type run struct {
		ID       string `json:"run_id"`
		Status   string `json:"status"`
		Executor string `json:"executor"`
		Answer   string `json:"answer"`
		Last     int    `json:"last_event_id"`
		Open     []struct {
			ID     string `json:"tool_call_id"`
			Digest string `json:"args_digest"`
		} `json:"open_calls"`
	}
	until := func(base, id, status string) (r run) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; {
			if do("GET", base+"/api/runs/"+id, "", &r); r.Status == status {
				return r
			}
			if time.Now().After(end) {
				t.Fatalf("the run is %s, want %s", r.Status, status)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	base, process := gateway()
	var r run
	do("POST", base+"/api/runs", `{"model":"sim/demo","prompt":"What is 7 + 35?"}`, &r)
	r = until(base, r.ID, "parked")
	if r.Executor != "temporal" || len(r.Open) != 1 {
		t.Fatalf("%+v", r)
	}
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	base, _ = gateway()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/api/runs/"+r.ID+"/events", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	watch, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = watch.Body.Close() }()
	var decided run
	do("POST", base+"/api/runs/"+r.ID+"/approvals/"+r.Open[0].ID, `{"decision":"approve","digest":"`+r.Open[0].Digest+`"}`, &decided)
	events := 0
	for lines := bufio.NewScanner(watch.Body); lines.Scan(); { // the stream ends with the run
		if strings.HasPrefix(lines.Text(), "id: ") {
			events++
		}
	}
	if r = until(base, r.ID, "completed"); !strings.Contains(r.Answer, "42") || events != r.Last {
		t.Errorf("%d events of %+v", events, r)
	}
	do("POST", base+"/api/runs", `{"model":"sim/script-weather","prompt":"How cold is it in Oslo?"}`, &r)
	if r = until(base, r.ID, "completed"); r.Executor != "temporal" || r.Answer != "It is 4." {
		t.Errorf("%+v", r)
	}
}
