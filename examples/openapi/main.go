// Command openapi makes a tool of one operation of an OpenAPI document. Its requests can reach that server and no other.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/egress"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/sim"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/httptool"
)

const document = `
openapi: 3.1.0
info: {title: Weather, version: "1"}
paths:
  /weather/{city}:
    get:
      operationId: get_weather
      summary: Returns the weather of a city.
      parameters: [{name: city, in: path, required: true, schema: {type: string}}]
`

func main() {
	listener := must(net.Listen("tcp", "127.0.0.1:0")) // in place of a real service
	go func() {
		_ = http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"temperature":21,"sensor":"roof-3"}`)
		}))
	}()
	port := listener.Addr().(*net.TCPAddr).Port
	client := must(egress.New(&egress.Rules{Hosts: []string{"127.0.0.1"}, Private: []string{"127.0.0.1"}, Schemes: []string{"http"}, Ports: []int{port}}, nil))
	definitions := must(httptool.Import([]byte(document), &httptool.ImportOptions{Source: "weather", Server: "http://" + listener.Addr().String(),
		Operations: []string{"get_weather"}, Allowlist: []string{"temperature"}}))
	weather := must(httptool.New(definitions[0], client, nil))
	tools := must(tool.NewSet(weather))
	runner := must(tool.NewRunner(tools, &tool.Options{Policy: policy.Default()})) // a GET only reads: it is allowed
	l := must(loop.New(sim.New(nil).Model("sim/demo"), runner, nil))
	res := must(l.Do(context.Background(), &loop.Input{Messages: []lathe.Message{lathe.User("What is the weather in Oslo?")}}))
	fmt.Println(res.Answer) // without the sensor, which the allowlist leaves out
}

// must returns v, or ends the program with the error.
func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
