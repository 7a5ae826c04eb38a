package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/app"
	"github.com/lathe-run/lathe/tool"
)

type place struct {
	City string `json:"city"`
}

func weather() lathe.Tool {
	return tool.Func("weather", "Tells the weather of a city.", func(_ context.Context, in place) (string, error) {
		return "21 °C and dry in " + in.City, nil
	}, &tool.FuncOptions{Effect: lathe.ReadOnly, Show: []string{"*"}})
}

// A program serves the models of lathe.yaml with a Go tool of its own and an http.Server of its own, and lets requests
// finish before it ends.
func Example() {
	cfg, err := app.LoadConfig("../internal/app/testdata/lathe.yaml", nil)
	if err != nil {
		log.Fatal(err)
	}
	a, err := app.New(cfg, &app.Options{Tools: []lathe.Tool{weather()}})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /hello", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })
	mux.Handle("/", a.Handler())
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(a.Listener(ln)) }()

	fmt.Println(ask("http://" + ln.Addr().String()))

	// On a signal:
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if left := a.Shutdown(ctx, srv); left > 0 {
		log.Printf("%d runs are left in the store", left)
	}
	fmt.Println(<-served)
	if err := a.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// Let me use weather.
	//
	// weather says: 21 °C and dry in Oslo.
	// http: Server closed
}

// ask sends one prompt, as any client of OpenAI's API does.
func ask(base string) string {
	res, err := http.Post(base+"/v1/chat/completions", "application/json",
		strings.NewReader(`{"model":"demo","messages":[{"role":"user","content":"What is the weather in Oslo?"}]}`))
	if err != nil {
		log.Fatal(err)
	}
	defer res.Body.Close()
	var out struct {
		Choices []struct{ Message struct{ Content string } }
	}
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil || len(out.Choices) != 1 {
		log.Fatal(res.Status, err)
	}
	return out.Choices[0].Message.Content
}
