package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The model server. The name of the model says what it does: tN answers with N pieces of text, pN the same with a wait of 5 ms before each.
// nN does the same as tN but calls no tool. For every other model, a request that has tools and no tool result gets a tool call as its
// answer.

const pace = 5 * time.Millisecond

var (
	head    = `{"id":"chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG","object":"chat.completion.chunk","created":1741570283,"model":"gpt-4o-mini-2024-07-18","service_tier":"default","system_fingerprint":"fp_06737a9306","choices":[{"index":0,"delta":`
	tail    = `,"logprobs":null,"finish_reason":null}]}`
	usage   = `"usage":{"prompt_tokens":100,"completion_tokens":50,"total_tokens":150}`
	calling = `"tool_calls":[{%s"id":"call_%d","type":"function","function":{"name":"calculator","arguments":"{\"expression\":\"6 * 7\"}"}}]`
)

func modelServer(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	tokens, wait := script(body)
	called := bytes.Contains(body, []byte(`"tools":`)) && !bytes.Contains(body, []byte(`"role":"tool"`)) && !bytes.Contains(body, []byte(`"model":"n`))
	if !bytes.Contains(body, []byte(`"stream":true`)) {
		w.Header().Set("Content-Type", "application/json")
		message, finish := fmt.Sprintf(`"content":"%s %s"`, strconv.FormatInt(time.Now().UnixNano(), 36), strings.Repeat("word ", tokens-1)), "stop"
		if called {
			message, finish = `"content":null,`+fmt.Sprintf(calling, "", time.Now().UnixNano()), "tool_calls"
		}
		_, _ = fmt.Fprintf(w, `{"id":"chatcmpl-1","object":"chat.completion","created":1741570283,"model":"gpt-4o-mini","choices":[{"index":0,"message":{"role":"assistant",%s},"logprobs":null,"finish_reason":%q}],%s}`, message, finish, usage)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	rc := http.NewResponseController(w)
	send := func(data string) bool {
		if wait > 0 {
			time.Sleep(wait)
		}
		_, err := io.WriteString(w, "data: "+data+"\n\n")
		return err == nil && rc.Flush() == nil
	}
	finish := "stop"
	send(head + `{"role":"assistant","content":""}` + tail)
	if called {
		finish = "tool_calls"
		send(head + `{` + fmt.Sprintf(calling, `"index":0,`, time.Now().UnixNano()) + `}` + tail)
	} else {
		send(head + `{"content":"` + strconv.FormatInt(time.Now().UnixNano(), 36) + ` "}` + tail) // no two answers are equal
		for range tokens - 1 {
			if !send(head + `{"content":"word "}` + tail) {
				return
			}
		}
	}
	wait = 0
	send(head + `{},"logprobs":null,"finish_reason":"` + finish + `"}]}`)
	send(strings.TrimSuffix(head, `{"index":0,"delta":`) + `],` + usage + `}`)
	send("[DONE]")
}

// script reads the name of the model.
func script(body []byte) (tokens int, wait time.Duration) {
	_, name, _ := bytes.Cut(body, []byte(`"model":"`))
	name, _, _ = bytes.Cut(name, []byte(`"`))
	if len(name) < 2 {
		return 50, 0
	}
	tokens, err := strconv.Atoi(string(name[1:]))
	if err != nil {
		tokens = 50
	}
	if name[0] == 'p' {
		wait = pace
	}
	return tokens, wait
}
