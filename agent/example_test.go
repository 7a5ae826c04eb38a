package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/agent"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/lathetest"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/agenttool"
)

// The models of these examples follow a script. A real one is made by package provider.

func ExampleAgent_Run() {
	ctx := context.Background()
	model := lathetest.NewModel(lathetest.Call("weather", `{"city":"Oslo"}`), lathetest.Text("It is dry."), lathetest.Text("You are welcome."))
	weather := tool.Func("weather", "Returns the weather of a city.", func(_ context.Context, in struct {
		City string `json:"city"`
	}) (string, error) {
		return "dry in " + in.City, nil
	}, &tool.FuncOptions{Effect: lathe.ReadOnly})
	a, err := agent.New(model, &agent.Options{Instructions: "Be brief.", Tools: []lathe.Tool{weather}})
	if err != nil {
		panic(err)
	}
	defer a.Close(ctx)

	res, err := a.Run(ctx, lathe.User("What is the weather in Oslo?"))
	if err != nil {
		panic(err)
	}
	fmt.Println(res.Answer, res.ToolCalls)

	// The history and a new message continue the conversation.
	res, err = a.Run(ctx, append(res.History, lathe.User("Thanks!"))...)
	if err != nil {
		panic(err)
	}
	fmt.Println(res.Answer, len(res.History))
	// Output:
	// It is dry. 1
	// You are welcome. 7
}

func ExampleAgent_Stream() {
	ctx := context.Background()
	a, err := agent.New(lathetest.NewModel(lathetest.Text("One two three.")), nil)
	if err != nil {
		panic(err)
	}
	defer a.Close(ctx)

	for e, err := range a.Stream(ctx, lathe.User("Count.")) {
		if err != nil {
			panic(err) // the error that Run would return
		}
		switch d := e.Data.(type) {
		case *event.TextDelta:
			fmt.Printf("%q\n", d.Text)
		case *event.RunFinished:
			fmt.Println(d.Reason, loop.Ended(d).Usage.OutputTokens)
		}
	}
	// Output:
	// "One "
	// "two "
	// "three."
	// answered 3
}

type invoice struct {
	Number string  `json:"number"`
	EUR    float64 `json:"eur"`
}

// The first answer does not match the schema of the type. The model receives it with the error, and answers again.
func ExampleRunAs() {
	ctx := context.Background()
	model := lathetest.NewModel(lathetest.Text(`{"number":"A-1"}`), lathetest.Text(`{"number":"A-1","eur":42.5}`))
	a, err := agent.New(model, nil)
	if err != nil {
		panic(err)
	}
	defer a.Close(ctx)

	value, res, err := agent.RunAs[invoice](ctx, a, lathe.User("Invoice A-1, 42.50 euro."))
	if err != nil {
		panic(err)
	}
	fmt.Println(value.Number, value.EUR, res.Reason)
	// Output: A-1 42.5 answered
}

func ExampleStreamAs() {
	ctx := context.Background()
	a, err := agent.New(lathetest.NewModel(lathetest.Text(`{"title":"Report of the year", "lines":["up", "down"]}`)), nil)
	if err != nil {
		panic(err)
	}
	defer a.Close(ctx)

	type report struct {
		Title string   `json:"title"`
		Lines []string `json:"lines"`
	}
	for p, err := range agent.StreamAs[report](ctx, a, lathe.User("Report.")) {
		switch {
		case err != nil:
			panic(err)
		case p.Result == nil: // the beginning of the answer: its texts may be cut
			fmt.Printf("%q %q\n", p.Value.Title, p.Value.Lines)
		default: // the answer, which matches the schema
			fmt.Printf("%q %q, %s\n", p.Value.Title, p.Value.Lines, p.Result.Reason)
		}
	}
	// Output:
	// "Report " []
	// "Report of the year" ["up"]
	// "Report of the year" ["up" "down"], answered
}

// A call that writes waits until a person has approved it.
func ExampleAgent_Approve() {
	ctx := context.Background()
	type order struct {
		ID string `json:"id"`
	}
	refund := tool.Func("refund", "Refunds an order.", func(_ context.Context, in order) (string, error) {
		fmt.Println("refunding", in.ID)
		return "refunded", nil
	}, &tool.FuncOptions{Effect: lathe.Writes})
	model := lathetest.NewModel(lathetest.Call("refund", `{"id":"A-1"}`), lathetest.Text("Done."))
	a, err := agent.New(model, &agent.Options{Tools: []lathe.Tool{refund}})
	if err != nil {
		panic(err)
	}
	defer a.Close(ctx)

	_, err = a.Run(ctx, lathe.User("Refund A-1."))
	fmt.Println("waits:", errors.Is(err, agent.ErrWaiting))
	waiting, err := a.Waiting(ctx)
	if err != nil {
		panic(err)
	}
	for _, r := range waiting {
		fmt.Printf("%s %s\n", r.Tool, r.Arguments)
		if err := a.Approve(ctx, r.Digest, "ann"); err != nil {
			panic(err)
		}
		res, err := a.Wait(ctx, r.RunID) // the run continues in the background
		if err != nil {
			panic(err)
		}
		fmt.Println(res.Answer)
	}
	// Output:
	// waits: true
	// refund {"id":"A-1"}
	// refunding A-1
	// Done.
}

