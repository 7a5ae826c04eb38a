package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/gemini"
	"github.com/lathe-run/lathe/internal/wire/messages"
	"github.com/lathe-run/lathe/internal/wire/openai"
	"github.com/lathe-run/lathe/internal/wire/responses"
	"github.com/lathe-run/lathe/internal/wire/wiretest"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/server"
)

var update = flag.Bool("update", false, "write the golden files of testdata/mixed again")

// A chainServer is a model behind one wire, which keeps the bodies that it was sent.
type chainServer struct {
	served       wire.Served
	conversation string // the member of a request that has it
	mu           sync.Mutex
	bodies       [][]byte
}

func chainServers() map[string]*chainServer {
	return map[string]*chainServer{
		"chat":      {served: openai.Served{}, conversation: "messages"},
		"responses": {served: responses.Codec{}, conversation: "input"},
		"messages":  {served: messages.Codec{}, conversation: "messages"},
		"gemini":    {served: gemini.Codec{}, conversation: "contents"},
	}
}

// named is a fake that says its name, as [wiretest.Handler] wants. The writer of Gemini takes calls from the end of the turn.
type named struct {
	*fake
	whole bool // the end of a turn has its parts
}

func (named) Describe() lathe.ModelInfo { return lathe.ModelInfo{Model: "m"} }

