package provider_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/provider"
)

// A canned transport answers in this process and allocates nothing but what a transport must: the response.
type canned struct {
	body   string
	header http.Header
	reader cannedBody
}

type cannedBody struct{ strings.Reader }

func (*cannedBody) Close() error { return nil }

func (c *canned) RoundTrip(r *http.Request) (*http.Response, error) {
	var buf [512]byte
	for {
		if _, err := r.Body.Read(buf[:]); err != nil {
			break
		}
	}
	r.Body.Close()
	c.reader.Reset(c.body)
	return &http.Response{StatusCode: 200, Header: c.header, Body: &c.reader}, nil
}

func cannedStream(tokens int) *canned {
	var b strings.Builder
	for range tokens {
		b.WriteString(data(text("token ")))
	}
	b.WriteString(data(finished("stop"), usage, done))
	return &canned{body: b.String(), header: http.Header{"Content-Type": {"text/event-stream"}}}
}

func cannedCall(pieces int) *canned {
	var b strings.Builder
	b.WriteString(data(chunk(callHead), args(`{\"text\":\"`)))
	for range pieces {
		b.WriteString(data(args("0123456789abcdef")))
	}
	b.WriteString(data(args(`\"}`), finished("tool_calls"), usage, done))
	return &canned{body: b.String(), header: http.Header{"Content-Type": {"text/event-stream"}}}
}

func cannedJSON() *canned {
	return &canned{body: `{"id":"r","object":"chat.completion","created":1,"model":"m-1","choices":[{"index":0,"message":{"role":"assistant","content":"Hello, how are you?"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}`,
		header: http.Header{"Content-Type": {"application/json"}}}
}

func drain(t testing.TB, ctx context.Context, m lathe.Model, r *lathe.Request) int {
	n := 0
	for _, err := range m.Generate(ctx, r) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

var benchTools = []*lathe.ToolSpec{{Name: "add", Description: "Adds two numbers.",
	Schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"]}`)}}

func BenchmarkGenerateStream(b *testing.B) {
	for _, c := range []struct {
		name string
		rt   *canned
	}{{"text50", cannedStream(50)}, {"text2000", cannedStream(2000)}, {"call64B", cannedCall(4)}, {"call64KiB", cannedCall(4096)}, {"json", cannedJSON()}} {
		r := &lathe.Request{Messages: []lathe.Message{lathe.System("s"), lathe.User("hi")}, Tools: benchTools}
		run := func(b *testing.B, m lathe.Model) {
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			deltas := drain(b, ctx, m, r)
			b.SetBytes(int64(len(c.rt.body)))
			b.ReportAllocs()
			for b.Loop() {
				drain(b, ctx, m, r)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(deltas), "ns/delta")
		}
		b.Run(c.name, func(b *testing.B) { run(b, open(b, c.rt, nil)) })
	}
}

// BenchmarkConversation is ten turns whose history grows by two messages of 100 bytes each.
func BenchmarkConversation(b *testing.B) {
	for _, turns := range []int{10, 60} {
		history := []lathe.Message{lathe.User("hi")}
		for range turns {
			history = append(history, call("c1", "add", `{"text":"`+strings.Repeat("a", 64)+`"}`), result("c1", strings.Repeat("b", 64)))
		}
		c := open(b, cannedJSON(), nil)
		b.Run(map[int]string{10: "10", 60: "60"}[turns], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for n := 1; n <= len(history); n += 2 {
					drain(b, b.Context(), c, &lathe.Request{Messages: history[:n], Tools: benchTools})
				}
			}
		})
	}
}

func BenchmarkGenerateHTTP(b *testing.B) {
	rt := cannedStream(50)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		stream(w, rt.body)
	}))
	defer srv.Close()
	c, err := provider.OpenAI("m", &provider.Options{BaseURL: srv.URL})
	if err != nil {
		b.Fatal(err)
	}
	defer c.CloseIdleConnections()
	r := &lathe.Request{Messages: []lathe.Message{lathe.User("hi")}}
	b.ReportAllocs()
	for b.Loop() {
		drain(b, b.Context(), c, r)
	}
}

// TestAllocations holds the cost of a call fast: it does not grow with the number of deltas, but
// for the doubling of the text's memory. It counts for the whole process, so it is not parallel.
func TestAllocations(t *testing.T) {
	testdata.CountsAllocations(t)
	r := &lathe.Request{Messages: []lathe.Message{lathe.User("hi")}, Tools: benchTools}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, c := range []struct {
		name string
		rt   *canned
		want float64
	}{{"50 deltas", cannedStream(50), 72}, {"2000 deltas", cannedStream(2000), 84}, {"JSON", cannedJSON(), 60}} {
		m := open(t, c.rt, nil)
		got := testing.AllocsPerRun(50, func() { drain(t, ctx, m, r) })
		t.Logf("%s: %v allocations", c.name, got)
		if got > c.want {
			t.Errorf("%s: %v allocations a call, want at most %v", c.name, got, c.want)
		}
	}
}
