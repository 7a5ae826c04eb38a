package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/lathe-run/lathe/sim"
)

const (
	refundQuestion = `Please refund the order "A-17".`
	stateQuestion  = `What is the state of the order "A-17"?`
)

// scripts are the models of malformed calls: each corrects itself if it is asked again.
var scripts = map[string]string{
	"not-json": `
-- turn --
call: refund {"number": "A-17
-- turn --
call: refund {"number":"A-17"}
-- turn --
text: The order A-17 is refunded.
`,
	"missing": `
-- turn --
call: refund {}
-- turn --
call: refund {"number":"A-17"}
-- turn --
text: The order A-17 is refunded.
`,
}

// servers are two model servers on loopback with the same models. The strict one refuses a request whose history has a call with
// arguments that are no JSON object, as Ollama (400) and llama.cpp (500) do; the lenient one accepts it.
type servers struct {
	strict, lenient string // addresses
	stop            func()
}

func startServers() (*servers, error) {
	parsed := map[string]*sim.Script{}
	for name, text := range scripts {
		script, err := sim.ParseScript(strings.NewReader(text))
		if err != nil {
			return nil, err
		}
		parsed[name] = script
	}
	models := sim.New(&sim.Options{Scripts: parsed}).Handler()
	strict, lenient := httptest.NewServer(asGemini(models)), httptest.NewServer(asGemini(repair(models)))
	return &servers{strict.URL, lenient.URL, func() {
		strict.Close()
		lenient.Close()
	}}, nil
}

// repair replaces arguments in histories of chat completions that are no JSON by an empty object.
func repair(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var request map[string]any
		if strings.HasSuffix(r.URL.Path, "/chat/completions") && json.Unmarshal(body, &request) == nil {
			messages, _ := request["messages"].([]any)
			for _, m := range messages {
				message, _ := m.(map[string]any)
				calls, _ := message["tool_calls"].([]any)
				for _, c := range calls {
					call, _ := c.(map[string]any)
					function, _ := call["function"].(map[string]any)
					if text, ok := function["arguments"].(string); ok && !json.Valid([]byte(text)) {
						function["arguments"] = "{}"
					}
				}
			}
			body, _ = json.Marshal(request) // it was JSON
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		next.ServeHTTP(w, r)
	})
}

// asGemini leaves out the empty content of an answer that ends with MALFORMED_FUNCTION_CALL, which Gemini does not send.
func asGemini(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(malformed{w}, r) })
}

type malformed struct{ http.ResponseWriter }

func (m malformed) Unwrap() http.ResponseWriter { return m.ResponseWriter }

func (m malformed) Write(b []byte) (int, error) {
	end := `"finishReason":"MALFORMED_FUNCTION_CALL"`
	_, err := m.ResponseWriter.Write(bytes.ReplaceAll(b, []byte(`"content":{"role":"model","parts":[{"text":""}]},`+end), []byte(end)))
	return len(b), err
}
