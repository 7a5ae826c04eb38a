// Command resume stores a run that waits for a tool of its client, and resumes it from the store.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/lathetest"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/tool"
)

func main() {
	ctx := context.Background()
	runs := store.NewMemory(nil) // package store/sqlite keeps runs in a file
	// A scripted model, so that the example needs no server.
	model := lathetest.NewModel(lathetest.Call("where_am_i", `{}`), lathetest.Text("You are in Oslo."))

	e, l := start(runs, model)
	res := must(e.Run(ctx, l, &loop.Input{Run: lathe.RunInfo{RunID: "run_1"}, Park: true,
		Messages:    []lathe.Message{lathe.User("Where am I?")},
		ClientTools: []*lathe.ToolSpec{{Name: "where_am_i", Schema: json.RawMessage(`{"type":"object"}`)}}}, nil))
	fmt.Println(res.Reason, res.Pending[0].Name)

	// Later, in another process: all that it needs is in the store.
	e, l = start(runs, model)
	res = must(e.Resume(ctx, l, "run_1", map[string]lathe.Output{res.Pending[0].ID: {Data: json.RawMessage(`"Oslo"`)}}))
	fmt.Println(res.Reason, res.Answer)
}

func start(runs store.Store, model lathe.Model) (*engine.Engine, *loop.Loop) {
	runner := must(tool.NewRunner(nil, nil))
	l := must(loop.New(model, runner, nil))
	e := must(engine.New(&engine.Options{Store: runs}))
	return e, l
}

// must returns v, or ends the program with the error.
func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
