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

// The rows of runs are derived from their events. After is the cursor of the next page.
func ExampleMemory_Runs() {
	ctx := context.Background()
	s := store.NewMemory(nil)
	for _, id := range []string{"run_1", "run_2", "run_3"} {
		_, err := s.Append(ctx, id, 0,
			event.Event{ID: 1, RunID: id, SessionID: "chat-7", Data: &event.RunStarted{Model: "sim/demo"}},
			event.Event{ID: 2, RunID: id, SessionID: "chat-7", Data: &event.RunFinished{Reason: lathe.ReasonAnswered, Status: lathe.ReasonAnswered.Status()}})
		if err != nil {
			panic(err)
		}
	}
	f := &store.RunFilter{SessionID: "chat-7", Limit: 2}
	for page := 1; ; page++ {
		rows, next, err := s.Runs(ctx, f)
		if err != nil {
			panic(err)
		}
		for _, row := range rows {
			fmt.Println(page, row.RunID, row.Status)
		}
		if f.After = next; next == "" {
			break
		}
	}
	// Output:
	// 1 run_3 completed
	// 1 run_2 completed
	// 2 run_1 completed
}
