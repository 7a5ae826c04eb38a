package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lathe-run/lathe/sim"
)

// An evaluation that was interrupted goes on where it stopped, and asks nothing twice.
func TestEvalGoesOnAfterAnInterrupt(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	var requests atomic.Int64
	served := sim.New(nil).Handler()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) == 5 { // in the second run
			_, _ = io.Copy(io.Discard, r.Body) // only then the server sees that the client is gone
			interrupt()
			<-r.Context().Done()
			return
		}
		served.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	dir := t.TempDir()
	args := []string{"eval", "-q", "--base-url", srv.URL + "/v1", "--model", "sim/eval", "--scenario", "happy_path", "--trials", "3", "--jobs", "1", "--out", dir}
	var errw strings.Builder
	if code := run(ctx, args, strings.NewReader(""), io.Discard, &errw); code != exitInterrupted || !strings.Contains(errw.String(), "give the same --out with --resume") {
		t.Fatalf("exit code %d, want %d: %s", code, exitInterrupted, errw.String())
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("%v, %v: want the one run that was finished", entries, err)
	}
	requests.Store(100)
	var out strings.Builder
	if code := run(t.Context(), args, strings.NewReader(""), io.Discard, &errw); code != exitUsage || requests.Load() != 100 || !strings.Contains(errw.String(), "give --resume") {
		t.Fatalf("a folder with results, without --resume: exit code %d: %s", code, errw.String())
	}
	if code := run(t.Context(), append(args, "--resume"), strings.NewReader(""), &out, &errw); code != exitOK {
		t.Fatalf("exit code %d: %s%s", code, out.String(), errw.String())
	}
	if n := requests.Load() - 100; n != 6 || !strings.Contains(out.String(), "3/3") {
		t.Errorf("%d requests, want 3 for each of 2 runs; %s", n, out.String())
	}
}

// A strategy says which transforms are there. What an entry adds to requests is always there, and makes a
// run another one.
func TestEvalSendsTheSettingsOfTheEntry(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var sent strings.Builder
	served := sim.New(nil).Handler()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		sent.Write(body)
		mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		served.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	dir := t.TempDir()
	path := filepath.Join(dir, "lathe.yaml")
	into := func(strategy, seed string) (code int, output string) {
		entry := fmt.Sprintf("models: {m: {profile: deepseek, base_url: %q, model: sim/eval, request_overrides: {seed: %s}, "+
			"transforms: {tool: [openai_tools_strip_function_descriptions]}}}", srv.URL+"/v1", seed)
		if err := os.WriteFile(path, []byte(entry), 0o600); err != nil {
			t.Fatal(err)
		}
		sent.Reset()
		var errw strings.Builder
		args := []string{"eval", "-q", "--config", path, "--model", "m", "--scenario", "happy_path", "--strategy", strategy, "--resume", "--out", filepath.Join(dir, "out")}
		return run(t.Context(), args, strings.NewReader(""), io.Discard, &errw), errw.String()
	}
	measure := func(strategy, seed string) string {
		if code, output := into(strategy, seed); code != exitOK {
			t.Fatalf("%s: exit code %d: %s", strategy, code, output)
		}
		return sent.String()
	}
	for _, c := range []struct {
		strategy         string
		profile, entries bool // their transforms are there
	}{{"raw", false, false}, {"baseline", true, false}, {"production", true, true}} {
		got := measure(c.strategy, "7")
		if has := strings.Contains(got, `"reasoning_content":""`); has != c.profile {
			t.Errorf("%s: the profile's transform is there: %v", c.strategy, has)
		}
		if has := !strings.Contains(got, "Change the draft of the workspace."); has != c.entries {
			t.Errorf("%s: the entry's transform is there: %v", c.strategy, has)
		}
		if !strings.Contains(got, `"seed":7`) {
			t.Errorf("%s: request_overrides are not sent: %s", c.strategy, got)
		}
	}
	if got := measure("production", "7"); got != "" {
		t.Error("a finished run was made again")
	}
	if code, output := into("production", "8"); code != exitHarness || !strings.Contains(output, "choose another folder") {
		t.Errorf("other request_overrides: exit code %d, %s", code, output)
	}
}

// A key is in none of the files that an evaluation writes, even where the server echoes it.
func TestEvalWritesNoKey(t *testing.T) {
	t.Parallel()
	const key = "sk-canary-0123456789abcdef"
	var asked atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Authorization"), key) {
			asked.Add(1)
		}
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"error":{"message":"Incorrect API key provided: %s","code":"invalid_api_key"}}`, key)
	}))
	t.Cleanup(srv.Close)
	dir := t.TempDir()
	keyFile := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(keyFile, []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errw strings.Builder
	args := []string{"eval", "--base-url", srv.URL + "/v1", "--model", "m", "--key-file", keyFile, "--scenario", "happy_path",
		"--out", filepath.Join(dir, "out"), "--record", filepath.Join(dir, "tapes")}
	if code := run(t.Context(), args, strings.NewReader(""), &out, &errw); code != exitFailed || asked.Load() == 0 {
		t.Fatalf("exit code %d, asked %d times with the key", code, asked.Load())
	}
	files := 0
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		b, err := os.ReadFile(path)
		if strings.Contains(string(b), key) {
			t.Errorf("%s holds the key", path)
		}
		return err
	})
	if err != nil || files != 5 || strings.Contains(out.String()+errw.String(), key) {
		t.Errorf("%v, %d files, want 5; said %s%s", err, files, out.String(), errw.String())
	}
}
