package event_test

import (
	"bytes"
	"context"
	"fmt"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/agent"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/lathetest"
)

// A logFile is a sink that writes each stored event with its content as one line. Emit must not block: this one writes to memory.
type logFile struct{ bytes.Buffer }

func (f *logFile) Emit(_ context.Context, e event.Event) {
	if line, err := e.AppendWithContent(nil); err == nil && e.ID > 0 {
		f.Write(append(line, '\n'))
	}
}

// A sink receives the events of all runs of an agent.
func ExampleSink() {
	ctx := context.Background()
	log := &logFile{}
	a, err := agent.New(lathetest.NewModel(lathetest.Text("Hello.")), &agent.Options{Sinks: []event.Sink{log}})
	if err != nil {
		panic(err)
	}
	defer a.Close(ctx)
	if _, err := a.Run(ctx, lathe.User("Hi!")); err != nil {
		panic(err)
	}
	events, err := event.ReadLog(log)
	if err != nil {
		panic(err)
	}
	for _, e := range events {
		fmt.Println(e.ID, e.Data.EventType())
	}
	// Output:
	// 1 RunStarted
	// 2 ModelCallStarted
	// 3 ModelCallFinished
	// 4 RunFinished
}

// Explain says why a model was not offered a tool, and what to do.
func ExampleWithheldTool_Explain() {
	w := event.WithheldTool{Tool: "drop_table", Reason: event.WithheldPolicy, Rule: "tools.deny"}
	fmt.Println(w.Explain())
	// Output: drop_table is withheld since the policy denies every call of it (rule "tools.deny"): allow it in the policy
}
