package provider_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/secret"
)

// A model server, as OpenAI, vLLM, Ollama and others are.
func exampleServer() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		stream(w, data(text("Good "), text("day."), finished("stop"), usage, done))
	}))
}

func ExampleOpenAI() {
	server := exampleServer()
	defer server.Close()

	model, err := provider.OpenAI("llama3.2", &provider.Options{
		BaseURL: server.URL, // such as http://localhost:11434
		Key:     secret.New("the key, if the server wants one"),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer model.CloseIdleConnections()

	req := &lathe.Request{Messages: []lathe.Message{lathe.User("Hello!")}}
	for d, err := range model.Generate(context.Background(), req) {
		if err != nil {
			fmt.Println(err)
			return
		}
		switch d.Kind {
		case lathe.DeltaText:
			fmt.Print(d.Text)
		case lathe.DeltaFinish:
			fmt.Printf("\n%s, %d tokens\n", d.Finish.Reason, d.Finish.Usage.TotalTokens)
		}
	}
	// Output:
	// Good day.
	// stop, 7 tokens
}

// The other wires have the same options.
func ExampleAnthropic() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println(r.URL.Path, r.Header.Get("X-Api-Key"))
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":5,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Good day."}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}

event: message_stop
data: {"type":"message_stop"}

`)
	}))
	defer server.Close()

	model, err := provider.Anthropic("claude-sonnet-4-5", &provider.Options{
		BaseURL: server.URL, // left out for Anthropic itself
		Key:     secret.New("key"),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer model.CloseIdleConnections()

	for d, err := range model.Generate(context.Background(), &lathe.Request{Messages: []lathe.Message{lathe.User("Hello!")}}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if d.Kind == lathe.DeltaFinish {
			fmt.Println(d.Finish.Message.Text(), d.Finish.Reason, d.Finish.Usage.TotalTokens)
		}
	}
	// Output:
	// /v1/messages key
	// Good day. stop 8
}

func ExampleOpenAI_errors() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"error":{"message":"wrong key","code":"invalid_api_key"}}`)
	}))
	defer server.Close()
	model, err := provider.OpenAI("m", &provider.Options{BaseURL: server.URL, Key: secret.New("k")})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer model.CloseIdleConnections()

	for _, err := range model.Generate(context.Background(), &lathe.Request{Messages: []lathe.Message{lathe.User("Hello!")}}) {
		var up *lathe.UpstreamError
		if errors.As(err, &up) {
			fmt.Println(up.Kind, up.Status, up.ProviderCode)
		}
		fmt.Println(err)
	}
	// Output:
	// upstream_4xx 401 invalid_api_key
	// provider: call openai: upstream_error: upstream_4xx (HTTP 401) code invalid_api_key
}
