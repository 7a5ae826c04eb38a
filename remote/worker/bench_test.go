package worker_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/testkit/pgtest"
	"github.com/lathe-run/lathe/internal/testkit/remotetest"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/remote"
	"github.com/lathe-run/lathe/remote/worker"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store/postgres"
	"github.com/lathe-run/lathe/store/sqlite"
	"github.com/lathe-run/lathe/tool"
)

// BenchmarkCall is one call of a tool that does nothing, from the gateway's runner to a worker over loopback
// and back: queued, claimed, started, finished. One at a time, and many at once.
func BenchmarkCall(b *testing.B) {
	for name, open := range map[string]func(b *testing.B) remote.Queue{
		"memory": func(*testing.B) remote.Queue { return memory() },
		"sqlite": func(b *testing.B) remote.Queue {
			s, err := sqlite.Open(filepath.Join(b.TempDir(), "runs.db"), nil)
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = s.Close() })
			return s
		},
		"postgres": func(b *testing.B) remote.Queue {
			s, err := postgres.Open(b.Context(), pgtest.URL(b), nil)
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = s.Close() })
			return s
		},
	} {
		b.Run(name, func(b *testing.B) {
			queue := open(b)
			site := remotetest.Open(b, queue)
			workers, err := server.NewWorkers(&server.WorkerOptions{Queue: queue, Registry: site.Catalogue, Pools: []server.WorkerPool{{Name: "f", Token: secret.New(token), Tools: []string{"*"}}}})
			if err != nil {
				b.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			var over sync.WaitGroup
			over.Go(func() { workers.Serve(ctx) })
			srv := httptest.NewServer(workers)
			tools, err := tool.NewSet(does("act", lathe.Writes, returns(`1`)))
			if err != nil {
				b.Fatal(err)
			}
			transport := &http.Transport{DialContext: (&net.Dialer{}).DialContext}
			runner, err := tool.NewRunner(tools, &tool.Options{Policy: policy.AllowAll()})
			if err != nil {
				b.Fatal(err)
			}
			w, err := worker.New(runner, &worker.Options{URL: srv.URL, Token: secret.New(token),
				Concurrency: 64, Client: &http.Client{Transport: transport}})
			if err != nil {
				b.Fatal(err)
			}
			serving, stop := context.WithCancel(context.Background())
			over.Go(func() { w.Run(serving) })
			b.Cleanup(func() {
				stop()
				gone, enough := context.WithTimeout(context.Background(), time.Minute)
				defer enough()
				workers.Close(gone)
				srv.Close()
				cancel()
				over.Wait()
				site.Close()
			})
			for {
				if _, ok := site.Set.Lookup("act"); ok {
					break
				}
				time.Sleep(time.Millisecond)
			}
			var n atomic.Int64
			one := func() {
				work := site.Runner.Begin(&lathe.RunInfo{RunID: fmt.Sprint("run_", n.Add(1))}, nil)
				out := work.Execute(context.Background(), 1, []tool.Call{{ToolCall: lathe.ToolCall{Name: "act", Arguments: "{}"}}}, func(event.Data) {})
				if r := out.Messages[0].Parts[0].(lathe.ToolResult); r.IsError {
					b.Errorf("%+v", r)
				}
			}
			b.Run("one", func(b *testing.B) {
				for b.Loop() {
					one()
				}
			})
			b.Run("many", func(b *testing.B) {
				b.SetParallelism(32)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						one()
					}
				})
			})
		})
	}
}
