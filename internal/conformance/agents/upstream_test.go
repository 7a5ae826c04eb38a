package agents

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lathe-run/lathe/sim"
)

// What the model and the tools say, so that it can be found in outputs and requests.
const (
	secretText = "PELICAN-4711"        // in the file that the agent's own tool reads
	postedText = "POSTED-0815"         // the result of the server's tool
	answerText = "HERON-2342"          // in the model's last message
	notePosted = "The note is posted." // in the answer of the run that was approved
	firstWord  = `"The `               // of that message, in a piece of the stream
)

// serverTool is the tool that the server executes.
const serverTool = "post_note"

// An upstream is the simulated model behind the server, and the service that the server's tool calls. It records requests.
type upstream struct {
	url string
	own string // the agent's tool, which only its requests of a turn have, and not those for titles and the like

	mu       sync.Mutex
	requests []modelRequest // of turns
	posts    int            // executions of the server's tool
	longest  int            // bytes of the longest text that it got
	hold     *hold
	fail     *failure
	strange  string // sent in each answer to a turn
}

// A hold stops the answer to one request after its first text.
type hold struct {
	request int           // counted from 1
	reached chan struct{} // closed when the text was sent
	release chan struct{} // closed by the test
	gone    chan struct{} // closed when the server ended the request
}

// A modelRequest is a request to the model, on any wire.
type modelRequest struct {
	tools    []string
	results  []string // of tools, in the conversation
	messages int
}

func parseModelRequest(members map[string]any) modelRequest {
	var r modelRequest
	list := func(v any) []any { l, _ := v.([]any); return l }
	for _, tool := range list(members["tools"]) {
		t, _ := tool.(map[string]any)
		f, _ := t["function"].(map[string]any) // of chat completions
		for _, d := range append(list(t["functionDeclarations"]), t, f) {
			if m, ok := d.(map[string]any); ok {
				if name, ok := m["name"].(string); ok {
					r.tools = append(r.tools, name)
				}
			}
		}
	}
	for _, name := range []string{"messages", "input", "contents"} {
		r.messages += len(list(members[name]))
		r.addResults(members[name])
	}
	return r
}

// addResults adds the results of tools within a value.
func (r *modelRequest) addResults(v any) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			r.addResults(e)
		}
	case map[string]any:
		switch {
		case v["role"] == "tool", v["type"] == "tool_result":
			r.results = append(r.results, fmt.Sprint(v["content"]))
		case v["type"] == "function_call_output":
			r.results = append(r.results, fmt.Sprint(v["output"]))
		case v["functionResponse"] != nil:
			r.results = append(r.results, fmt.Sprint(v["functionResponse"]))
		default:
			for _, name := range []string{"content", "parts"} {
				r.addResults(v[name])
			}
		}
	}
}

// startUpstream starts the model with a script for turns. Requests without the agent's own tool get a short text.
func startUpstream(t *testing.T, own, script string, h *hold, f *failure) *upstream {
	t.Helper()
	scripts := map[string]*sim.Script{}
	rest := script
	if f != nil && f.rest != "" {
		rest = f.rest
	}
	for name, text := range map[string]string{"turns": script, "rest": rest, "aside": strings.Repeat("-- turn --\ntext: A note\n", 20)} {
		s, err := sim.ParseScript(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		scripts[name] = s
	}
	u := &upstream{own: own, hold: h, fail: f}
	model := sim.New(&sim.Options{Scripts: scripts}).Handler()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /post", func(w http.ResponseWriter, r *http.Request) {
		var note struct{ Text string }
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 16<<20)).Decode(&note); err != nil {
			t.Errorf("the server's tool got %v", err)
		}
		u.mu.Lock()
		u.posts++
		u.longest = max(u.longest, len(note.Text))
		u.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"status":%q}`, postedText)
	})
	for _, path := range []string{"/v1/", "/v1beta/"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { u.serve(w, r, model) })
	}
	s := httptest.NewServer(mux)
	t.Cleanup(s.CloseClientConnections)
	u.url = s.URL
	return u
}

// posted returns how often the server's tool was executed.
func (u *upstream) posted() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.posts
}

func (u *upstream) serve(w http.ResponseWriter, r *http.Request, model http.Handler) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 16<<20))
	if err != nil {
		return
	}
	var members map[string]any
	if json.Unmarshal(body, &members) == nil {
		members["model"] = "sim/script-aside"
		req := parseModelRequest(members)
		if slices.Contains(req.tools, u.own) {
			members["model"] = "sim/script-turns"
			u.mu.Lock()
			u.requests = append(u.requests, req)
			n := len(u.requests)
			u.mu.Unlock()
			if h := u.hold; h != nil && h.request == n {
				w = &heldWriter{ResponseWriter: w, ctx: r.Context(), hold: h}
			}
			switch f := u.fail; {
			case f == nil || n < f.request:
			case n > f.request:
				members["model"] = "sim/script-rest"
			case f.status != 0:
				f.serve(w)
				return
			default:
				w = &failingWriter{ResponseWriter: w}
			}
			if u.strange != "" {
				w = &strangeWriter{ResponseWriter: w, events: u.strange}
			}
		}
		if before, after, ok := strings.Cut(r.URL.Path, "/models/bird"); ok { // Gemini's requests name the model there
			r.URL.Path, r.URL.RawPath = before+"/models/"+members["model"].(string)+after, ""
		}
		body, _ = json.Marshal(members) // it was JSON
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	model.ServeHTTP(w, r)
}

// A heldWriter stops after the first text of an answer.
type heldWriter struct {
	http.ResponseWriter
	ctx  context.Context
	hold *hold
	once sync.Once
}

func (w *heldWriter) Flush() { w.ResponseWriter.(http.Flusher).Flush() }

func (w *heldWriter) Write(b []byte) (int, error) {
	n, err := w.ResponseWriter.Write(b)
	if bytes.Contains(b, []byte(firstWord)) {
		w.once.Do(func() {
			w.Flush()
			close(w.hold.reached)
			select {
			case <-w.hold.release:
			case <-w.ctx.Done():
				close(w.hold.gone)
			}
		})
	}
	return n, err
}
