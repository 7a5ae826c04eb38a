package server_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/server"
)

// A modelServer answers every request with one stream, and keeps the last request.
type modelServer struct {
	stream string
	sent   atomic.Pointer[string]
	header atomic.Pointer[http.Header]
}

func (m *modelServer) RoundTrip(r *http.Request) (*http.Response, error) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	body := string(b)
	m.sent.Store(&body)
	m.header.Store(&r.Header)
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(m.stream)), Request: r}, nil
}

// model returns a model on a wire whose server is m.
func (m *modelServer) model(t *testing.T, w lathe.Wire) *provider.Chat {
	t.Helper()
	model, err := provider.New(w, "up-model", &provider.Options{Name: "up", BaseURL: "http://up.invalid", Transport: m, Retry: provider.Retry{Attempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return model
}

// relaying serves a model on a wire whose server answers with the stream, and no tools.
func relaying(t *testing.T, w lathe.Wire, stream string) (*fixture, *modelServer) {
	t.Helper()
	m := &modelServer{stream: stream}
	return serve(t, &setting{model: m.model(t, w), opts: func(o *server.Options) { o.Setup.Tools = nil }}), m
}

var relayClients = map[string]struct {
	file string
	body string
}{
	"responses": {"responses.sse", `{"model":"sim/demo", "stream":true,"store":false,"input":"hi","metadata":{"a":"b"},"service_tier":"auto"}`},
	"messages":  {"messages.sse", `{"model":"sim/demo", "stream":true,"max_tokens":9,"messages":[{"role":"user","content":"hi","x":1}],"mcp_servers":[],"fallbacks":[{"model":"claude-other"}],"service_tier":"auto"}`},
	"gemini":    {"gemini.sse", `{"contents":[{"role":"user","parts":[{"text":"hi"}]}], "safetySettings":[]}`},
}

func exampleStream(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(testdata.Dir(t, "wires", "examples", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A model of the client's own wire gets the client's bytes, except for the model's name and the members that are held, and the
// client gets those of the model's server.
func TestEveryWireRelaysItsOwnBytes(t *testing.T) {
	t.Parallel()
	for name, of := range relayClients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := wireClients[name]
			stream := exampleStream(t, of.file)
			f, m := relaying(t, c.codec.Wire(), stream)
			a := c.send(t.Context(), f, true, of.body)
			if a.status != 200 || a.body != stream {
				t.Errorf("%d, got\n%s\nwant\n%s", a.status, a.body, stream)
			}
			sent := *m.sent.Load()
			if strings.Contains(sent, "metadata") || strings.Contains(sent, "mcp_servers") || strings.Contains(sent, "fallbacks") || name != "gemini" && !strings.Contains(sent, `"service_tier":"auto"`) ||
				name == "gemini" && sent != of.body || name != "gemini" && !strings.Contains(sent, `{"model":"up-model", "stream":true,`) {
				t.Errorf("the model was sent %s", sent)
			}
		})
	}
}

// What a client asks for by anthropic-beta reaches Anthropic's API, with or without tools of this server in play, and is
// listed for other models.
func TestBetasReachTheirOwnAPI(t *testing.T) {
	t.Parallel()
	c, of := wireClients["messages"], relayClients["messages"]
	betas := []string{"Anthropic-Beta", "context-management-2025-06-27, interleaved-thinking-2025-05-14,bad\x00name"}
	for name, body := range map[string]string{"relayed": of.body, "written anew": strings.TrimSuffix(of.body, "}") + `,"lathe":{"show":"items"}}`} {
		f, m := relaying(t, lathe.WireMessages, exampleStream(t, of.file))
		betas[1] = strings.ReplaceAll(betas[1], "\x00", " ")
		c.send(t.Context(), f, true, body, betas...)
		if got := (*m.header.Load())["Anthropic-Beta"]; len(got) != 1 || got[0] != "context-management-2025-06-27,interleaved-thinking-2025-05-14" {
			t.Errorf("%s: the server was sent %q", name, got)
		}
	}
	f := serve(t, nil)
	if a := c.send(t.Context(), f, false, c.body(false, nil, lathe.User("hi")), betas...); a.status != 200 || a.header.Get("X-Lathe-Ignored") != "anthropic-beta" {
		t.Errorf("%d %v", a.status, a.header)
	}
}

// The version of the API that a client names reaches a model on Messages as it is, also one that is newer than the codec, with or
// without tools of this server in play. A text that is no version is refused by name, and is listed for models on other wires.
func TestVersionOfTheAPIReachesItsModel(t *testing.T) {
	t.Parallel()
	const name = "Anthropic-Version"
	c, of := wireClients["messages"], relayClients["messages"]
	bodies := map[string]string{"relayed": of.body, "written anew": strings.TrimSuffix(of.body, "}") + `,"lathe":{"show":"items"}}`}
	for as, body := range bodies {
		f, m := relaying(t, lathe.WireMessages, exampleStream(t, of.file))
		for _, version := range []string{"2023-01-01", "2023-06-01", "2026-10-21", "2031-02-28"} {
			if a := c.send(t.Context(), f, true, body, name, version); a.status != 200 {
				t.Fatalf("%s, %s: %d %s", as, version, a.status, a.body)
			}
			if got := (*m.header.Load())[name]; len(got) != 1 || got[0] != version {
				t.Errorf("%s: the server was sent %q for %s", as, got, version)
			}
		}
		m.header.Store(nil)
		for _, version := range []string{"2022-01-01", "2026-13-01", "2031-2-28", "latest", "", " 2023-06-01,2023-06-01", "2026-10-21, 2026-10-21"} {
			a := c.send(t.Context(), f, true, body, name, version)
			if a.status != 400 || !strings.Contains(a.body, "anthropic-version must be 2023-01-01, 2023-06-01 or a later date") || m.header.Load() != nil {
				t.Errorf("%s, %q: %d %s", as, version, a.status, a.body)
			}
		}
	}
	f := serve(t, nil)
	for version, ignored := range map[string]string{"2023-06-01": "", "2099-01-01": "anthropic-version"} {
		if a := c.send(t.Context(), f, false, c.body(false, nil, lathe.User("hi")), name, version); a.status != 200 || a.header.Get("X-Lathe-Ignored") != ignored {
			t.Errorf("%s: %d %v", version, a.status, a.header)
		}
	}
}

// A version and a beta that are newer than the codec are logged once.
func TestNewerHeadersAreLoggedOnce(t *testing.T) {
	t.Parallel()
	c, of := wireClients["messages"], relayClients["messages"]
	m := &modelServer{stream: exampleStream(t, of.file)}
	var log lockedBuffer
	f := serve(t, &setting{model: m.model(t, lathe.WireMessages), opts: func(o *server.Options) {
		o.Setup.Tools, o.Log = nil, slog.New(slog.NewTextHandler(&log, nil))
	}})
	for range 2 {
		for _, version := range []string{"2023-06-01", "2026-10-21", "2031-02-28"} {
			if a := c.send(t.Context(), f, true, of.body, "Anthropic-Version", version, "Anthropic-Beta", "interleaved-thinking-2025-05-14,later-2030-01-01"); a.status != 200 {
				t.Fatalf("%d %s", a.status, a.body)
			}
		}
	}
	for value, want := range map[string]int{"2023-06-01": 0, "2026-10-21": 1, "2031-02-28": 1, "interleaved-thinking-2025-05-14": 0, "later-2030-01-01": 1} {
		if n := strings.Count(log.String(), "value="+value+"\n"); n != want {
			t.Errorf("%s is logged %d times, want %d:\n%s", value, n, want, log.String())
		}
	}
}

// Version 2026-10-21 of Anthropic's API refuses temperature, top_p and top_k. A request that the server writes anew is refused as the
// vendor refuses it. One that is relayed is left to the model server.
func TestNewVersionOfTheAPIHasNoSampling(t *testing.T) {
	t.Parallel()
	const name = "Anthropic-Version"
	c, of := wireClients["messages"], relayClients["messages"]
	anew := func(body string) string { return strings.TrimSuffix(body, "}") + `,"lathe":{"show":"items"}}` }
	for _, member := range []string{"temperature", "top_p", "top_k"} {
		body := strings.TrimSuffix(of.body, "}") + `,"` + member + `":1}`
		f, m := relaying(t, lathe.WireMessages, exampleStream(t, of.file))
		if a := c.send(t.Context(), f, true, anew(body), name, "2026-10-21"); a.status != 400 || !strings.Contains(a.body, member) || m.sent.Load() != nil {
			t.Errorf("%s, written anew: %d %s", member, a.status, a.body)
		}
		if a := c.send(t.Context(), f, true, anew(body), name, "2023-06-01"); a.status != 200 || !strings.Contains(*m.sent.Load(), member) {
			t.Errorf("%s, written anew, former version: %d %s", member, a.status, a.body)
		}
		if a := c.send(t.Context(), f, true, body, name, "2026-10-21"); a.status != 200 || !strings.Contains(*m.sent.Load(), member) {
			t.Errorf("%s, relayed: %d %s", member, a.status, a.body)
		}
	}
}

// W8: a relayed stream that breaks off, wherever that is, ends for the client as its wire says, once.
func TestRelayedStreamThatBreaksOffHasOneEnd(t *testing.T) {
	t.Parallel()
	for name, of := range relayClients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := wireClients[name]
			stream := exampleStream(t, of.file)
			for cut := 1; cut < len(stream); cut += 211 {
				f, _ := relaying(t, c.codec.Wire(), stream[:cut])
				a := c.send(t.Context(), f, true, of.body)
				if errors.Is(a.err, wire.ErrIncomplete) || a.cut {
					t.Errorf("cut at %d: the stream has no end: %v\n%s", cut, a.err, a.body)
				}
				for _, end := range []string{`"type":"response.failed"`, `"type":"response.completed"`, `"type":"message_stop"`, "event: error"} {
					if n := strings.Count(a.body, end); n > 1 {
						t.Errorf("cut at %d: %d times %s\n%s", cut, n, end, a.body)
					}
				}
			}
		})
	}
}

