package server_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
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

// conversation returns a request whose messages have about size bytes in messages of half a kilobyte: questions, calls of a
// tool of the client, their results, and answers.
func conversation(size int) string {
	var b strings.Builder
	b.WriteString(`{"model":"m","stream":true,"tools":[` + weatherTool + `],"messages":[{"role":"system","content":"Be brief."}`)
	text := strings.Repeat(`All work and no play \"makes\" Jack a dull boy.\n`, 12)
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, `,{"role":"user","content":"%d %s"},`, i, text)
		fmt.Fprintf(&b, `{"role":"assistant","content":null,"tool_calls":[{"id":"call_%d","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Oslo\",\"note\":\"%s\"}"}}]},`,
			i, strings.Repeat("north ", 60))
		fmt.Fprintf(&b, `{"role":"tool","tool_call_id":"call_%d","content":"%s"},{"role":"assistant","content":"%s"}`, i, text, text)
	}
	b.WriteString(`,{"role":"user","content":"And now?"}]}`)
	return b.String()
}

// The cost of a request grows with its history: bytes per second of requests that are relayed, and of requests that make a run
// with tools of this server. Sockets are not part of it.
func BenchmarkHistory(b *testing.B) {
	stream := chunk(roleChunk, "null") + strings.Repeat(chunk(`{"content":"word "}`, "null"), 5) + chunk(`{}`, `"stop"`) + usageChunk + "data: [DONE]\n\n"
	up := transportFunc(func(r *http.Request) (*http.Response, error) {
		_, err := io.Copy(io.Discard, r.Body)
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(stream)), Request: r}, err
	})
	for _, mode := range []string{"relayed", "tools"} {
		for _, size := range []int{10_000, 100_000, 1_000_000, 5_000_000} {
			b.Run(fmt.Sprintf("%s/%dKB", mode, size/1000), func(b *testing.B) {
				h := historyServer(b, up, mode == "tools")
				body := conversation(size)
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				for b.Loop() {
					r := httptest.NewRequest("POST", "http://localhost/v1/chat/completions", strings.NewReader(body))
					r.Header.Set("Content-Type", "application/json")
					w := httptest.NewRecorder()
					h.ServeHTTP(w, r)
					if w.Code != 200 {
						b.Fatal(w.Code, w.Body)
					}
				}
			})
		}
	}
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func historyServer(b *testing.B, up http.RoundTripper, withTools bool) http.Handler {
	b.Helper()
	chat, err := provider.OpenAI("m", &provider.Options{BaseURL: "http://127.0.0.1:1/v1", Transport: up})
	if err != nil {
		b.Fatal(err)
	}
	var own []lathe.Tool
	if withTools {
		own = append(own, tool.Func("now", "The time.", func(context.Context, struct{}) (string, error) { return "noon", nil }, &tool.FuncOptions{Effect: lathe.ReadOnly, Show: []string{"*"}}))
	}
	set, err := tool.NewSet(own...)
	if err != nil {
		b.Fatal(err)
	}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.Effects{ReadOnly: lathe.Allow}})
	if err != nil {
		b.Fatal(err)
	}
	l, err := loop.New(chat, runner, nil)
	if err != nil {
		b.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	metrics, kept := observe.NewMetrics(nil), store.NewMemory(nil)
	eng := newEngine(b, &engine.Options{Store: kept, Sinks: []event.Sink{metrics, observe.NewSlog(log), observe.NewBus(nil)}, Log: log})
	setup := server.Setup{Models: oneModel{&server.Model{Loop: l}}}
	if withTools {
		setup.Tools = &tools{set, runner}
	}
	g, err := server.New(&server.Options{Setup: setup, Engine: eng, Supervisor: newSupervisor(b, eng), Index: kept, Metrics: metrics, Log: log})
	if err != nil {
		b.Fatal(err)
	}
	return g
}
