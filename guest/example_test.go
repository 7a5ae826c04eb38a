package guest_test

import (
	"context"
	"fmt"
	"os"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/guest"
)

// A host decides what a send becomes. This one answers by itself; NewHost returns one that asks a model.
type parrot struct{}

func (parrot) Send(_ context.Context, req *guest.Request) (*guest.Reply, error) {
	text := req.Messages[len(req.Messages)-1].Text()
	history := append(req.Messages, lathe.Assistant("You said: "+text))
	return &guest.Reply{
		Result:  &event.Result{Reason: lathe.ReasonAnswered, History: history, Usage: lathe.Usage{InputTokens: 9, OutputTokens: 4, TotalTokens: 13}},
		History: history, RunID: "run_1", Backend: "parrot", Model: "parrot-1",
	}, nil
}

func Example() {
	rt, err := guest.New(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rt.Close() //nolint:errcheck // what it returns is the engine's
	wasm, err := os.ReadFile("testdata/sum.wasm")
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	program, err := rt.Compile(ctx, wasm, &guest.Limits{MemoryPages: 16})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer program.Close() //nolint:errcheck // as above
	outcome := program.Run(ctx, parrot{}, &guest.RunOptions{Stdout: os.Stdout})
	fmt.Println(outcome.Reason, outcome.Code, outcome.Usage.TotalTokens)
	// Output:
	// {"id":"chatcmpl-run_1","object":"chat.completion","created":946684800,"model":"parrot-1","choices":[{"index":0,"message":{"role":"assistant","content":"You said: Please call sum for a=7 and b=35.","refusal":null},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}},"_spear":{"backend":"parrot","model":"parrot-1"}}
	// {"completion_tokens":4,"prompt_tokens":9,"total_tokens":13}
	// answered 0 13
}
