package worker_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"sync"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/remote/worker"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/remotetool"
)

// A gateway without tools of its own, and a worker that has one.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()

	// The gateway: a queue, the tools that workers offer, and the handler of their connections.
	queue := store.NewMemory(nil)
	tools, err := tool.NewSet()
	if err != nil {
		log.Fatal(err)
	}
	offered := remotetool.New(queue, nil)
	if err := offered.Attach(ctx, tools); err != nil {
		log.Fatal(err)
	}
	workers, err := server.NewWorkers(&server.WorkerOptions{Queue: queue, Registry: offered,
		Pools: []server.WorkerPool{{Name: "lab", Token: secret.New("0123456789abcdef"), Tools: []string{"*"}}}})
	if err != nil {
		log.Fatal(err)
	}
	running.Go(func() { offered.Follow(ctx) })
	running.Go(func() { workers.Serve(ctx) })
	web := httptest.NewServer(workers)
	defer web.Close()

	// The worker, mostly on another machine.
	add := tool.Func("add", "Adds two numbers.", func(_ context.Context, in struct{ A, B int }) (int, error) { return in.A + in.B, nil },
		&tool.FuncOptions{Effect: lathe.ReadOnly, Show: []string{"*"}})
	own, err := tool.NewSet(add)
	if err != nil {
		log.Fatal(err)
	}
	connected := make(chan struct{})
	once := sync.OnceFunc(func() { close(connected) })
	runner, err := tool.NewRunner(own, &tool.Options{Policy: policy.AllowAll()})
	if err != nil {
		panic(err)
	}
	w, err := worker.New(runner, &worker.Options{URL: web.URL, Token: secret.New("0123456789abcdef"),
		OnState: func(s worker.State) {
			if s.Connected {
				once()
			}
		}})
	if err != nil {
		log.Fatal(err)
	}
	serving, stop := context.WithCancel(ctx)
	running.Go(func() { w.Run(serving) })
	defer stop()
	<-connected

	// A run of the gateway calls the tool as any other.
	atGateway, err := tool.NewRunner(tools, &tool.Options{Policy: policy.AllowAll()})
	if err != nil {
		panic(err)
	}
	work := atGateway.Begin(&lathe.RunInfo{RunID: "run_1"}, nil)
	out := work.Execute(ctx, 1, []tool.Call{{ToolCall: lathe.ToolCall{Name: "add", Arguments: `{"A":7,"B":35}`}}}, func(event.Data) {})
	fmt.Println(out.Messages[0].Parts[0].(lathe.ToolResult).Content)
	// Output: 42
}
