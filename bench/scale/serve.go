package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lathe-run/lathe/bench/internal/proc"
	"github.com/lathe-run/lathe/bench/internal/proxy"
	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/config"
)

// serve makes this process one of those of a curve.
func serve(what, upstream string) error {
	switch what {
	case "mock":
		return proc.Serve(http.HandlerFunc(modelServer))
	case "rp":
		h, err := proxy.Reverse(upstream)
		if err != nil {
			return err
		}
		return proc.Serve(h)
	case "lean":
		return proc.Serve(&proxy.Lean{Upstream: upstream, Client: proxy.Transport()})
	case "lathe":
		a, err := newApp(upstream)
		if err != nil {
			return err
		}
		return errors.Join(proc.Serve(a.Handler()), a.Close())
	default:
		return fmt.Errorf("there is no %s", what)
	}
}

// newApp is an application of a configuration file, with its runs in memory.
func newApp(path string) (*app.App, error) {
	cfg, err := loadConfig(path)
	if err != nil {
		return nil, err
	}
	return app.New(cfg, &app.Options{Store: app.NewMemoryStore(), Environ: []string{}})
}

func loadConfig(path string) (*config.Config, error) {
	return app.LoadConfig(path, &app.LoadOptions{Environ: []string{}})
}

// The answers of the model server on each wire.
const (
	usageChat       = `"usage":{"prompt_tokens":100,"completion_tokens":5,"total_tokens":105}`
	answerChat      = `{"id":"chatcmpl-1","object":"chat.completion","created":1741570283,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"A short answer."},"logprobs":null,"finish_reason":"stop"}],` + usageChat + `}`
	answerMessages  = `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"A short answer."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":100,"output_tokens":5}}`
	answerResponses = `{"id":"resp_1","object":"response","created_at":1741570283,"status":"completed","model":"m","output":[{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"A short answer.","annotations":[]}]}],"usage":{"input_tokens":100,"output_tokens":5,"total_tokens":105}}`
	answerGemini    = `{"candidates":[{"content":{"role":"model","parts":[{"text":"A short answer."}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":5,"totalTokenCount":105},"modelVersion":"m"}`
)

// modelBodies are buffers of the model server, which is in the process that is measured on some curves.
var modelBodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// modelServer answers on all wires: whole answers, and streams on chat completions if they are asked for.
func modelServer(w http.ResponseWriter, r *http.Request) {
	read := modelBodies.Get().(*bytes.Buffer)
	defer modelBodies.Put(read)
	read.Reset()
	if _, err := read.ReadFrom(r.Body); err != nil {
		return
	}
	body := read.Bytes()
	w.Header().Set("Content-Type", "application/json")
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/chat/completions"):
		if bytes.Contains(body, []byte(`"stream":true`)) {
			streamPieces(w, r, body)
			return
		}
		_, _ = io.WriteString(w, answerChat)
	case strings.HasSuffix(path, "/messages"):
		_, _ = io.WriteString(w, answerMessages)
	case strings.HasSuffix(path, "/responses"):
		_, _ = io.WriteString(w, answerResponses)
	default:
		_, _ = io.WriteString(w, answerGemini)
	}
}

const chunkHead = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1741570283,"model":"m","choices":[{"index":0,"delta":`

// streamPieces streams an answer: a short one, and for the model i one piece and no further until the client leaves; for a model pN a
// piece each N ms until the client leaves.
func streamPieces(w http.ResponseWriter, r *http.Request, body []byte) {
	_, name, _ := bytes.Cut(body, []byte(`"model":"`))
	name, _, _ = bytes.Cut(name, []byte(`"`))
	w.Header().Set("Content-Type", "text/event-stream")
	rc := http.NewResponseController(w)
	send := func(delta string) bool {
		_, err := io.WriteString(w, chunkHead+delta+`,"finish_reason":null}]}`+"\n\n")
		return err == nil && rc.Flush() == nil
	}
	if string(name) == "m" {
		if send(`{"role":"assistant","content":"A short answer."}`) {
			_, _ = io.WriteString(w, chunkHead+`{},"finish_reason":"stop"}]}`+"\n\n"+`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1741570283,"model":"m","choices":[],`+usageChat+"}\n\ndata: [DONE]\n\n")
		}
		return
	}
	if !send(`{"role":"assistant","content":"word "}`) {
		return
	}
	ms, err := strconv.Atoi(string(bytes.TrimPrefix(name, []byte("p"))))
	if err != nil || ms <= 0 {
		<-r.Context().Done()
		return
	}
	tick := time.NewTicker(time.Duration(ms) * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
			if !send(`{"content":"word "}`) {
				return
			}
		}
	}
}

