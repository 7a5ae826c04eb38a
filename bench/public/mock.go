package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
)

// The model server. It answers at once, with thirty words, on three wires. A chat completion with tools, and without a result of one, is a call.

var words = strings.SplitAfter(strings.TrimSuffix(strings.Repeat("The answer of a model has about thirty words. ", 4), " "), " ")

var text = strings.Join(words, "")

var answers atomic.Int64

func modelServer() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		writeWhole(w, `{"object":"list","data":[{"id":"gpt-4o-mini","object":"model","created":1741570283,"owned_by":"openai"}]}`)
	})
	mux.HandleFunc("POST /v1/chat/completions", answer(chatWhole, chatStream))
	mux.HandleFunc("POST /v1/responses", answer(responsesWhole, responsesStream))
	mux.HandleFunc("POST /v1/messages", answer(messagesWhole, messagesStream))
	return mux
}

// answer answers with a whole answer, or with events. id is another one for each answer.
func answer(whole func(id int64, body []byte) string, stream func(id int64) []string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		id := answers.Add(1)
		var asked struct{ Stream bool }
		if json.Unmarshal(body, &asked) != nil || !asked.Stream {
			writeWhole(w, whole(id, body))
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		rc := http.NewResponseController(w)
		for _, event := range stream(id) {
			if _, err := io.WriteString(w, event+"\n\n"); err != nil || rc.Flush() != nil {
				return
			}
		}
	}
}

func writeWhole(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, body) // the client has gone
}

func quoted(s string) string {
	b, _ := json.Marshal(s) // a string has a form
	return string(b)
}

func chatWhole(id int64, body []byte) string {
	message, finish := `"content":`+quoted(text), "stop"
	if bytes.Contains(body, []byte(`"tools":`)) && !bytes.Contains(body, []byte(`"role":"tool"`)) {
		message = fmt.Sprintf(`"content":null,"tool_calls":[{"id":"call_%d","type":"function","function":{"name":"calculator","arguments":"{\"expression\":\"6 * 7\"}"}}]`, id)
		finish = "tool_calls"
	}
	return fmt.Sprintf(`{"id":"chatcmpl-%d","object":"chat.completion","created":1741570283,"model":"gpt-4o-mini","choices":[{"index":0,"message":{"role":"assistant",%s},"finish_reason":%q}],"usage":{"prompt_tokens":25,"completion_tokens":35,"total_tokens":60}}`,
		id, message, finish)
}

func chatStream(id int64) []string {
	chunk := func(delta, finish, more string) string {
		return fmt.Sprintf(`data: {"id":"chatcmpl-%d","object":"chat.completion.chunk","created":1741570283,"model":"gpt-4o-mini","choices":[{"index":0,"delta":%s,"finish_reason":%s}]%s}`, id, delta, finish, more)
	}
	events := []string{chunk(`{"role":"assistant","content":""}`, "null", "")}
	for _, word := range words {
		events = append(events, chunk(`{"content":`+quoted(word)+`}`, "null", ""))
	}
	return append(events, chunk("{}", `"stop"`, `,"usage":{"prompt_tokens":25,"completion_tokens":35,"total_tokens":60}`), "data: [DONE]")
}

func responsesWhole(id int64, _ []byte) string {
	return response(id, "completed", responsesMessage(id, "completed", part(text)))
}

func response(id int64, status, output string) string {
	usage := "null"
	if status == "completed" {
		usage = `{"input_tokens":25,"input_tokens_details":{"cached_tokens":0},"output_tokens":35,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":60}`
	}
	return fmt.Sprintf(`{"id":"resp_%d","object":"response","created_at":1741570283,"status":%q,"model":"gpt-4o-mini","output":[%s],"usage":%s}`, id, status, output, usage)
}

func responsesMessage(id int64, status, content string) string {
	return fmt.Sprintf(`{"id":"msg_%d","type":"message","status":%q,"role":"assistant","content":[%s]}`, id, status, content)
}

func part(text string) string {
	return `{"type":"output_text","annotations":[],"text":` + quoted(text) + `}`
}

func responsesStream(id int64) (events []string) {
	at := fmt.Sprintf(`"item_id":"msg_%d","output_index":0,"content_index":0`, id)
	add := func(kind, members string) {
		events = append(events, fmt.Sprintf("event: response.%s\ndata: {\"type\":\"response.%s\",\"sequence_number\":%d,%s}", kind, kind, len(events), members))
	}
	add("created", `"response":`+response(id, "in_progress", ""))
	add("output_item.added", `"output_index":0,"item":`+responsesMessage(id, "in_progress", ""))
	add("content_part.added", at+`,"part":`+part(""))
	for _, word := range words {
		add("output_text.delta", at+`,"delta":`+quoted(word))
	}
	add("output_text.done", at+`,"text":`+quoted(text))
	add("content_part.done", at+`,"part":`+part(text))
	add("output_item.done", `"output_index":0,"item":`+responsesMessage(id, "completed", part(text)))
	add("completed", `"response":`+responsesWhole(id, nil))
	return events
}

func messagesWhole(id int64, _ []byte) string {
	return fmt.Sprintf(`{"id":"msg_%d","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":%s}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":25,"output_tokens":35}}`, id, quoted(text))
}

func messagesStream(id int64) (events []string) {
	add := func(kind, members string) {
		events = append(events, fmt.Sprintf("event: %s\ndata: {\"type\":%q%s}", kind, kind, members))
	}
	add("message_start", fmt.Sprintf(`,"message":{"id":"msg_%d","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":25,"output_tokens":1}}`, id))
	add("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`)
	for _, word := range words {
		add("content_block_delta", `,"index":0,"delta":{"type":"text_delta","text":`+quoted(word)+`}`)
	}
	add("content_block_stop", `,"index":0`)
	add("message_delta", `,"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":35}`)
	add("message_stop", "")
	return events
}
