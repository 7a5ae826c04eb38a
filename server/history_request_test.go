package server_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/provider"
)

// A historyForm is how a wire writes a conversation with a tool of the client.
type historyForm struct{ path, head, round, tail string }

var historyForms = map[string]historyForm{
	"chat": {"/v1/chat/completions", `{"model":"m","stream":true,"tools":[` + weatherTool + `],"messages":[{"role":"system","content":"Be brief."}`,
		`,{"role":"user","content":"N TEXT"},{"role":"assistant","content":null,"tool_calls":[{"id":"call_N","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Oslo\",\"note\":\"NOTE\"}"}}]},` +
			`{"role":"tool","tool_call_id":"call_N","content":"TEXT"},{"role":"assistant","content":"TEXT"}`,
		`,{"role":"user","content":"And now?"}]}`},
	"messages": {"/v1/messages", `{"model":"m","stream":true,"max_tokens":100,"tools":[{"name":"weather","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"Be brief."}`,
		`,{"role":"user","content":[{"type":"text","text":"N TEXT"}]},{"role":"assistant","content":[{"type":"tool_use","id":"call_N","name":"weather","input":{"city":"Oslo","note":"NOTE"}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_N","content":"TEXT"}]},{"role":"assistant","content":[{"type":"text","text":"TEXT"}]}`,
		`,{"role":"user","content":"And now?"}]}`},
	"responses": {"/v1/responses", `{"model":"m","stream":true,"store":false,"tools":[{"type":"function","name":"weather","parameters":{"type":"object"}}],"input":[{"role":"developer","content":"Be brief."}`,
		`,{"type":"message","role":"user","content":[{"type":"input_text","text":"N TEXT"}]},{"type":"function_call","call_id":"call_N","name":"weather","arguments":"{\"city\":\"Oslo\",\"note\":\"NOTE\"}"},` +
			`{"type":"function_call_output","call_id":"call_N","output":"TEXT"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"TEXT"}]}`,
		`,{"type":"message","role":"user","content":[{"type":"input_text","text":"And now?"}]}]}`},
	"gemini": {"/v1beta/models/m:streamGenerateContent?alt=sse", `{"tools":[{"functionDeclarations":[{"name":"weather"}]}],"contents":[{"role":"user","parts":[{"text":"Be brief."}]}`,
		`,{"role":"user","parts":[{"text":"N TEXT"}]},{"role":"model","parts":[{"functionCall":{"name":"weather","args":{"city":"Oslo","note":"NOTE"}}}]},` +
			`{"role":"user","parts":[{"functionResponse":{"name":"weather","response":{"result":"TEXT"}}}]},{"role":"model","parts":[{"text":"TEXT"}]}`,
		`,{"role":"user","parts":[{"text":"And now?"}]}]}`},
}

// conversation returns a request whose messages have about size bytes in messages of half a kilobyte: questions, calls of a
// tool of the client, their results, and answers.
func (f *historyForm) conversation(size int) []byte {
	b := []byte(f.head)
	for i := 0; len(b) < size; i++ {
		b = f.appendRound(b, i)
	}
	return append(b, f.tail...)
}

// appendRound appends the messages of a round with that number.
func (f *historyForm) appendRound(b []byte, number int) []byte {
	text, note := strings.Repeat(`All work and no play \"makes\" Jack a dull boy.\n`, 12), strings.Repeat("north ", 60)
	return append(b, strings.NewReplacer("TEXT", text, "NOTE", note, "N", strconv.Itoa(number)).Replace(f.round)...)
}

// historyRequest returns a function that makes a request with a history of about size bytes, without sockets, and the length of its body. With
// tools it is a run with tools of this server; else it is relayed.
func historyRequest(tb testing.TB, wire string, tools bool, size int) (request func(), length int) {
	stream := chunk(roleChunk, "null") + strings.Repeat(chunk(`{"content":"word "}`, "null"), 5) + chunk(`{}`, `"stop"`) + usageChunk + "data: [DONE]\n\n"
	up := transportFunc(func(r *http.Request) (*http.Response, error) {
		_, err := io.Copy(io.Discard, r.Body)
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(stream)), Request: r}, err
	})
	form := historyForms[wire]
	h := benchGateway(tb, &provider.Options{BaseURL: "http://127.0.0.1:1/v1", Transport: up}, tools, true)
	body := form.conversation(size)
	return func() {
		r := httptest.NewRequest("POST", "http://localhost"+form.path, bytes.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != 200 {
			tb.Fatal(w.Code, w.Body)
		}
	}, len(body)
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
