// Command server serves what `lathe serve` does from within a program, with a Go function among the tools.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/app"
	"github.com/lathe-run/lathe/tool"
)

type place struct {
	City string `json:"city"`
}

func main() {
	weather := tool.Func("weather", "Returns the weather of a city.", func(_ context.Context, in place) (string, error) {
		return "21 °C in " + in.City, nil
	}, &tool.FuncOptions{Effect: lathe.ReadOnly, Show: []string{"*"}})
	cfg := must(app.LoadConfig("", nil)) // or of a file, "lathe.yaml"
	a := must(app.New(cfg, &app.Options{Tools: []lathe.Tool{weather}}))
	srv := a.HTTPServer(a.Handler())
	listener := must(net.Listen("tcp", "127.0.0.1:0")) // or ":8700", with keys in the configuration
	go func() { _ = srv.Serve(a.Listener(listener)) }()

	resp := must(http.Post("http://"+listener.Addr().String()+"/v1/chat/completions", "application/json",
		strings.NewReader(`{"model":"sim/demo","messages":[{"role":"user","content":"What is the weather in Oslo?"}]}`)))
	defer func() { _ = resp.Body.Close() }()
	body := must(io.ReadAll(io.LimitReader(resp.Body, 1<<20)))
	fmt.Println(resp.Status, strings.Contains(string(body), "21 °C in Oslo"))

	a.Shutdown(context.Background(), srv) // lets requests and runs finish
	if err := a.Close(); err != nil {
		log.Fatal(err)
	}
}

// must returns v, or ends the program with the error.
func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
