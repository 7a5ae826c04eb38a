package observe_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/egress"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/observe"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/httptool"
	"github.com/lathe-run/lathe/tool/mcptool"
)

// A world is what a run reaches on the network: a model, an HTTP tool, an MCP server, and a collector.
type world struct {
	t   *testing.T
	mu  sync.Mutex
	saw map[string][]string // traceparents, by who was asked
	all []string            // every header and meta that came, for what must not be among them
	// baggage is what came as baggage, by who was asked.
	baggage map[string][]string
	ids     map[string][]string // traceparents of the spans that were recorded, by name
}

func (w *world) see(who, traceparent string, rest any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.saw[who] = append(w.saw[who], traceparent)
	w.all = append(w.all, fmt.Sprint(rest))
	switch rest := rest.(type) {
	case http.Header:
		if b := rest.Get("Baggage"); b != "" {
			w.baggage[who] = append(w.baggage[who], b)
		}
	case mcp.Meta:
		if b, _ := rest["baggage"].(string); b != "" {
			w.baggage[who] = append(w.baggage[who], b)
		}
	}
}

func (w *world) serve(h http.HandlerFunc) string {
	s := httptest.NewServer(h)
	w.t.Cleanup(s.Close)
	return s.URL
}

// model asks for one call of each tool, after one answer that says to come again.
func (w *world) model(rw http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // it is read, or the request has ended
	w.see("chat m", r.Header.Get("Traceparent"), r.Header)
	w.mu.Lock()
	n := len(w.saw["chat m"])
	w.mu.Unlock()
	switch n {
	case 1:
		rw.Header().Set("Retry-After", "0")
		rw.WriteHeader(http.StatusServiceUnavailable)
	case 2:
		_, _ = io.WriteString(rw, `{"choices":[{"message":{"role":"assistant","tool_calls":[`+
			`{"id":"c1","type":"function","function":{"name":"fetch","arguments":"{}"}},{"id":"c2","type":"function","function":{"name":"box__act","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`)
	default:
		_, _ = io.WriteString(rw, `{"choices":[{"message":{"role":"assistant","content":"Done."},"finish_reason":"stop"}]}`)
	}
}