// gatewayConfig is what the gateway serves: one model of the model server for each wire, and the further lines.
func (s *settings) gatewayConfig(name, upstream, further string) (string, error) {
	text := "serve: {max_concurrent: 20000, max_idle_connections: 20000, max_body_bytes: 64MiB, max_messages: 200000, max_parts: 400000, max_calls: 200000}\n" +
		"models:\n"
	type model struct{ name, wire, path string }
	models := []model{{"m", "openai", "/v1"}, {"i", "openai", "/v1"}, {"m-messages", "anthropic", "/v1"}, {"m-responses", "responses", "/v1"}, {"m-gemini", "gemini", "/v1beta"}}
	paces := []int{paceOf(1)}
	for _, n := range append(steps(10, mostStreams), 3000) {
		paces = append(paces, paceOf(n))
	}
	slices.Sort(paces)
	for _, ms := range slices.Compact(paces) {
		models = append(models, model{fmt.Sprintf("p%d", ms), "openai", "/v1"})
	}
	for _, m := range models {
		text += fmt.Sprintf("  %s: {base_url: %q, wire: %s, key: \"${file:key}\", client_timeout: 1h, max_attempts: 1}\n", m.name, upstream+m.path, m.wire)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "key"), []byte("0123456789abcdef"), 0o600); err != nil {
		return "", err
	}
	path := filepath.Join(s.dir, name+".yaml")
	return path, os.WriteFile(path, []byte(text+further), 0o600)
}

// A rig is a model server and the gateways in front of it, each a process.
type rig struct {
	mock     *proc.Process
	gateways []*proc.Process
}

func (r *rig) close() {
	for _, p := range r.gateways {
		p.Stop()
	}
	if r.mock != nil {
		r.mock.Stop()
	}
}

// newModelServer starts the model server alone. Everything but the gateways runs on the last core.
func (s *settings) newModelServer() (*rig, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	r := &rig{}
	r.mock, err = proc.Start("direct", runtime.NumCPU()-1, self, "-serve", "mock")
	return r, err
}

// newRig starts the model server and the peers.
func (s *settings) newRig() (*rig, error) {
	r, err := s.newModelServer()
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"ReverseProxy", "lean proxy"} {
		if _, err := s.addPeer(r, name); err != nil {
			r.close()
			return nil, err
		}
	}
	return r, nil
}

// addPeer starts a peer in front of the model server.
func (s *settings) addPeer(r *rig, name string) (*proc.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	what := map[string]string{"ReverseProxy": "rp", "lean proxy": "lean"}[name]
	p, err := proc.Start(name, 0, self, "-serve", what, "-upstream", r.mock.Base)
	if err == nil {
		r.gateways = append(r.gateways, p)
	}
	return p, err
}

// addLathe starts lathe with a configuration.
func (s *settings) addLathe(r *rig, name, cfg string) (*proc.Process, error) {
	path, args := s.lathe, []string{"serve", "--config", cfg, "--addr", "127.0.0.1:0", "--log", "error"}
	if s.lathe == "" {
		path = filepath.Join(s.dir, "lathe")
		if _, err := os.Stat(path); err != nil {
			if err := proc.BuildLathe(context.Background(), path); err != nil {
				return nil, err
			}
		}
	}
	if s.lathe == ownProcess {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		path, args = self, []string{"-serve", "lathe", "-upstream", cfg}
	}
	p, err := proc.Start(name, 0, path, args...)
	if err == nil {
		r.gateways = append(r.gateways, p)
	}
	return p, err
}

// ownProcess as the path of lathe is this program, which serves the same handler: tests need not build another.
const ownProcess = "-"
