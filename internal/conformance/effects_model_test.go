package conformance

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// effectPrompt is what each client is asked. The model calls send_mail for requests that have it as a message.
const effectPrompt = "Please mail ann."

// effectAnswer is what the model says after the mail.
const effectAnswer = "The mail is out."

// A failurePlace is where an exchange fails after the tool has been executed.
type failurePlace struct {
	name string
	// says is text that the model writes before the call, so that the stream has begun when something fails.
	says string
	// modelFails is how many model calls after the tool's result are answered 500.
	modelFails int
	// hangs is how many model calls after the tool's result get no answer.
	hangs int
	// slow has the model pause between the text and the end of its last message.
	slow bool
	// cut is what the proxy in front of the gateway does to the first exchange: see [cutter].
	cut string
}

var failurePlaces = []failurePlace{
	{name: "nothing-fails"},
	{name: "status-502", modelFails: 3},
	{name: "error-in-stream", says: "One moment. ", modelFails: 3},
	{name: "cut-before-first-byte", cut: cutFirst, hangs: 1},
	{name: "cut-in-text", says: "One moment. ", slow: true, cut: cutText},
	{name: "cut-before-finish", cut: cutFinish},
	{name: "cut-after-finish", cut: cutDone},
	{name: "proxy-504", hangs: 1, cut: cutTimeout},
	{name: "client-timeout", hangs: 1},
}

// An effectCell is what one client did at one failure place.
type effectCell struct {
	place  *failurePlace
	client string

	mu       sync.Mutex
	requests int           // of the client, for the prompt
	after    int           // model calls after the tool's result
	effects  int           // executions of the tool
	executed chan struct{} // closed at the first one
	refused  []string      // answers 400 of the gateway
	outcome  string
}

func (c *effectCell) model() string { return c.client + "." + c.place.name }

// effectCells are the cells of clients by the name of their model.
func effectCells(clients []string) map[string]*effectCell {
	cells := map[string]*effectCell{}
	for _, client := range clients {
		for i := range failurePlaces {
			c := &effectCell{place: &failurePlaces[i], client: client, executed: make(chan struct{})}
			cells[c.model()] = c
		}
	}
	return cells
}

// A chatRequest is what the model and the proxy read of a chat completion.
type chatRequest struct {
	Model    string `json:"model"`
	Stream   bool   `json:"stream"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
}

// wantsMail reports whether the request asks for the mail. Agents also send the prompt to have a title made of it, and
// with the answer to have memories made of both.
func (r *chatRequest) wantsMail() bool {
	wants := false
	for _, m := range r.Messages {
		text := string(m.Content)
		switch {
		case m.Role == "user" && strings.Contains(text, effectPrompt):
			wants = !strings.Contains(strings.ToLower(text), "generate a title")
		case m.Role == "assistant" && strings.Contains(text, effectAnswer):
			return false
		}
	}
	return wants
}

// mailed reports whether the model has the result of the tool.
func (r *chatRequest) mailed() bool {
	for _, m := range r.Messages {
		if m.Role == "tool" && strings.Contains(string(m.Content), "posted") {
			return true
		}
	}
	return false
}

// effectServer is the model server of the cells, and the service that the tool posts to.
func effectServer(t *testing.T, cells map[string]*effectCell) string {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /mail", func(w http.ResponseWriter, r *http.Request) {
		var mail struct{ To string }
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&mail); err != nil || cells[mail.To] == nil {
			t.Errorf("a mail to %q: %v", mail.To, err)
			return
		}
		c := cells[mail.To]
		c.mu.Lock()
		if c.effects++; c.effects == 1 {
			close(c.executed)
		}
		c.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"status":"posted"}`)
	})
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		var req chatRequest
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<24)).Decode(&req); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		c := cells[req.Model]
		switch {
		case c == nil:
			http.Error(w, "no such model", http.StatusNotFound)
		case !req.wantsMail():
			speak(w, r, &req, "Fine.", "", false)
		case !req.mailed():
			speak(w, r, &req, c.place.says, c.model(), false)
		default:
			c.mu.Lock()
			c.after++
			n := c.after
			c.mu.Unlock()
			switch p := c.place; {
			case n <= p.modelFails:
				http.Error(w, `{"error":{"message":"boom","type":"server_error"}}`, http.StatusInternalServerError)
			case n <= p.hangs:
				<-r.Context().Done()
			default:
				speak(w, r, &req, effectAnswer, "", p.slow && n == 1)
			}
		}
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

// speak writes one message of the model: text, and a call of send_mail where to is set.
func speak(w http.ResponseWriter, r *http.Request, req *chatRequest, text, to string, slow bool) {
	message := map[string]any{"role": "assistant", "content": text}
	finish := "stop"
	if to != "" {
		args, _ := json.Marshal(map[string]string{"to": to})
		message["tool_calls"] = []any{map[string]any{"index": 0, "id": "call_1", "type": "function", "function": map[string]any{"name": "send_mail", "arguments": string(args)}}}
		finish = "tool_calls"
	}
	usage := map[string]int{"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
	if !req.Stream {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{"id": "c", "object": "chat.completion", "created": 1, "model": req.Model, "usage": usage,
			"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": finish}}})
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	chunk := func(choices []any, more map[string]any) {
		data := map[string]any{"id": "c", "object": "chat.completion.chunk", "created": 1, "model": req.Model, "choices": choices}
		for k, v := range more {
			data[k] = v
		}
		b, _ := json.Marshal(data)
		fmt.Fprintf(w, "data: %s\n\n", b)
		w.(http.Flusher).Flush()
	}
	chunk([]any{map[string]any{"index": 0, "delta": message}}, nil)
	if slow {
		select {
		case <-r.Context().Done():
			return
		case <-time.After(20 * time.Second): // the proxy cuts before
		}
	}
	chunk([]any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": finish}}, nil)
	chunk([]any{}, map[string]any{"usage": usage})
	fmt.Fprint(w, "data: [DONE]\n\n")
}
