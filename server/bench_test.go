package server_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/observe"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/tool"
)

// One model, whatever its name.
type oneModel struct{ m *server.Model }

func (o oneModel) Names() []string                     { return []string{"m"} }
func (o oneModel) Model(string) (*server.Model, error) { return o.m, nil }

// What the gateway adds to a request that it relays, over loopback on both sides: the request log, the events
// and the metrics are on.
func BenchmarkRelay(b *testing.B) {
	message := `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"` +
		strings.Repeat("word ", 50) + `"},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":50,"total_tokens":150}}`
	stream := chunk(roleChunk, "null") + strings.Repeat(chunk(`{"content":"word "}`, "null"), 50) + chunk(`{}`, `"stop"`) + usageChunk + "data: [DONE]\n\n"
	for name, more := range map[string]string{"whole": "", "stream": `,"stream":true`} {
		b.Run(name, func(b *testing.B) {
			up := listen(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if more != "" {
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = io.WriteString(w, stream)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, message)
			}))
			g := benchGateway(b, &provider.Options{BaseURL: up + "/v1"}, false, false)
			url := listen(b, g) + "/v1/chat/completions"
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
			defer client.CloseIdleConnections()
			body := []byte(ask("m", strings.Repeat("Say something. ", 20), more))
			b.ReportAllocs()
			for b.Loop() {
				resp, err := client.Post(url, "application/json", bytes.NewReader(body))
				if err != nil {
					b.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		})
	}
}

// benchGateway returns a server whose one model is at the provider's address, with the request log, the events and the metrics on.
// withTools adds a tool that each key may use, so that requests are not relayed. With keepRuns the runs are kept in memory.
func benchGateway(tb testing.TB, opts *provider.Options, withTools, keepRuns bool) http.Handler {
	tb.Helper()
	chat, err := provider.OpenAI("m", opts)
	if err != nil {
		tb.Fatal(err)
	}
	var own []lathe.Tool
	if withTools {
		own = append(own, tool.Func("now", "The time.", func(context.Context, struct{}) (string, error) { return "noon", nil }, &tool.FuncOptions{Effect: lathe.ReadOnly, Show: []string{"*"}}))
	}
	set, err := tool.NewSet(own...)
	if err != nil {
		tb.Fatal(err)
	}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.Effects{ReadOnly: lathe.Allow}})
	if err != nil {
		tb.Fatal(err)
	}
	l, err := loop.New(chat, runner, nil)
	if err != nil {
		tb.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	metrics := observe.NewMetrics(nil)
	engineOptions := &engine.Options{Sinks: []event.Sink{metrics, observe.NewSlog(log), observe.NewBus(nil)}, Log: log}
	o := &server.Options{Setup: server.Setup{Models: oneModel{&server.Model{Loop: l}}}, Metrics: metrics, Log: log}
	if withTools {
		o.Setup.Tools = &tools{set, runner}
	}
	if keepRuns {
		kept := store.NewMemory(nil)
		engineOptions.Store, o.Index = kept, kept
	}
	o.Engine = newEngine(tb, engineOptions)
	if keepRuns {
		o.Supervisor = newSupervisor(tb, o.Engine)
	}
	g, err := server.New(o)
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

func listen(b *testing.B, h http.Handler) string {
	b.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	srv := &http.Server{Handler: h}
	var done sync.WaitGroup
	done.Go(func() { _ = srv.Serve(ln) })
	b.Cleanup(func() {
		_ = srv.Close()
		done.Wait()
	})
	return "http://" + ln.Addr().String()
}
