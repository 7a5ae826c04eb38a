package provider_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
)

// A server that opens a stream, and says then that it is overloaded, is asked again also if its bytes are relayed: the client has got
// nothing. Once a part of the answer was relayed, the error is the client's.
func TestRelayedStreamSurvivesAnOverload(t *testing.T) {
	t.Parallel()
	event := func(typ, data string) string { return "event: " + typ + "\ndata: " + data + "\n\n" }
	chunk := func(delta string) string {
		return `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":` + delta + `,"finish_reason":null}]}` + "\n\n"
	}
	message := event("message_start", `{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}}`)
	ping := event("ping", `{"type":"ping"}`)
	block := event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
	resource := func(status string) string {
		return `"response":{"id":"resp_1","object":"response","created_at":1,"status":"` + status + `","model":"m","output":[],"error":`
	}
	begun := event("response.created", `{"type":"response.created","sequence_number":0,`+resource("in_progress")+`null}}`) +
		event("response.in_progress", `{"type":"response.in_progress","sequence_number":1,`+resource("in_progress")+`null}}`)
	text := event("response.output_item.added", `{"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}`)
	streams := map[lathe.Wire]struct{ opening, content, overload string }{
		lathe.WireOpenAIChat: {chunk(`{"role":"assistant","content":""}`), chunk(`{"content":"Hel"}`), `data: {"error":{"message":"Overloaded","type":"server_error","code":503}}` + "\n\n"},
		lathe.WireMessages:   {message + ping, block, event("error", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)},
		lathe.WireResponses:  {begun, text, event("response.failed", `{"type":"response.failed","sequence_number":2,`+resource("failed")+`{"code":"server_error","message":"Overloaded"}}}`)},
	}
	eachWire(t, func(t *testing.T, w *wireCase) {
		s, ok := streams[w.wire]
		if !ok {
			return
		}
		for name, c := range map[string]struct {
			first    string
			requests int
		}{
			"at once":                    {s.overload, 2},
			"behind the opening":         {s.opening + s.overload, 2},
			"behind content":             {s.opening + s.content + s.overload, 1},
			"behind a long opening":      {s.opening + strings.Repeat(ping, 20) + s.overload, 1},
			"cut":                        {s.opening, 1},
			"an error that is no repeat": {s.opening + strings.NewReplacer("overloaded_error", "invalid_request_error", "server_error", "invalid_request_error", `,"code":503`, "").Replace(s.overload), 1},
		} {
			if w.wire != lathe.WireMessages && name == "behind a long opening" {
				continue
			}
			requests, answered := 0, ""
			m := w.model(t, func(rw http.ResponseWriter, r *http.Request) {
				requests++
				body := c.first
				if requests > 1 {
					answered = strings.Join(w.events(w.read(t, r), finishOf(lathe.FinishStop, lathe.Text{Text: "Hello there"})), "")
					body = answered
				}
				rw.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(rw, body)
			}, nil)
			relayed := ""
			req := &lathe.Request{Messages: []lathe.Message{lathe.User("hi")}, Relay: &lathe.Relay{Wire: w.wire, Stream: true,
				Take: func(raw *lathe.Raw) { relayed += string(raw.Bytes) }}}
			failed := false
			for _, err := range m.Generate(t.Context(), req) {
				failed = failed || err != nil
			}
			if requests != c.requests || failed != (c.requests == 1) || relayed != answered && !failed || failed && strings.Contains(relayed, "Overloaded") {
				t.Errorf("%s: %d requests, want %d; failed %v; relayed %q of %q", name, requests, c.requests, failed, relayed, answered)
			}
		}
	})
}
