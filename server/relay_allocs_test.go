//go:build !race

package server_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
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

// answers is a transport that answers each request with the same body.
type answers string

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	_ = r.Body.Close()
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(string(a))), ContentLength: int64(len(a)), Request: r}, nil
}

// maxRelayAllocs is the ceiling of the allocations of a relayed request without those of net/http: of the request's plan, its
// run with four events, the copy of the run in the store, two log lines of the run and one of the request, and about 20 of the test itself.
const maxRelayAllocs = 270 // three are the changes of a relayed request, and 26 what a whole answer has in common with a stream

func TestRelayedRequestAllocatesLittle(t *testing.T) {
	const message = `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"word"},` +
		`"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`
	chat, err := provider.OpenAI("m", &provider.Options{BaseURL: "http://127.0.0.1:1/v1", Transport: answers(message)})
	if err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet()
	if err != nil {
		t.Fatal(err)
	}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.Effects{ReadOnly: lathe.Allow}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := loop.New(chat, runner, nil)
	if err != nil {
		t.Fatal(err)
	}
	kept := store.NewMemory(&store.MemoryOptions{MaxRuns: 64, Share: 4})
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	metrics := observe.NewMetrics(nil)
	eng := newEngine(t, &engine.Options{Store: kept, FlushBeforeEnd: true, Sinks: []event.Sink{metrics, observe.NewSlog(log), observe.NewBus(nil)}, Log: log})
	g, err := server.New(&server.Options{Setup: server.Setup{Models: oneModel{&server.Model{Loop: l}}}, Engine: eng, Metrics: metrics, Log: log,
		Index: kept, Approvals: approval.NewQueue(nil)})
	if err != nil {
		t.Fatal(err)
	}
	body := []byte(ask("m", "Say something.", ""))
	n := testing.AllocsPerRun(200, func() {
		r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", bytes.NewReader(body))
		r.Host, r.RemoteAddr = "127.0.0.1:8700", "127.0.0.1:1024"
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		if w.Code != http.StatusOK || w.Body.String() != message {
			t.Fatalf("%d: %s", w.Code, w.Body)
		}
	})
	if n > maxRelayAllocs {
		t.Errorf("%v allocations, at most %d are allowed", n, maxRelayAllocs)
	}
	t.Logf("%v allocations", n)
}

// The ceilings of what a short request takes beside the sockets, in bytes and allocations: see shortRequest. The collector's work grows with the
// bytes. The figures are those of 2026-11-29, and a tenth more.
func TestShortRequestsAllocateLittle(t *testing.T) {
	const batch = 50
	for _, c := range []struct {
		name          string
		tools, stream bool
		bytes, allocs uint64
	}{
		{"relayed, whole", false, false, 39_000, 246},
		{"relayed, streamed", false, true, 55_500, 288},
		{"with a call, whole", true, false, 90_300, 512},
		{"with a call, streamed", true, true, 93_500, 512},
	} {
		t.Run(c.name, func(t *testing.T) {
			bytes, allocs := leastAllocated(20, batch, shortRequest(t, c.tools, c.stream))
			if bytes > c.bytes || allocs > c.allocs {
				t.Errorf("%d bytes and %d allocations, at most %d and %d are allowed", bytes, allocs, c.bytes, c.allocs)
			}
			t.Logf("%d bytes, %d allocations", bytes, allocs)
		})
	}
}

// leastAllocated returns the bytes and allocations of one request: the least of several batches, since others of the process may allocate
// meanwhile. It uses one processor, because each one has pools of its own.
func leastAllocated(batches, batch int, request func()) (bytes, allocs uint64) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	bytes, allocs = math.MaxUint64, math.MaxUint64
	for range batches {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range batch {
			request()
		}
		runtime.ReadMemStats(&after)
		bytes, allocs = min(bytes, (after.TotalAlloc-before.TotalAlloc)/uint64(batch)), min(allocs, (after.Mallocs-before.Mallocs)/uint64(batch))
	}
	return bytes, allocs
}

// The ceilings of what a request with a long history takes beside the sockets, in bytes for a byte of the body and allocations: see
// historyForm. The figures are those of 2026-11-29 and a tenth more; that of Gemini includes the search for the places of what was left out.
func TestLongHistoriesAllocateLittle(t *testing.T) {
	for _, c := range []struct {
		wire   string
		tools  bool
		bytes  float64
		allocs uint64
	}{
		{"chat", false, 5.6, 11_500},
		{"chat", true, 6.0, 13_500},
		{"messages", true, 6.3, 16_600},
		{"responses", true, 6.5, 19_000},
		{"gemini", true, 8.2, 24_300},
	} {
		t.Run(fmt.Sprintf("%s, tools %v", c.wire, c.tools), func(t *testing.T) {
			request, size := historyRequest(t, c.wire, c.tools, 500_000)
			bytes, allocs := leastAllocated(10, 1, request)
			ratio := float64(bytes) / float64(size)
			if ratio > c.bytes || allocs > c.allocs {
				t.Errorf("%.2f bytes for a byte and %d allocations, at most %.2f and %d are allowed", ratio, allocs, c.bytes, c.allocs)
			}
			t.Logf("%.2f bytes for a byte, %d allocations", ratio, allocs)
		})
	}
}
