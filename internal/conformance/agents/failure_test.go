package agents

import (
	"fmt"
	"net/http"
	"strings"
)

// A failure is what the model server does to one request in place of an answer.
type failure struct {
	request int // counted from 1
	// status and body are the answer. With status 0 the error comes in the stream, after the first text of an answer.
	status int
	body   string
	after  string // Retry-After
	// rest, if set, is the script of all later requests: an agent that makes its history shorter sends another conversation.
	rest string
}

const (
	limitedBody  = `{"error":{"message":"Too many requests.","type":"rate_limit_error","code":"rate_limit_exceeded"}}`
	failedBody   = `{"error":{"message":"The server had an error.","type":"server_error","code":null}}`
	overflowBody = `{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens. Please reduce the length of the messages.",` +
		`"type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`
)

// serve answers the request with the status.
func (f *failure) serve(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	if f.after != "" {
		w.Header().Set("Retry-After", f.after)
	}
	w.WriteHeader(f.status)
	fmt.Fprint(w, f.body)
}

// A failingWriter ends a stream with an error after the first text of the answer.
type failingWriter struct {
	http.ResponseWriter
	failed bool
}

func (w *failingWriter) Flush() { w.ResponseWriter.(http.Flusher).Flush() }

func (w *failingWriter) Write(b []byte) (int, error) {
	if w.failed {
		return len(b), nil
	}
	n, err := w.ResponseWriter.Write(b)
	if strings.Contains(string(b), firstWord) {
		w.failed = true
		fmt.Fprintf(w.ResponseWriter, "data: %s\n\n", failedBody)
		w.Flush()
	}
	return n, err
}

// unknownEvents are events and members that no client knows, in the form of each wire. A server of a later version sends such.
var unknownEvents = map[string]string{
	"openai": `data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"x_unknown":{"a":[1]}},"x_more":1}],"x_unknown":2}` + "\n\n",
	"responses": "event: response.x_unknown.delta\n" + `data: {"type":"response.x_unknown.delta","sequence_number":0,"output_index":90,"item_id":"x_1","delta":{"a":1}}` + "\n\n" +
		"event: response.output_item.done\n" + `data: {"type":"response.output_item.done","sequence_number":0,"output_index":91,"item":{"id":"x_1","type":"x_unknown_call","status":"completed","action":{"a":1}}}` + "\n\n",
	"anthropic": "event: x_unknown\n" + `data: {"type":"x_unknown","index":0,"delta":{"type":"x_unknown_delta","a":1}}` + "\n\n",
	"gemini":    `data: {"candidates":[{"content":{"role":"model","parts":[{"xUnknown":{"a":1}}]},"index":0,"xMore":1}],"xUnknown":2}` + "\n\n",
}

// A strangeWriter sends events of unknown types before the model's text or call.
type strangeWriter struct {
	http.ResponseWriter
	events string
	sent   bool
}

func (w *strangeWriter) Flush() { w.ResponseWriter.(http.Flusher).Flush() }

func (w *strangeWriter) Write(b []byte) (int, error) {
	// An answer on Responses and Messages begins with an event of its own.
	if text := string(b); !w.sent && !strings.Contains(text, "response.created") && !strings.Contains(text, "response.in_progress") && !strings.Contains(text, "message_start") {
		w.sent = true
		fmt.Fprint(w.ResponseWriter, w.events)
	}
	return w.ResponseWriter.Write(b)
}
