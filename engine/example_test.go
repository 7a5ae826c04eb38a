package engine_test

import (
	"context"
	"fmt"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/lathetest"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/tool"
)

// A run in the background, each event of which is stored.
func ExampleSupervisor() {
	ctx := context.Background()
	set, err := tool.NewSet()
	if err != nil {
		panic(err)
	}
	runner, err := tool.NewRunner(set, nil)
	if err != nil {
		panic(err)
	}
	l, err := loop.New(lathetest.NewModel(lathetest.Text("Done.")), runner, nil)
	if err != nil {
		panic(err)
	}
	runs := store.NewMemory(nil)
	e, err := engine.New(&engine.Options{Store: runs})
	if err != nil {
		panic(err)
	}
	s, err := engine.NewSupervisor(e, nil)
	if err != nil {
		panic(err)
	}
	defer s.Drain(ctx)

	id, err := s.Start(ctx, l, &loop.Input{Messages: []lathe.Message{lathe.User("Begin.")}}, nil)
	if err != nil {
		panic(err)
	}
	if _, _, err := s.Wait(ctx, id); err != nil {
		panic(err)
	}
	state, err := engine.ReadState(ctx, runs, id)
	if err != nil {
		panic(err)
	}
	fmt.Println(state.Finished.Reason, state.Finished.Answer)
	// Output: answered Done.
}
