package mcptool

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/secret"
)

func sdkServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "2"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "add", Description: "Adds."}, func(_ context.Context, _ *mcp.CallToolRequest, in struct{ A, B int }) (*mcp.CallToolResult, struct{ Sum int }, error) {
		return nil, struct{ Sum int }{in.A + in.B}, nil
	})
	return s
}

func httpConf(url string) Server {
	return Server{Name: "web", URL: url, Allowlist: []string{"*"}, StartTimeout: time.Minute}
}

// A server of each era is spoken to in its own way, under the same rules.
func TestT38_ErasOverHTTP(t *testing.T) {
	t.Parallel()
	get := func(*http.Request) *mcp.Server { return sdkServer() }
	for name, tt := range map[string]struct {
		handler http.Handler
		want    string
	}{
		"new":              {mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: true}), "2026-07-28"},
		"streamable":       {mcp.NewStreamableHTTPHandler(get, nil), "2025-11-25"},
		"streamable, JSON": {mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{JSONResponse: true}), "2025-11-25"},
		"2024":             {mcp.NewSSEHandler(get, nil), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(tt.handler)
			defer server.Close()
			r := newRig(t, nil, httpConf(server.URL))
			defer r.group.Close()
			if got := r.call("web__add", map[string]int{"A": 1, "B": 41}); got.Content != `{"Sum":42}` {
				t.Errorf("got %+v, status %+v", got, r.group.Status()[0])
			}
			wantCode(t, r.call("web__add", map[string]string{"A": "x"}), lathe.CodeInvalidArguments)
			if st := r.group.Status()[0]; st.State != StateReady || tt.want != "" && st.Protocol != tt.want || st.Transport != "http" {
				t.Errorf("got %+v, want protocol %s", st, tt.want)
			}
			if got := r.set.Specs()[0].Effect; got != lathe.EffectUndeclared {
				t.Errorf("got effect %s", got)
			}
		})
	}
}

// rpcServer answers as a server of 2025 does. The field call answers tools/call.
type rpcServer struct {
	call func(w http.ResponseWriter, id string)
	mu   sync.Mutex
	seen []http.Header
}

