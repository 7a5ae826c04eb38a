package mcp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	served "github.com/lathe-run/lathe/internal/gateway/mcp"
	"github.com/lathe-run/lathe/internal/leaktest"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

type body func(ctx context.Context, args json.RawMessage) (*lathe.Output, error)

type fake struct {
	spec lathe.ToolSpec
	call body
}

func (f *fake) Spec() *lathe.ToolSpec { return &f.spec }

func (f *fake) Call(ctx context.Context, args json.RawMessage) (*lathe.Output, error) {
	return f.call(ctx, args)
}

func echo(_ context.Context, args json.RawMessage) (*lathe.Output, error) {
	return &lathe.Output{Data: args}, nil
}

func returns(data string, blobs ...lathe.Blob) body {
	return func(context.Context, json.RawMessage) (*lathe.Output, error) {
		return &lathe.Output{Data: json.RawMessage(data), Blobs: blobs}, nil
	}
}

// reader is a tool that only reads, takes any object and shows everything.
func reader(name string, call body) *fake {
	return &fake{lathe.ToolSpec{Name: name, Description: "reads", Schema: json.RawMessage(`{"type":"object"}`), Effect: lathe.ReadOnly,
		Allowlist: []string{"*"}, Origin: "test"}, call}
}

func writer(name string, call body) *fake {
	f := reader(name, call)
	f.spec.Effect = lathe.Writes
	return f
}

// log keeps events, of several runs at once.
type eventLog struct {
	mu     sync.Mutex
	events []event.Event
}

func (l *eventLog) Emit(_ context.Context, e event.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

func (l *eventLog) types() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for _, e := range l.events {
		out = append(out, e.Data.EventType())
	}
	return out
}

func (l *eventLog) all() []event.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events)
}

type rig struct {
	t      testing.TB
	set    *tool.Set
	server *served.Server
	log    *eventLog
}

// newRig serves the tools under a policy that allows all, unless opts say otherwise.
func newRig(t testing.TB, runner *tool.Options, opts *served.Options, tools ...lathe.Tool) *rig {
	t.Helper()
	set, err := tool.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	if runner == nil {
		runner = &tool.Options{Policy: policy.AllowAll()}
	}
	r := &rig{t: t, set: set, log: &eventLog{}}
	var o served.Options
	if opts != nil {
		o = *opts
	}
	o.Sinks = append(o.Sinks, r.log)
	over, err := tool.NewRunner(set, runner)
	if err != nil {
		t.Fatal(err)
	}
	r.server = served.New(over, &o)
	t.Cleanup(r.server.Close)
	return r
}

// lines sends lines over standard streams and returns the answers by id; "null" those without one.
func (r *rig) lines(c *served.Caller, in ...string) map[string][]string {
	r.t.Helper()
	var out bytes.Buffer
	if err := r.server.ServeStdio(r.t.Context(), strings.NewReader(strings.Join(in, "\n")), &out, c); err != nil {
		r.t.Fatalf("ServeStdio: %v", err)
	}
	got := map[string][]string{}
	for line := range strings.Lines(out.String()) {
		var m struct {
			ID json.RawMessage `json:"id"`
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			r.t.Fatalf("%v: %s", err, line)
		}
		got[string(m.ID)] = append(got[string(m.ID)], strings.TrimSpace(line))
	}
	return got
}

// lineTalk is a client on standard streams that takes its time.
type lineTalk struct {
	t   testing.TB
	out *io.PipeWriter
	in  *bufio.Scanner
}

// talk begins a conversation over standard streams with some lines.
func (r *rig) talk(first ...string) *lineTalk {
	r.t.Helper()
	hisIn, myOut := io.Pipe()
	myIn, hisOut := io.Pipe()
	over := make(chan error, 1)
	go func() {
		over <- r.server.ServeStdio(context.WithoutCancel(r.t.Context()), hisIn, hisOut, nil)
		_ = hisOut.Close()
	}()
	l := &lineTalk{r.t, myOut, bufio.NewScanner(myIn)}
	r.t.Cleanup(func() {
		_ = myOut.Close()
		_ = myIn.Close()
		<-over
	})
	for _, line := range first {
		l.send(line)
	}
	return l
}

func (l *lineTalk) send(line string) {
	l.t.Helper()
	if _, err := io.WriteString(l.out, line+"\n"); err != nil {
		l.t.Fatal(err)
	}
}

// await reads lines until one holds the text, and returns them all.
func (l *lineTalk) await(text string) (seen []string) {
	l.t.Helper()
	for l.in.Scan() {
		seen = append(seen, l.in.Text())
		if strings.Contains(l.in.Text(), text) {
			return seen
		}
	}
	l.t.Fatalf("no line holds %s: %q", text, seen)
	return nil
}

const (
	hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`
	ready = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	meta  = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"}}`
)

// web serves HTTP; the address ends in /mcp.
func (r *rig) web() string {
	r.t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/mcp", r.server.Handler())
	s := httptest.NewServer(mux)
	r.t.Cleanup(func() {
		r.server.Close()
		s.CloseClientConnections() // the client may have dialled one that it never used
		s.Close()
	})
	return s.URL + "/mcp"
}

// client is one without connections that outlive the test.
func client(t testing.TB) *http.Client {
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// post sends one message, with headers in pairs, and returns status, session and what is answered.
func post(t testing.TB, c *http.Client, url, msg string, headers ...string) (status int, session, answer string) {
	t.Helper()
	status, session, text := postWhole(t, c, url, msg, headers...)
	if i := strings.LastIndex(text, "data: {"); i >= 0 {
		text = text[i+len("data: "):]
	}
	return status, session, text
}

// postWhole is post with all that is answered.
func postWhole(t testing.TB, c *http.Client, url, msg string, headers ...string) (status int, session, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(msg))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
			continue
		}
		req.Header.Add(headers[i], headers[i+1])
	}
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header.Get("Mcp-Session-Id"), strings.TrimSpace(string(b))
}

// connect opens a session of the SDK's client over HTTP.
func (r *rig) connect(url string, opts *mcp.ClientOptions) *mcp.ClientSession {
	r.t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, opts)
	s, err := c.Connect(r.t.Context(), &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: client(r.t), MaxRetries: -1}, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = s.Close() })
	return s
}

// connectStdio opens a session of the SDK's client over a pair of streams.
func (r *rig) connectStdio(opts *mcp.ClientOptions) *mcp.ClientSession {
	r.t.Helper()
	hisIn, myOut := io.Pipe()
	myIn, hisOut := io.Pipe()
	over := make(chan error, 1)
	go func() {
		over <- r.server.ServeStdio(context.WithoutCancel(r.t.Context()), hisIn, hisOut, nil)
		_ = hisOut.Close()
	}()
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, opts)
	s, err := c.Connect(r.t.Context(), &mcp.IOTransport{Reader: myIn, Writer: myOut}, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		_ = s.Close()
		_ = myOut.Close()
		_ = myIn.Close()
		<-over
	})
	return s
}

func text(res *mcp.CallToolResult) string {
	for _, c := range res.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			return t.Text
		}
	}
	return ""
}
