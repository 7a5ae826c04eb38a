// Command quickstart is the smallest program that runs a model with a tool. The README shows it
// without its imports.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/agent"
	"github.com/lathe-run/lathe/sim"
	"github.com/lathe-run/lathe/tool"
)

type place struct {
	City string `json:"city"`
}

func weather(_ context.Context, in place) (string, error) {
	return "21 °C and dry in " + in.City, nil
}

func main() {
	ctx := context.Background()
	model := sim.New(nil).Model("sim/demo") // or: model, err := provider.OpenAI("gpt-5-mini", &provider.Options{Key: secret.New(key)})
	tools := []lathe.Tool{tool.Func("weather", "Returns the weather of a city.", weather, &tool.FuncOptions{Effect: lathe.ReadOnly})}
	a, err := agent.New(model, &agent.Options{Tools: tools})
	if err != nil {
		log.Fatal(err)
	}
	res, err := a.Run(ctx, lathe.User("What is the weather in Oslo?"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Answer)
	a.Close(ctx)
}