// Generate returns the turn, without the parts that its deltas have unless whole is set: other writers would write them twice.
func (n named) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		for d, err := range n.fake.Generate(ctx, req) {
			if d.Finish != nil && !n.whole {
				fin := *d.Finish
				fin.Message.Parts = nil
				d.Finish = &fin
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// model returns a client of the model over the wire.
func (s *chainServer) model(t *testing.T, m *fake) lathe.Model {
	t.Helper()
	next := wiretest.Handler(s.served, named{m, s.served.Wire() == lathe.WireGemini}, "", "")
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.bodies = append(s.bodies, body)
		s.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	}))
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		srv.Close()
	})
	chat, err := provider.New(s.served.Wire(), "m", &provider.Options{Name: "upstream", BaseURL: srv.URL, Transport: transport, Retry: provider.Retry{Attempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return chat
}

// converses is a model that calls a tool of the server and then one of the client in each turn, in words before both.
func converses() *fake {
	return &fake{turn: func(_ int, req *lathe.Request) lathe.Message {
		asked := 0
		for i := range req.Messages {
			if req.Messages[i].Role == lathe.RoleUser {
				asked++
			}
		}
		got := transcript(req.Messages)
		switch got = got[strings.LastIndex(got, "user "):]; {
		case !strings.Contains(got, "calculator:"):
			return says(lathe.Text{Text: "I compute."}, calls(fmt.Sprint("call_s", asked), "calculator", `{"expression":"7 + 35"}`))
		case !strings.Contains(got, "weather:"):
			return says(lathe.Text{Text: "I look."}, calls(fmt.Sprint("call_s", asked, "b"), "calculator", `{"expression":"6 * 7"}`), calls(fmt.Sprint("call_c", asked), "weather", `{"city":"Oslo"}`))
		}
		return says(lathe.Text{Text: fmt.Sprint("Answer ", asked, ".")})
	}}
}

// A client of each wire talks over three turns with a model behind each wire, with calls of the server and of the client in each
// turn. Every request that the model's server gets begins with the elements of the one before, byte for byte, and declares the
// same tools: its cache of the conversation stays good, whatever wires are on both sides.
func TestRequestsOfAChainBeginAsTheOneBefore(t *testing.T) {
	testdata.WithoutRace(t)
	t.Parallel()
	for upstream := range chainServers() {
		t.Run("model "+upstream, func(t *testing.T) {
			t.Parallel()
			onWires(t, func(t *testing.T, c *wireClient, stream bool) {
				s := chainServers()[upstream]
				f := serve(t, &setting{model: s.model(t, converses())})
				var history []lathe.Message
				for question := range 3 {
					history = append(history, lathe.User(fmt.Sprintf("Question %d?", question+1)))
					a := c.ask(f, stream, []*lathe.ToolSpec{weatherSpec()}, history...)
					asked := a.message.Calls()
					if a.err != nil || len(asked) != 1 || words(&a.message) != "Icompute.Ilook." {
						t.Fatalf("%v: %s", a.err, a.body)
					}
					history = append(history, c.back(a.message), lathe.Message{Role: lathe.RoleTool, Wire: c.codec.Wire(),
						Parts: []lathe.Part{lathe.ToolResult{CallID: asked[0].ID, Name: "weather", Content: "rain"}}})
					b := c.ask(f, stream, []*lathe.ToolSpec{weatherSpec()}, history...)
					if want := fmt.Sprintf("Answer %d.", question+1); b.err != nil || b.message.Text() != want {
						t.Fatalf("%v, want %q: %s", b.err, want, b.body)
					}
					history = append(history, c.back(b.message))
				}
				s.mu.Lock()
				defer s.mu.Unlock()
				if len(s.bodies) != 9 {
					t.Fatalf("%d requests, want 9", len(s.bodies))
				}
				for i := 1; i < len(s.bodies); i++ {
					before, after := s.elements(t, i-1), s.elements(t, i)
					if len(after) <= len(before) || !slices.Equal(after[:len(before)], before) {
						t.Errorf("request %d does not begin as the one before:\n%s\n%s", i+1, strings.Join(before, "\n"), strings.Join(after, "\n"))
					}
					for _, name := range []string{"tools", "system", "instructions", "systemInstruction"} {
						old, _ := rawjson.Get(s.bodies[i-1], name)
						if now, _ := rawjson.Get(s.bodies[i], name); !bytes.Equal(old, now) {
							t.Errorf("request %d has other %s:\n%s\n%s", i+1, name, old, now)
						}
					}
				}
			})
		})
	}
}

// elements returns the elements of the conversation in a body.
func (s *chainServer) elements(t *testing.T, i int) (out []string) {
	t.Helper()
	list, ok := rawjson.Get(s.bodies[i], s.conversation)
	if !ok {
		t.Fatalf("no conversation in %s", s.bodies[i])
	}
	for el := range rawjson.Elements(list) {
		out = append(out, string(el))
	}
	return out
}

// changing is what differs from one answer to the next: ids of requests, runs and calls, times, and encrypted texts.
var changing = regexp.MustCompile(`req_[A-Z0-9]+|call_[0-9A-Z]{26}_[A-Za-z0-9_-]{24}|[0-9A-HJKMNP-TV-Z]{26}|lathe1\.[A-Za-z0-9_-]+|"(created|created_at|completed_at|latency_ms)":[0-9]+|"thoughtSignature":"[^"]*"`)

// A turn with calls of the server and of the client has on each wire the bytes of its golden files: what the client sends and
// gets, and what the model's server is sent. Run with -update to write them again.
func TestMixedTurnOnEachWire(t *testing.T) {
	testdata.WithoutRace(t)
	t.Parallel()
	for name, s := range chainServers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := wireClients[name]
			f := serve(t, &setting{model: s.model(t, converses()), opts: func(o *server.Options) { o.Limits.KeepAlive = time.Hour }})
			body := c.body(true, []*lathe.ToolSpec{weatherSpec()}, lathe.User("Question 1?"))
			a := c.send(t.Context(), f, true, body)
			if a.err != nil {
				t.Fatalf("%v: %s", a.err, a.body)
			}
			stream := changing.ReplaceAllStringFunc(a.body, func(s string) string {
				name, _, member := strings.Cut(s, ":")
				switch {
				case member:
					return name + ":0"
				case strings.HasPrefix(s, "req_"):
					return "req_1"
				case strings.HasPrefix(s, "call_"):
					return "call_1"
				case strings.HasPrefix(s, "lathe1."):
					return "lathe1.SEALED"
				}
				return "01"
			})
			golden(t, name+".request.json", indented(t, []byte(body)))
			golden(t, name+".stream", stream)
			golden(t, name+".upstream.json", indented(t, s.bodies[len(s.bodies)-1]))
		})
	}
}

func indented(t *testing.T, body []byte) string {
	t.Helper()
	var out bytes.Buffer
	if err := json.Indent(&out, body, "", "  "); err != nil {
		t.Fatal(err)
	}
	return out.String() + "\n"
}

// golden compares a text with a golden file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "mixed", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (-update writes it):\n%s\nwant\n%s", name, got, want)
	}
}
