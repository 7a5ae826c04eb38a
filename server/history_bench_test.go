package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

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

// appendNext appends to a request of [historyForm.conversation] what the next request of the conversation has in addition: a round with that number,
// and a question. All messages of body stay what they are. It may use the memory of body.
func (f *historyForm) appendNext(body []byte, number int) []byte {
	return append(f.appendRound(body[:len(body)-len("]}")], number), f.tail...)
}

// historyGateway returns a function that sends a request on a wire, without sockets. It has read body when it returns. With tools it is a
// run with tools of this server; else it is relayed.
func historyGateway(tb testing.TB, wire string, tools bool) (send func(body []byte)) {
	stream := chunk(roleChunk, "null") + strings.Repeat(chunk(`{"content":"word "}`, "null"), 5) + chunk(`{}`, `"stop"`) + usageChunk + "data: [DONE]\n\n"
	up := transportFunc(func(r *http.Request) (*http.Response, error) {
		_, err := io.Copy(io.Discard, r.Body)
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(stream)), Request: r}, err
	})
	form := historyForms[wire]
	h := benchGateway(tb, &provider.Options{BaseURL: "http://127.0.0.1:1/v1", Transport: up}, tools, true)
	return func(body []byte) {
		r := httptest.NewRequest("POST", "http://localhost"+form.path, bytes.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != 200 {
			tb.Fatal(w.Code, w.Body)
		}
	}
}

// historyRequest returns a function that makes a request with a history of about size bytes on a [historyGateway], and the length of its body.
func historyRequest(tb testing.TB, wire string, tools bool, size int) (request func(), length int) {
	form, send := historyForms[wire], historyGateway(tb, wire, tools)
	body := form.conversation(size)
	return func() { send(body) }, len(body)
}

// historyModes are the requests whose cost is measured.
var historyModes = []struct {
	name, wire string
	tools      bool
}{{"relayed", "chat", false}, {"tools", "chat", true}, {"messages", "messages", true}, {"responses", "responses", true}, {"gemini", "gemini", true}}

// The cost of a request grows with its history: bytes per second of requests that are relayed, and of requests that make a run
// with tools of this server, on four wires. Sockets are not part of it.
func BenchmarkHistory(b *testing.B) {
	for _, mode := range historyModes {
		for _, size := range []int{10_000, 100_000, 1_000_000, 5_000_000} {
			b.Run(fmt.Sprintf("%s/%dKB", mode.name, size/1000), func(b *testing.B) {
				request, length := historyRequest(b, mode.wire, mode.tools, size)
				b.SetBytes(int64(length))
				b.ReportAllocs()
				before := cpuTime()
				for b.Loop() {
					request()
				}
				b.ReportMetric(float64(cpuTime()-before)/float64(b.N)/1e6, "cpu-ms/op")
			})
		}
	}
}

// nextRequests is the number of requests of a conversation after the first that BenchmarkNextRequest makes before it begins another
// conversation. With 1 MB the last one is 5 % longer than the first.
const nextRequests = 20

// The cost of the next request of a conversation, which has a round more than the one before, as agents send it. BenchmarkHistory sends one and the
// same request; this benchmark sends no request twice, and does not measure the first one of a conversation.
func BenchmarkNextRequest(b *testing.B) {
	for _, mode := range historyModes {
		for _, size := range []int{10_000, 100_000, 1_000_000} {
			b.Run(fmt.Sprintf("%s/%dKB", mode.name, size/1000), func(b *testing.B) {
				form, send := historyForms[mode.wire], historyGateway(b, mode.wire, mode.tools)
				first := form.conversation(size)
				body := make([]byte, 0, 2*len(first)+nextRequests*len(form.appendRound(nil, math.MaxInt32)))
				b.ReportAllocs()
				var spent time.Duration
				number, sent := 1_000_000, int64(0) // rounds have numbers that no request has had
				for b.Loop() {
					b.StopTimer()
					if number%(nextRequests+1) == 0 || sent == 0 {
						body = form.appendRound(append(body[:0], form.head...), number)
						body = append(body, first[len(form.head):]...)
						send(body)
					}
					number++
					body = form.appendNext(body, number)
					sent += int64(len(body))
					b.StartTimer()
					before := cpuTime()
					send(body)
					spent += cpuTime() - before
				}
				b.SetBytes(sent / int64(b.N))
				b.ReportMetric(float64(spent)/float64(b.N)/1e6, "cpu-ms/op")
			})
		}
	}
}

// The next request of a conversation has all bytes of the one before except for the two that end it, and is accepted.
func TestNextRequestsContainTheOnesBefore(t *testing.T) {
	t.Parallel()
	for _, mode := range historyModes {
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			form, send := historyForms[mode.wire], historyGateway(t, mode.wire, mode.tools)
			body := form.conversation(10_000)
			for i := range 3 {
				before := bytes.Clone(body)
				send(body)
				body = form.appendNext(body, 1_000_000+i)
				if kept, ok := bytes.CutSuffix(before, []byte("]}")); !ok || !bytes.HasPrefix(body, kept) || len(body) <= len(before) || !json.Valid(body) {
					t.Fatalf("request %d does not contain the one before, or is no JSON", i+1)
				}
			}
			send(body)
		})
	}
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
