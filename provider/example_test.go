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
