package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testkit/enginetest"
)

// A world is what is outside of the nodes: the model server and the tools. It records the model calls and the executions of
// tools, which the checks compare with the logs.
type world struct {
	mu      sync.Mutex
	asked   map[string]int // model calls by tag
	deeds   map[string][]enginetest.Deed
	holding int           // streams of the model "hold" that are open
	release chan struct{} // closed when they shall end
}

// scripts are the tools that each model asks for, turn by turn, before it answers.
var scripts = map[string][][]string{
	"plain": {{"look", "put", "pay"}, {"look", "put", "pay"}},
	"asks":  {{"look", "put", "pay"}, {"pay", "ask_pay"}},
	"wait":  {{"ask_pay"}},
	"hold":  {},
}

var tools = map[string]enginetest.Tool{
	"look": {Effect: lathe.ReadOnly}, "put": {Effect: lathe.Idempotent}, "pay": {Effect: lathe.Writes},
	"ask_pay": {Effect: lathe.Writes, Asks: true},
}

func newWorld() *world {
	return &world{asked: map[string]int{}, deeds: map[string][]enginetest.Deed{}, release: make(chan struct{})}
}

// ServeHTTP is the model server, and the tools.
func (w *world) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if name, ok := strings.CutPrefix(r.URL.Path, "/do/"); ok {
		w.execute(rw, r, name)
		return
	}
	var req struct {
		Model    string
		Messages []struct {
			Role    string
			Content any
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil || len(req.Messages) == 0 {
		http.Error(rw, "no messages", http.StatusBadRequest)
		return
	}
	tag, turn := fmt.Sprint(req.Messages[0].Content), 0
	for _, m := range req.Messages {
		if m.Role == "assistant" {
			turn++
		}
	}
	w.mu.Lock()
	w.asked[tag]++
	w.mu.Unlock()
	rw.Header().Set("Content-Type", "text/event-stream")
	delta, finish := `{"role":"assistant","content":"It is done: all calls were made and their results are what you asked for."}`, "stop"
	if turns := scripts[req.Model]; turn < len(turns) {
		var calls []string
		for i, name := range turns[turn] {
			args, _ := json.Marshal(string(arguments(tag, fmt.Sprint(turn*10+i)))) // a text
			calls = append(calls, fmt.Sprintf(`{"index":%d,"id":"c%d_%d","type":"function","function":{"name":%q,"arguments":%s}}`, i, turn, i, name, args))
		}
		delta, finish = `{"role":"assistant","tool_calls":[`+strings.Join(calls, ",")+`]}`, "tool_calls"
	}
	const chunk = "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"model\":\"scripted\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n"
	_, _ = fmt.Fprintf(rw, chunk, delta, "null") // the client may be gone
	if req.Model == "hold" && !w.hold(rw, r) {
		return
	}
	_, _ = fmt.Fprintf(rw, chunk, "{}", strconv.Quote(finish))
	_, _ = fmt.Fprint(rw, "data: [DONE]\n\n")
}

// hold keeps a stream open until release is closed, and reports whether it is still to be ended.
func (w *world) hold(rw http.ResponseWriter, r *http.Request) bool {
	_ = http.NewResponseController(rw).Flush() // the client may be gone
	w.mu.Lock()
	w.holding++
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.holding--
	}()
	select {
	case <-w.release:
		return true
	case <-r.Context().Done():
		return false
	}
}

func (w *world) held() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.holding
}

// execute is a tool.
func (w *world) execute(rw http.ResponseWriter, r *http.Request, name string) {
	_, _ = io.Copy(io.Discard, r.Body) // so that the connection is used again
	run, n := r.URL.Query().Get("run"), r.URL.Query().Get("n")
	w.mu.Lock()
	w.deeds[run] = append(w.deeds[run], enginetest.Deed{RunID: run, Tool: name, Key: r.Header.Get("Idempotency-Key"), Args: arguments(run, n)})
	w.mu.Unlock()
	rw.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(rw, `{"did":%q,"note":"The tool returned this result, which is as long as a short answer of an API."}`, n) // likewise
}

func arguments(run, n string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"run":%q,"n":%q}`, run, n))
}

// configuration returns the lathe.yaml of a node.
func configuration(world string, serve ...string) string {
	var b strings.Builder
	fmt.Fprint(&b, "models:\n")
	for _, name := range slices.Sorted(maps.Keys(scripts)) {
		fmt.Fprintf(&b, "  %s: {base_url: %q, model: %s, read_timeout: 24h}\n", name, world+"/v1", name)
	}
	for _, line := range serve {
		fmt.Fprintln(&b, line)
	}
	fmt.Fprint(&b, "tool_calling: {approval_ttl: 240h, run_timeout: 240h}\n")
	fmt.Fprint(&b, "policy: {tools: {look: allow, put: allow, pay: allow, ask_pay: ask}}\ntools:\n  egress: {private: [127.0.0.1]}\n  http:\n")
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		method := "POST"
		if tools[name].Effect == lathe.ReadOnly {
			method = "GET"
		}
		fmt.Fprintf(&b, "    %s: {description: Does it., url: %q, method: %s, effect: %s, allowlist: [\"*\"], max_attempts: 1, parameters: {run: {in: query}, n: {in: query}}}\n",
			name, world+"/do/"+name, method, tools[name].Effect)
	}
	return b.String()
}
