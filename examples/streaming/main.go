// Command streaming prints the answer of a model piece by piece, and each call as it happens.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/sim"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/builtin"
)

func main() {
	tools, err := tool.NewSet(builtin.Calculator())
	if err != nil {
		log.Fatal(err)
	}
	runner, err := tool.NewRunner(tools, &tool.Options{Policy: policy.Default()})
	if err != nil {
		log.Fatal(err)
	}
	l, err := loop.New(sim.New(nil).Model("sim/demo"), runner, nil)
	if err != nil {
		log.Fatal(err)
	}
	in := &loop.Input{Messages: []lathe.Message{lathe.User("What is 7 + 35?")}}
	for e := range l.Run(context.Background(), in) {
		switch d := e.Data.(type) {
		case *event.TextDelta:
			fmt.Print(d.Text)
		case *event.ToolCallPlanned:
			fmt.Printf("\n[%s begins]\n", d.Tool)
		case *event.ToolCallResult:
			fmt.Printf("[%s: %s]\n", d.Tool, d.Status)
		case *event.RunFinished:
			fmt.Printf("\n%s after %d turns\n", d.Reason, d.Turns)
		}
	}
}