// collect takes spans.
func (w *world) collect(_ http.ResponseWriter, r *http.Request) {
	var in struct {
		ResourceSpans []struct {
			ScopeSpans []struct {
				Spans []struct {
					Name, TraceID, SpanID string
					Flags                 int
				}
			}
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		w.t.Error(err)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range in.ResourceSpans[0].ScopeSpans[0].Spans {
		w.ids[s.Name] = append(w.ids[s.Name], fmt.Sprintf("00-%s-%s-%02x", s.TraceID, s.SpanID, s.Flags))
	}
}

func (w *world) tools(t *testing.T) *tool.Set {
	t.Helper()
	address := w.serve(func(rw http.ResponseWriter, r *http.Request) {
		w.see("execute_tool fetch", r.Header.Get("Traceparent"), r.Header)
		_, _ = io.WriteString(rw, `{}`)
	})
	port, err := strconv.Atoi(address[strings.LastIndex(address, ":")+1:])
	if err != nil {
		t.Fatal(err)
	}
	client, err := egress.New(&egress.Rules{Hosts: []string{"127.0.0.1"}, Schemes: []string{"http"}, Ports: []int{port}, Private: []string{"127.0.0.0/8"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	fetch, err := httptool.New(&httptool.Definition{Name: "fetch", Description: "Fetches.", URL: address, Allowlist: []string{"*"}}, client, nil)
	if err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet(fetch)
	if err != nil {
		t.Fatal(err)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "box", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "act", Description: "Acts."}, func(_ context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		of, _ := r.Params.Meta["traceparent"].(string)
		w.see("execute_tool box__act", of, r.Params.Meta)
		w.see("execute_tool box__act", r.Extra.Header.Get("Traceparent"), r.Extra.Header)
		return nil, "acted", nil
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	group, err := mcptool.Start(t.Context(), []mcptool.Server{{Name: "box", URL: w.serve(handler.ServeHTTP), Required: true, Effects: map[string]lathe.Effect{"act": lathe.ReadOnly}, Allowlist: []string{"*"}}},
		&mcptool.Options{Pins: mcptool.NewPins(filepath.Join(t.TempDir(), "pins.json")), OnChange: set.Replace})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = group.Close() })
	return set
}

// handOn runs a conversation in a world, for a caller with trace context and baggage.
func handOn(t *testing.T, o observe.TracesOptions, kept bool, baggage string) *world {
	t.Helper()
	w := &world{t: t, saw: map[string][]string{}, ids: map[string][]string{}, baggage: map[string][]string{}}
	m, err := provider.OpenAI("m", &provider.Options{BaseURL: w.serve(w.model), Retry: provider.Retry{Jitter: func() float64 { return 0 }}})
	if err != nil {
		t.Fatal(err)
	}
	runner, err := tool.NewRunner(w.tools(t), &tool.Options{Policy: policy.AllowAll()})
	if err != nil {
		t.Fatal(err)
	}
	l, err := loop.New(m, runner, nil)
	if err != nil {
		t.Fatal(err)
	}
	o.Endpoint = w.serve(w.collect)
	traces, err := observe.NewTraces(&o)
	if err != nil {
		t.Fatal(err)
	}
	opts := &engine.Options{}
	if kept {
		opts.Sinks = []event.Sink{traces}
	}
	ctx := observe.RemoteTrace(t.Context(), http.Header{"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}, "Tracestate": {"evil=1"}, "Baggage": {baggage}})
	res, err := newEngine(t, opts).Run(ctx, l, &loop.Input{Messages: []lathe.Message{lathe.User("Go.")}}, nil)
	if err != nil || res.Answer != "Done." {
		t.Fatalf("%+v, %v", res, err)
	}
	if err := traces.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}

// Requests to models and tools bear the recorded span of the request, and nothing else about the caller;
// without a collector they bear no span.
func TestTraceIsHandedOn(t *testing.T) {
	t.Parallel()
	for _, kept := range []bool{true, false} {
		w := handOn(t, observe.TracesOptions{}, kept, "evil=2")
		if all := strings.Join(w.all, " "); strings.Contains(all, "evil") || strings.Contains(strings.ToLower(all), "tracestate") {
			t.Errorf("what the caller has made up is handed on: %s", all)
		}
		for who, n := range map[string]int{"chat m": 3, "execute_tool fetch": 1, "execute_tool box__act": 2} {
			want := w.ids[who]
			switch {
			case !kept:
				want = make([]string, n)
			case who == "execute_tool box__act": // in the message, and in the header
				want = append(want, want...)
			}
			if !slices.Equal(w.saw[who], want) || len(want) != n || kept && !strings.HasPrefix(want[0], "00-0af7651916cd43dd8448eb211c80319c-") {
				t.Errorf("collector %t: %s received %q, want %q", kept, who, w.saw[who], want)
			}
		}
	}
}

// The caller's baggage goes to tools, or to models too, only if the operator has said so; what is not baggage, or is longer
// than the limit, goes nowhere.
func TestBaggageIsPassedOnOnRequest(t *testing.T) {
	t.Parallel()
	const given = "user=ann,tenant=a%20b"
	tools := map[string][]string{"execute_tool fetch": {given}, "execute_tool box__act": {given, given}}
	all := map[string][]string{"execute_tool fetch": {given}, "execute_tool box__act": {given, given}, "chat m": {given, given, given}}
	for _, c := range []struct {
		to      observe.Baggage
		baggage string
		kept    bool
		want    map[string][]string
	}{
		{"", given, true, map[string][]string{}}, {observe.BaggageTools, given, true, tools}, {observe.BaggageAll, given, true, all}, {observe.BaggageAll, given, false, map[string][]string{}},
		{observe.BaggageAll, "not baggage", true, map[string][]string{}}, {observe.BaggageAll, "a=" + strings.Repeat("b", 4<<10), true, map[string][]string{}},
	} {
		w := handOn(t, observe.TracesOptions{Baggage: c.to}, c.kept, c.baggage)
		got := map[string][]string{}
		for who, list := range w.baggage {
			for _, b := range list {
				members := strings.Split(b, ",") // in no order
				slices.Sort(members)
				slices.Reverse(members)
				got[who] = append(got[who], strings.Join(members, ","))
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%q, collector %t, %.20s (-want +got):\n%s", c.to, c.kept, c.baggage, diff)
		}
	}
	if _, err := observe.NewTraces(&observe.TracesOptions{Endpoint: "http://127.0.0.1:1", Baggage: "everyone"}); err == nil {
		t.Error("an unknown setting was taken")
	}
}