// The runs of one conversation share a session, by which the store lists them.
func ExampleAgent_With() {
	ctx := context.Background()
	runs := store.NewMemory(nil)
	a, err := agent.New(lathetest.NewModel(lathetest.Text("Hello."), lathetest.Text("Good day.")), &agent.Options{Store: runs})
	if err != nil {
		panic(err)
	}
	defer a.Close(ctx)

	user := a.With(loop.Input{Run: lathe.RunInfo{SessionID: "chat-7", Labels: map[string]string{"team": "sales"}}})
	if _, err := user.Run(ctx, lathe.User("Hi!")); err != nil {
		panic(err)
	}
	if _, err := a.Run(ctx, lathe.User("Hi!")); err != nil {
		panic(err)
	}
	rows, _, err := runs.Runs(ctx, &store.RunFilter{SessionID: "chat-7"})
	if err != nil {
		panic(err)
	}
	for _, row := range rows {
		fmt.Println(row.SessionID, row.Status, row.Turns)
	}
	// Output: chat-7 completed 1
}

// A tool of one agent is a run of another. The caller's limits and its cancellation apply to that run.
func Example_agentAsTool() {
	ctx := context.Background()
	researcher, err := agent.New(lathetest.NewModel(lathetest.Text("Two sources.")), nil)
	if err != nil {
		panic(err)
	}
	defer researcher.Close(ctx)
	research, err := agenttool.New("research", "Finds sources.", func(ctx context.Context, in *loop.Input) (*event.Result, error) {
		return researcher.With(*in).Run(ctx)
	}, &agenttool.Options{Instructions: "Name sources only.", Effect: lathe.ReadOnly})
	if err != nil {
		panic(err)
	}

	model := lathetest.NewModel(lathetest.Call("research", `{"task":"Find sources on lathes."}`), lathetest.Text("I have two."))
	writer, err := agent.New(model, &agent.Options{Tools: []lathe.Tool{research}})
	if err != nil {
		panic(err)
	}
	defer writer.Close(ctx)
	res, err := writer.Run(ctx, lathe.User("Write about lathes."))
	if err != nil {
		panic(err)
	}
	for _, m := range res.History {
		for _, p := range m.Parts {
			if r, ok := p.(lathe.ToolResult); ok {
				fmt.Println(r.Name, r.Content)
			}
		}
	}
	fmt.Println(res.Answer)
	// Output:
	// research Two sources.
	// I have two.
}

// A message with a picture. A picture on the web has a URL in place of Data.
func Example_picture() {
	ctx := context.Background()
	model := lathetest.NewModel(lathetest.Text("A red square."))
	a, err := agent.New(model, nil)
	if err != nil {
		panic(err)
	}
	defer a.Close(ctx)

	png := []byte("\x89PNG\r\n\x1a\n…") // the content of a file
	res, err := a.Run(ctx, lathe.Message{Role: lathe.RoleUser, Parts: []lathe.Part{
		lathe.Text{Text: "What is in this picture?"},
		lathe.Blob{MediaType: "image/png", Data: png},
	}})
	if err != nil {
		panic(err)
	}
	fmt.Println(res.Answer)
	// Output: A red square.
}

// Prepare adds to each request what the program knows of the user, whose name is the principal of the run. The history does not contain it.
func ExampleOptions_prepare() {
	ctx := context.Background()
	model := lathetest.NewModel(lathetest.Text("Good morning, Ann."))
	notes := map[string]string{"ann": "The user is called Ann."}
	a, err := agent.New(model, &agent.Options{Prepare: func(ctx context.Context, req *lathe.Request) error {
		owner, _ := event.RunOwnerFrom(ctx) // also in a run that Recover has resumed
		req.Messages = append([]lathe.Message{lathe.System(notes[owner.Principal])}, req.Messages...)
		return nil
	}})
	if err != nil {
		panic(err)
	}
	defer a.Close(ctx)
	ann := a.With(loop.Input{Run: lathe.RunInfo{Principal: "ann"}})
	res, err := ann.Run(ctx, lathe.User("Hello!"))
	if err != nil {
		panic(err)
	}
	var sent []string
	for _, m := range model.Requests()[0].Messages {
		sent = append(sent, string(m.Role))
	}
	fmt.Println(strings.Join(sent, " "), model.Requests()[0].Messages[0].Text(), len(res.History))
	// Output: system user The user is called Ann. 2
}
