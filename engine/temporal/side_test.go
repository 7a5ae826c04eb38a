//go:build linux

package temporal

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/internal/testkit/pgtest"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/store/postgres"
	"github.com/lathe-run/lathe/store/sqlite"
	"github.com/lathe-run/lathe/tool"
)

// A contender executes whole runs. pids are its processes beside this one: the database and the Temporal server, 0 where it has none.
type contender struct {
	name             string
	begin            func() (run func(context.Context) error, end func())
	database, server int

	runs            int64
	took            time.Duration
	own, data, flow time.Duration // CPU
}

// TestEnginesSideBySide prints runs per second and CPU per run on each engine: the same loop with the same model and tools, 16 runs at
// once. LATHE_TEMPORAL_SERVER names the Temporal server that `make temporal` builds; LATHE_BENCH_BUDGET is the time of one
// engine in each of two rounds.
func TestEnginesSideBySide(t *testing.T) {
	binary := os.Getenv(serverEnv)
	if binary == "" {
		t.Skip("no Temporal server: run `make temporal`, which builds one")
	}
	budget, err := time.ParseDuration(os.Getenv("LATHE_BENCH_BUDGET"))
	if err != nil {
		budget = 10 * time.Second
	}
	address, server := launchServer(t, binary)
	pid := server.cmd.Process.Pid
	db := pgtest.Start(t)
	c, err := client.DialContext(t.Context(), client.Options{HostPort: address, Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	all := []*contender{
		{name: "SQLite", begin: supervise(t, lite(t))},
		{name: "PostgreSQL", begin: supervise(t, post(t, db)), database: db.PID()},
		{name: "Temporal, content in SQLite", begin: flows(t, c, "lite", lite(t)), server: pid},
		{name: "Temporal, content in PostgreSQL", begin: flows(t, c, "post", post(t, db)), database: db.PID(), server: pid},
	}
	for range 2 {
		for _, x := range all {
			x.measure(t, budget)
		}
	}
	load, _ := os.ReadFile("/proc/loadavg") // it is only named
	t.Logf("%s, %d processors, load %s\nCPU ms of a run: two model calls, a read and a write", runtime.Version(), runtime.NumCPU(), strings.TrimSpace(string(load)))
	t.Logf("%-32s %12s %12s %10s %16s", "", "runs/second", "this process", "database", "Temporal server")
	for _, x := range all {
		ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 / float64(x.runs) }
		t.Logf("%-32s %12.0f %12.2f %10.2f %16.2f", x.name, float64(x.runs)/x.took.Seconds(), ms(x.own), ms(x.data), ms(x.flow))
	}
}

// measure executes 16 runs at once for the time of the budget.
func (x *contender) measure(t *testing.T, budget time.Duration) {
	t.Helper()
	cpu := func() [3]time.Duration {
		var own syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
			t.Fatal(err)
		}
		return [3]time.Duration{time.Duration(own.Utime.Nano() + own.Stime.Nano()), pgtest.CPU(x.database), pgtest.CPU(x.server)}
	}
	run, end := x.begin()
	defer end()
	before, began := cpu(), time.Now()
	var wg sync.WaitGroup
	var done atomic.Int64
	for range 16 {
		wg.Go(func() {
			for time.Since(began) < budget && !t.Failed() {
				if err := run(t.Context()); err != nil {
					t.Errorf("%s: %v", x.name, err)
				}
				done.Add(1)
			}
		})
	}
	wg.Wait()
	after := cpu()
	x.took += time.Since(began)
	x.runs += done.Load()
	x.own += after[0] - before[0]
	x.data += after[1] - before[1]
	x.flow += after[2] - before[2]
	if t.Failed() {
		t.FailNow()
	}
}

func lite(t *testing.T) store.RunIndex {
	t.Helper()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "runs.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func post(t *testing.T, db *pgtest.Server) store.RunIndex {
	t.Helper()
	s, err := postgres.Open(t.Context(), db.Schema(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// parts returns an engine over a store, and the loop of all contenders.
func parts(t *testing.T, kept store.Store) (*engine.Engine, *loop.Loop) {
	t.Helper()
	done := func(context.Context, struct{}) (string, error) { return "done", nil }
	set, err := tool.NewSet(
		tool.Func("look", "Looks.", done, &tool.FuncOptions{Effect: lathe.ReadOnly, Show: []string{"*"}}),
		tool.Func("save", "Saves.", done, &tool.FuncOptions{Effect: lathe.Writes, Show: []string{"*"}}))
	if err != nil {
		t.Fatal(err)
	}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.AllowAll()})
	if err != nil {
		t.Fatal(err)
	}
	l, err := loop.New(script{calls("a look", "b save"), lathe.Assistant("done")}, runner, nil)
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(&engine.Options{Store: kept})
	if err != nil {
		t.Fatal(err)
	}
	return e, l
}

// question is what a run starts from.
func question() *loop.Input {
	return &loop.Input{Park: true, Messages: []lathe.Message{lathe.User("hi")}}
}

// supervise executes runs with the supervisor.
func supervise(t *testing.T, kept store.RunIndex) func() (func(context.Context) error, func()) {
	t.Helper()
	e, l := parts(t, kept)
	runs, err := engine.NewSupervisor(e, nil)
	if err != nil {
		t.Fatal(err)
	}
	run := func(ctx context.Context) error {
		id, err := runs.Start(ctx, l, question(), nil)
		if err != nil {
			return err
		}
		if _, _, err := runs.Wait(ctx, id); err != nil { // it may have ended before
			return err
		}
		return answered(ctx, kept, id)
	}
	return func() (func(context.Context) error, func()) { return run, func() {} }
}

// flows executes runs as workflows, with a worker in this process.
func flows(t *testing.T, c client.Client, queue string, kept store.RunIndex) func() (func(context.Context) error, func()) {
	t.Helper()
	e, l := parts(t, kept)
	flow, err := NewWorkflow(l, &Options{Engine: e, Store: kept})
	if err != nil {
		t.Fatal(err)
	}
	run := func(ctx context.Context) error {
		id, err := flow.Start(ctx, c, queue, question())
		if err != nil {
			return err
		}
		if err := c.GetWorkflow(ctx, id, "").Get(ctx, nil); err != nil {
			return err
		}
		return answered(ctx, kept, id)
	}
	return func() (func(context.Context) error, func()) {
		w := worker.New(c, queue, worker.Options{})
		flow.Register(w)
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		return run, w.Stop
	}
}

// answered returns an error if the run was not answered.
func answered(ctx context.Context, kept store.Store, id string) error {
	s, err := engine.ReadState(ctx, kept, id)
	if err == nil && (s.Finished == nil || s.Finished.Reason != lathe.ReasonAnswered) {
		err = fmt.Errorf("run %s was not answered", id)
	}
	return err
}
