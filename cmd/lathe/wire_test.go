package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/gemini"
	"github.com/lathe-run/lathe/internal/wire/messages"
	"github.com/lathe-run/lathe/internal/wire/openai"
	"github.com/lathe-run/lathe/internal/wire/responses"
	"github.com/lathe-run/lathe/internal/wire/wiretest"
	"github.com/lathe-run/lathe/sim"
)

// servedWires are the wires by their words in the configuration.
var servedWires = map[string]wire.Served{"openai": openai.Served{}, "responses": responses.Codec{}, "anthropic": messages.Codec{}, "gemini": gemini.Codec{}}

// TestRunOnEveryWire: `lathe run` calls two tools and answers, and the doctor finds nothing broken, with a model on each wire.
func TestRunOnEveryWire(t *testing.T) {
	t.Parallel()
	for name, served := range servedWires {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(wiretest.Handler(served, sim.New(nil).Model(sim.DemoModel), "", ""))
			t.Cleanup(srv.Close)
			lathe := func(args ...string) (string, int) {
				var out, errs strings.Builder
				code := run(t.Context(), append(args, "--base-url", srv.URL, "--wire", name, "--model", sim.DemoModel), strings.NewReader(""), &out, &errs)
				return out.String() + errs.String(), code
			}
			if out, code := lathe("run", "-q", twoTools); code != exitOK || !strings.Contains(out, "7 + 35 = 42.") || !strings.Contains(out, "time in Tokyo") {
				t.Errorf("exit code %d: %s", code, out)
			}
			if out, code := lathe("doctor", "-q"); code != exitOK {
				t.Errorf("doctor: exit code %d: %s", code, out)
			}
		})
	}
}

// TestServeEachWireByEach: a client of each wire gets the answer of a run with a tool of the server, whose model is behind each
// wire.
func TestServeEachWireByEach(t *testing.T) {
	t.Parallel()
	for name, served := range servedWires {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(wiretest.Handler(served, sim.New(nil).Model(sim.DemoModel), "", ""))
			t.Cleanup(srv.Close)
			base := serveUpstream(t, "--base-url", srv.URL, "--wire", name, "--model", sim.DemoModel)
			for path, body := range map[string]string{
				"/v1/chat/completions": `{"model":"sim/demo","messages":[{"role":"user","content":"What is 7 + 35?"}]}`,
				"/v1/responses":        `{"model":"sim/demo","input":"What is 7 + 35?"}`,
				"/v1/messages":         `{"model":"sim/demo","max_tokens":99,"messages":[{"role":"user","content":"What is 7 + 35?"}]}`,
				"/v1beta/models/sim%2Fdemo:generateContent": `{"contents":[{"role":"user","parts":[{"text":"What is 7 + 35?"}]}]}`,
			} {
				resp, err := http.Post(base+path, "application/json", strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				b, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(b), "7 + 35 = 42.") {
					t.Errorf("%s: %d %s", path, resp.StatusCode, b)
				}
			}
		})
	}
}

// serveUpstream starts `lathe serve` in this process and returns the address of it, without a path.
func serveUpstream(t *testing.T, flags ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	pr, pw := io.Pipe()
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, append([]string{"serve", "--addr", "127.0.0.1:0"}, flags...), strings.NewReader(""), pw, pw)
		_ = pw.Close() // always nil
	}()
	lines, base := bufio.NewScanner(pr), ""
	for base == "" && lines.Scan() {
		if strings.Contains(lines.Text(), "serves on") {
			base = strings.TrimSuffix(baseURL.FindString(lines.Text()), "/v1")
		}
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(io.Discard, pr) // ends with pw
	}()
	t.Cleanup(func() {
		cancel()
		if code := <-done; code != exitOK {
			t.Errorf("serve ended with %d", code)
		}
		<-drained
	})
	if base == "" {
		t.Fatal("serve did not say where it serves")
	}
	return base
}
