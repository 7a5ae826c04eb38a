package store_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/store"
)

func ExampleNewMemory() {
	ctx := context.Background()
	s := store.NewMemory(nil)
	log := []event.Event{
		{ID: 1, RunID: "run_1", Data: &event.RunStarted{Model: "sim/demo"}},
		{ID: 2, RunID: "run_1", Data: &event.RunFinished{Reason: lathe.ReasonAnswered}},
	}
	last, err := s.Append(ctx, "run_1", 0, log...)
	fmt.Println(last, err)
	_, err = s.Append(ctx, "run_1", 1, log[1])
	fmt.Println(errors.Is(err, lathe.ErrConflict))
	for e, err := range s.Read(ctx, "run_1", 1) {
		fmt.Println(e.ID, e.Data.EventType(), err)
	}
	// Output:
	// 2 <nil>
	// true
	// 2 RunFinished <nil>
}