// W13: what Codex, Claude Code and Gemini CLI send is answered with a model of another wire, and each tool of it reaches the
// model or is listed.
func TestRequestsOfAgentsAreAnswered(t *testing.T) {
	t.Parallel()
	dir := testdata.Dir(t, "wires", "agents")
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) < 7 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			kept := parse[struct {
				Path string
				Body map[string]json.RawMessage
			}](t, string(b))
			path := kept.Path
			if _, verb, ok := strings.Cut(path, ":"); ok {
				path = "/v1beta/models/sim/demo:" + verb
			} else {
				kept.Body["model"] = json.RawMessage(`"sim/demo"`)
			}
			body, err := json.Marshal(kept.Body)
			if err != nil {
				t.Fatal(err)
			}
			f := serve(t, nil)
			resp, text := f.do("POST", path, string(body))
			if resp.StatusCode != 200 || strings.Contains(text, "event: error") || !strings.Contains(text, `"lathe":`) {
				t.Fatalf("%d %s", resp.StatusCode, text)
			}
			sent := f.seen.all()[0]
			for _, name := range toolNames(t, kept.Body["tools"]) {
				if !strings.Contains(sent, fmt.Sprintf(`"name":%q`, name)) && !strings.Contains(fmt.Sprint(resp.Header["X-Lathe-Ignored"]), name) {
					t.Errorf("the tool %s is neither sent nor listed", name)
				}
			}
		})
	}
}

// toolNames returns the names that models know the tools of a request by, and the types of those without a name.
func toolNames(t *testing.T, tools json.RawMessage) (names []string) {
	t.Helper()
	type declared struct {
		Name, Type           string
		Tools                []declared
		Function             *declared
		FunctionDeclarations []declared
	}
	for _, d := range *parse[[]declared](t, string(tools)) {
		switch {
		case d.Function != nil:
			names = append(names, d.Function.Name)
		case len(d.FunctionDeclarations) > 0:
			for _, fn := range d.FunctionDeclarations {
				names = append(names, fn.Name)
			}
		case len(d.Tools) > 0:
			for _, fn := range d.Tools {
				names = append(names, d.Name+"__"+fn.Name)
			}
		case d.Name != "":
			names = append(names, d.Name)
		default:
			names = append(names, d.Type)
		}
	}
	return names
}
