package app_test

import (
	"context"
	"fmt"
	"log"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/loop"
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

// A program runs one prompt with a model of lathe.yaml and a Go tool of its own, without a server.
func ExampleOpenSession() {
	ctx := context.Background()
	cfg, err := app.LoadConfig("testdata/lathe.yaml", nil)
	if err != nil {
		log.Fatal(err)
	}
	entry, err := cfg.Model("demo")
	if err != nil {
		log.Fatal(err)
	}
	s, err := app.OpenSession(ctx, cfg, entry, &app.SessionOptions{Tools: []lathe.Tool{weather()}, Allow: []string{"weather"}})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = s.Close(ctx) }()
	res, err := s.Run(ctx, &loop.Input{Messages: []lathe.Message{lathe.User("What is the weather in Oslo?")}, Allow: []string{"weather"}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Answer)
	// Output: weather says: 21 °C and dry in Oslo.
}
