// Command quickstart is the smallest program that runs a model with a tool. The README shows the
// body of main.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/sim"
	"github.com/lathe-run/lathe/tool"
)

func main() {
	type place struct {
		City string `json:"city"`
	}
	weather := tool.Func("weather", "Tells the weather of a city.", func(_ context.Context, in place) (string, error) {
		return "21 °C and dry in " + in.City, nil
	}, &tool.FuncOptions{Effect: lathe.ReadOnly, Show: []string{"*"}})
	tools, err := tool.NewSet(weather)
	if err != nil {
		log.Fatal(err)
	}
	runner, err := tool.NewRunner(tools, &tool.Options{Policy: policy.Default()})
	if err != nil {
		log.Fatal(err)
	}
	model := sim.New(nil).Model("sim/demo") // or: model, err := provider.OpenAI("gpt-5-mini", &provider.Options{Key: secret.New(key)})
	l, err := loop.New(model, runner, nil)
	if err != nil {
		log.Fatal(err)
	}
	res, err := l.Do(context.Background(), &loop.Input{Messages: []lathe.Message{lathe.User("What is the weather in Oslo?")}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Answer)
}