func (s *rpcServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.seen = append(s.seen, r.Header.Clone())
	s.mu.Unlock()
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	var m testMessage
	b, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(b, &m)
	reply := func(result string) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}
	switch m.Method {
	case "initialize":
		w.Header().Set("Mcp-Session-Id", "s1")
		reply(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}`)
	case "tools/list":
		reply(`{"tools":[{"name":"do","inputSchema":{"type":"object"}}]}`)
	case "tools/call":
		s.mu.Lock()
		call := s.call
		s.mu.Unlock()
		call(w, string(m.ID))
	case "server/discover":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, m.ID)
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

func TestT11_T15_FaultyHTTPAnswers(t *testing.T) {
	t.Parallel()
	event := func(w http.ResponseWriter, data string) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: message\ndata: %s\n\n", data)
	}
	asJSON := func(w http.ResponseWriter, text string) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, text)
	}
	good := `"result":{"content":[{"type":"text","text":"ok"}]}`
	for name, tt := range map[string]struct {
		call    func(w http.ResponseWriter, id string)
		effect  lathe.Effect
		want    lathe.Code
		content string
	}{
		"JSON":                {func(w http.ResponseWriter, id string) { asJSON(w, `{"jsonrpc":"2.0","id":`+id+`,`+good+`}`) }, 0, "", "ok"},
		"events":              {func(w http.ResponseWriter, id string) { event(w, `{"jsonrpc":"2.0","id":`+id+`,`+good+`}`) }, 0, "", "ok"},
		"duplicate keys":      {func(w http.ResponseWriter, id string) { asJSON(w, `{"jsonrpc":"2.0","id":`+id+`,`+good+`,`+good+`}`) }, 0, lathe.CodeInvalidOutput, ""},
		"duplicate in events": {func(w http.ResponseWriter, id string) { event(w, `{"jsonrpc":"2.0","id":`+id+`,`+good+`,`+good+`}`) }, 0, lathe.CodeInvalidOutput, ""},
		"bad UTF-8": {func(w http.ResponseWriter, id string) {
			asJSON(w, `{"jsonrpc":"2.0","id":`+id+`,"result":{"x":"`+"\xff"+`"}}`)
		}, 0, lathe.CodeInvalidOutput, ""},
		"not JSON": {func(w http.ResponseWriter, _ string) { asJSON(w, `<html>`) }, 0, lathe.CodeInvalidOutput, ""},
		"too long": {func(w http.ResponseWriter, id string) {
			asJSON(w, `{"jsonrpc":"2.0","id":`+id+`,"result":{"x":"`+strings.Repeat("x", 1<<17)+`"}}`)
		}, 0, lathe.CodeOutputTooLarge, ""},
		"too long in events": {func(w http.ResponseWriter, id string) {
			event(w, `{"jsonrpc":"2.0","id":`+id+`,"result":{"x":"`+strings.Repeat("x", 1<<17)+`"}}`)
		}, 0, lathe.CodeOutputTooLarge, ""},
		"stream ends, writes":  {func(w http.ResponseWriter, _ string) { event(w, `{"jsonrpc":"2.0","method":"notifications/x"}`) }, lathe.Writes, lathe.CodeInterrupted, ""},
		"stream ends, reads":   {func(w http.ResponseWriter, _ string) { event(w, `{"jsonrpc":"2.0","method":"notifications/x"}`) }, lathe.ReadOnly, lathe.CodeUnavailable, ""},
		"500, writes":          {func(w http.ResponseWriter, _ string) { w.WriteHeader(500) }, lathe.Writes, lathe.CodeInterrupted, ""},
		"401, writes":          {func(w http.ResponseWriter, _ string) { w.WriteHeader(401) }, lathe.Writes, lathe.CodeUnavailable, ""},
		"session gone, writes": {func(w http.ResponseWriter, _ string) { w.WriteHeader(404) }, lathe.Writes, lathe.CodeUnavailable, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw := &rpcServer{call: tt.call}
			server := httptest.NewServer(raw)
			defer server.Close()
			conf := httpConf(server.URL)
			conf.MaxLineBytes, conf.IdleTimeout = 1<<16, time.Minute
			conf.Effects = map[string]lathe.Effect{"do": tt.effect}
			r := newRig(t, nil, conf)
			defer r.group.Close()
			res := r.call("web__do", map[string]int{})
			wantCode(t, res, tt.want)
			if tt.content != "" && res.Content != tt.content {
				t.Errorf("got %s", res.Content)
			}
			raw.mu.Lock()
			raw.call = func(w http.ResponseWriter, id string) { asJSON(w, `{"jsonrpc":"2.0","id":`+id+`,`+good+`}`) }
			raw.mu.Unlock()
			if got := r.call("web__do", map[string]int{}); got.Content != "ok" {
				t.Errorf("the next call: got %+v", got)
			}
		})
	}
}

// Credentials go to the server's origin: not along with a redirect, and not to a place that the
// server names.
func TestT7_T8_T9_CredentialsStayWithTheirOrigin(t *testing.T) {
	t.Parallel()
	var hits atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer elsewhere.Close()
	for name, handler := range map[string]http.HandlerFunc{
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		},
		"endpoint of an old server": func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "event: endpoint\ndata: %s/post\n\n", elsewhere.URL)
		},
	} {
		server := httptest.NewServer(handler)
		conf := httpConf(server.URL)
		conf.Headers = map[string]secret.Secret{"Authorization": secret.New("Bearer canary-token")}
		r := newRig(t, nil, conf)
		if st := r.group.Status()[0]; st.State == StateReady || strings.Contains(st.LastError, "canary") {
			t.Errorf("%s: got %+v", name, st)
		}
		_ = r.group.Close()
		server.Close()
	}
	if n := hits.Load(); n != 0 {
		t.Errorf("another origin was asked %d times", n)
	}
	// Two servers have their own credentials each.
	var raws [2]*rpcServer
	var confs []Server
	for i := range raws {
		raws[i] = &rpcServer{call: func(w http.ResponseWriter, id string) { fmt.Fprint(w, id) }}
		server := httptest.NewServer(raws[i])
		defer server.Close()
		c := httpConf(server.URL)
		c.Name = fmt.Sprintf("web%d", i)
		c.Headers = map[string]secret.Secret{"Authorization": secret.New(fmt.Sprintf("Bearer token-%d", i))}
		confs = append(confs, c)
	}
	r := newRig(t, nil, confs...)
	_ = r.group.Close()
	for i, raw := range raws {
		for _, h := range raw.seen {
			if got, want := h.Get("Authorization"), fmt.Sprintf("Bearer token-%d", i); got != want {
				t.Errorf("server %d got %q", i, got)
			}
		}
	}
}

func TestHTTPServerThatIsNotThere(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	r := newRig(t, nil, httpConf(server.URL))
	if st := r.group.Status()[0]; st.Problem != ProblemHTTP {
		t.Errorf("404: got %+v", st)
	}
	_ = r.group.Close()
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	r = newRig(t, nil, httpConf(server.URL))
	if st := r.group.Status()[0]; st.Problem != ProblemCredentials {
		t.Errorf("401: got %+v", st)
	}
	_ = r.group.Close()
	server.Close()
	r = newRig(t, nil, httpConf(server.URL))
	if st := r.group.Status()[0]; st.Problem != ProblemUnreachable {
		t.Errorf("no server listens: got %+v", st)
	}
}

// A server that was away is reached again.
func TestHTTPServerThatComesBack(t *testing.T) {
	t.Parallel()
	var away atomic.Bool
	raw := &rpcServer{call: func(w http.ResponseWriter, id string) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"ok"}]}}`, id)
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away.Load() {
			panic(http.ErrAbortHandler)
		}
		raw.ServeHTTP(w, r)
	}))
	defer server.Close()
	r := newRig(t, nil, httpConf(server.URL))
	defer r.group.Close()
	away.Store(true)
	wantCode(t, r.call("web__do", map[string]int{}), lathe.CodeInterrupted)
	r.until("failing", func(st Status) bool { return st.Failures > 1 })
	wantCode(t, r.call("web__do", map[string]int{}), lathe.CodeUnavailable)
	away.Store(false)
	r.until("ready", func(st Status) bool { return st.State == StateReady })
	if got := r.call("web__do", map[string]int{}); got.Content != "ok" {
		t.Errorf("got %+v", got)
	}
}
