// Command durable measures what it costs to keep runs: one appended event, and a whole run of two model
// calls and one tool call, in memory, in SQLite, and with the audit log; beside the bare cost of one
// synced append to a file, which is the floor of every durable step. It also parks many runs and
// measures what a parked run costs its node.
//
//	go run ./durable                     steps and runs, by 1 and by 16 at once
//	go run ./durable -parked 100000      that many runs that wait for an approval
//	go run ./durable -postgres URL       in PostgreSQL, beside River and DBOS in the same database
//	go run ./durable -queue URL          the queue of calls beside River: latency, CPU, WAL and rows of a job
//
// Figures depend on the disk: look at the ratios to the bare append of the same run.
package main

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/audit"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/store/sqlite"
	"github.com/lathe-run/lathe/tool"
)

func main() {
	parked := flag.Int("parked", 0, "measure so many runs that wait, and nothing else")
	budget := flag.Duration("budget", 2*time.Second, "time of one figure")
	url := flag.String("postgres", "", "URL of a PostgreSQL database: measure that, beside River and DBOS on it, and nothing else")
	queue := flag.String("queue", "", "URL of a PostgreSQL database on this machine: measure queues on it, and nothing else")
	dir := flag.String("dir", "", "folder of the files; default: a new one where temporary files go")
	flag.Parse()
	if err := run(*parked, *budget, *dir, *url, *queue); err != nil {
		fmt.Fprintln(os.Stderr, "durable:", err)
		os.Exit(1)
	}
}

func run(parked int, budget time.Duration, dir, url, queue string) error {
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "durable"); err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }() // it is temporary
	}
	fmt.Printf("%s %s/%s, GOMAXPROCS=%d\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0))
	if parked > 0 {
		return park(parked, dir)
	}
	for _, at := range []int{1, 16} {
		var err error
		switch {
		case queue != "":
			err = queues(at, budget, queue)
		case url != "":
			err = onPostgres(at, budget, url)
		default:
			err = onFiles(at, budget, dir)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A row is one figure: what op costs, done by several at once.
type row struct {
	name  string
	steps float64 // durable steps of one op
	op    func(worker int) error
}

func onFiles(at int, budget time.Duration, dir string) error {
	dir, err := os.MkdirTemp(dir, "at")
	if err != nil {
		return err
	}
	raw, err := os.OpenFile(filepath.Join(dir, "raw"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = raw.Close() }() // it is only measured
	kept, err := sqlite.Open(filepath.Join(dir, "runs.db"), nil)
	if err != nil {
		return err
	}
	defer func() { _ = kept.Close() }()
	trail, err := audit.Open(filepath.Join(dir, "audit.jsonl"), nil)
	if err != nil {
		return err
	}
	defer func() { _ = trail.Close() }()
	block := make([]byte, 1<<10)
	var mu sync.Mutex
	rows := []row{
		{"bare append of 1 KiB, write and fsync", 1, func(int) error {
			mu.Lock()
			defer mu.Unlock()
			if _, err := raw.Write(block); err != nil {
				return err
			}
			return raw.Sync()
		}},
		{"one event into memory", 1, appendTo(store.NewMemory(&store.MemoryOptions{MaxEvents: 1 << 30}))},
		{"one event into SQLite", 1, appendTo(kept)},
		{"one event into the audit log", 1, func(w int) error {
			return trail.Event(context.Background(), &lathe.RunInfo{}, stamped(fmt.Sprintf("run_%d", w), 1))
		}},
		{"a run, kept nowhere", runEvents, runOn(&engine.Options{})},
		{"a run in memory", runEvents, runOn(&engine.Options{Store: store.NewMemory(nil)})},
		{"a run in SQLite", runEvents, runOn(&engine.Options{Store: kept})},
		{"a run in SQLite, audited", 2 * runEvents, runOn(&engine.Options{Store: kept, Audit: trail.Event})},
	}
	return compare("by %d at once", at, budget, rows)
}

// compare measures each row, and compares it with the first.
func compare(title string, at int, budget time.Duration, rows []row) error {
	fmt.Printf("\n%-40s per second      p50       p99   a durable step over a bare append\n", fmt.Sprintf(title, at))
	var bare float64
	for i := range rows {
		r := &rows[i]
		perSecond, times, err := measure(at, budget, r.op)
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		if i == 0 {
			bare = perSecond
		}
		fmt.Printf("%-40s %10.0f  %8s  %8s   %.2f\n", r.name, perSecond, quantile(times, 0.5), quantile(times, 0.99), bare/(perSecond*r.steps))
	}
	return nil
}

func measure(at int, budget time.Duration, op func(int) error) (perSecond float64, times []time.Duration, err error) {
	var wg sync.WaitGroup
	all := make([][]time.Duration, at)
	errs := make([]error, at)
	began := time.Now()
	for w := range at {
		wg.Go(func() {
			for errs[w] == nil && time.Since(began) < budget {
				start := time.Now()
				errs[w] = op(w)
				all[w] = append(all[w], time.Since(start))
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	times = slices.Concat(all...)
	for _, e := range errs {
		if e != nil {
			return 0, nil, e
		}
	}
	return float64(len(times)) / took.Seconds(), times, nil
}

func quantile(times []time.Duration, q float64) time.Duration {
	slices.Sort(times)
	return times[int(q*float64(len(times)-1))].Round(10 * time.Microsecond)
}

func stamped(id string, n int64) event.Event {
	return event.Event{ID: n, RunID: id, RequestID: "req", Time: time.Now(), Turn: 1, Data: &event.ToolCallResult{ToolCallID: "c", Tool: "t", Status: "ok", Result: strings.Repeat("x", 512)}}
}

// appendTo appends to a run for each worker.
func appendTo(s store.Store) func(int) error {
	var mu sync.Mutex
	last, name := map[int]int64{}, rand.Text()
	return func(w int) error {
		ctx, id := context.Background(), fmt.Sprintf("run_%s_%d", name, w)
		mu.Lock()
		n := last[w]
		mu.Unlock()
		e := stamped(id, n+1)
		if n == 0 {
			e.Data = &event.RunStarted{}
		}
		end, err := s.Append(ctx, id, n, e)
		mu.Lock()
		last[w] = end
		mu.Unlock()
		return err
	}
}

// runEvents is how many events a run of speaker has.
const runEvents = 10

// A speaker calls the tool once, and answers.
type speaker struct{}

func (speaker) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (speaker) Generate(_ context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		f := &lathe.Finish{Reason: lathe.FinishStop, Message: lathe.Assistant("It is fine."), Usage: lathe.Usage{InputTokens: 100, OutputTokens: 10, TotalTokens: 110}}
		if len(req.Messages) == 1 {
			f.Reason = lathe.FinishToolCalls
			f.Message = lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.ToolCall{ID: "call_1", Name: "weather", Arguments: `{"city":"Paris"}`}}}
		}
		yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: f}, nil)
	}
}

func newLoop(effect lathe.Effect, p lathe.Policy, a lathe.Approver) *loop.Loop {
	type city struct {
		City string `json:"city"`
	}
	t := tool.Func("weather", "Says the weather.", func(context.Context, city) (map[string]int, error) { return map[string]int{"temp": 20}, nil },
		&tool.FuncOptions{Effect: effect, Show: []string{"*"}})
	set, err := tool.NewSet(t)
	if err != nil {
		panic(err)
	}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: p, Approver: a})
	if err != nil {
		panic(err)
	}
	l, err := loop.New(speaker{}, runner, nil)
	if err != nil {
		panic(err)
	}
	return l
}

func runOn(opts *engine.Options) func(int) error {
	e, err := engine.New(opts)
	if err != nil {
		panic(err)
	}
	l := newLoop(lathe.ReadOnly, policy.AllowAll(), nil)
	return func(int) error {
		res, err := e.Run(context.Background(), l, &loop.Input{Messages: []lathe.Message{lathe.User("What is the weather?")}, Park: opts.Store != nil}, nil)
		if err == nil && res.Reason != lathe.ReasonAnswered {
			err = fmt.Errorf("it ended %s", res.Reason)
		}
		return err
	}
}

// pending is an approver that returns ErrPending until decided is set, and approves from then on.
type pending struct{ decided atomic.Bool }

func (p *pending) Approve(context.Context, *lathe.ApprovalRequest) (lathe.Approval, error) {
	if p.decided.Load() {
		return lathe.Approval{Approved: true, By: "bench"}, nil
	}
	return lathe.Approval{}, lathe.ErrPending
}

// park makes n runs wait, and says what they cost.
func park(n int, dir string) error {
	ctx, path := context.Background(), filepath.Join(dir, "parked.db")
	s, err := sqlite.Open(path, nil)
	if err != nil {
		return err
	}
	who := &pending{}
	limits := lathe.Limits{ApprovalTTL: 1000 * time.Hour}
	l := newLoop(lathe.Writes, policy.Tools{Ask: []string{"weather"}, Else: policy.AllowAll()}, who)
	e, err := engine.New(&engine.Options{Store: s})
	if err != nil {
		return err
	}
	ids := make([]string, n)
	began := time.Now()
	var wg sync.WaitGroup
	var failed atomic.Pointer[error]
	for w := range 64 {
		wg.Go(func() {
			for i := w; i < n && failed.Load() == nil; i += 64 {
				ids[i] = e.NewRunID()
				in := &loop.Input{Run: lathe.RunInfo{RunID: ids[i]}, Messages: []lathe.Message{lathe.User("What is the weather?")}, Park: true, Limits: &limits}
				res, err := e.Run(ctx, l, in, nil)
				if err == nil && res.Reason != lathe.ReasonAwaitingApproval {
					err = fmt.Errorf("it ended %s", res.Reason)
				}
				if err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	fmt.Printf("%d runs parked in %s, %.0f a second\n", n, time.Since(began).Round(time.Millisecond), float64(n)/time.Since(began).Seconds())
	heap("while they wait, the process that parked them")
	if err := s.Close(); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	fmt.Printf("the file: %.0f MB, %d bytes a run\n", float64(info.Size())/1e6, info.Size()/int64(n))

	began = time.Now()
	if s, err = sqlite.Open(path, nil); err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	fmt.Printf("opened in %s\n", time.Since(began).Round(10*time.Microsecond))
	began = time.Now()
	if e, err = engine.New(&engine.Options{Store: s}); err != nil {
		return err
	}
	crew, err := engine.NewSupervisor(e, nil)
	if err != nil {
		return err
	}
	if _, err := crew.Recover(ctx, s, func(*store.RunSummary) (*loop.Loop, error) { return l, nil }); err != nil {
		return err
	}
	fmt.Printf("recovered in %s\n", time.Since(began).Round(10*time.Microsecond))
	heap("then")
	who.decided.Store(true)
	var times []time.Duration
	for i := range min(n, 1000) {
		id := ids[i*7919%n]
		start := time.Now()
		if res, err := e.Resume(ctx, l, id, nil); err != nil || res.Reason != lathe.ReasonAnswered {
			return fmt.Errorf("approving %s: %+v, %w", id, res, err)
		}
		times = append(times, time.Since(start))
	}
	fmt.Printf("one approved and carried to its end: p50 %s, p99 %s\n", quantile(times, 0.5), quantile(times, 0.99))
	started := time.Now()
	rows, _, err := s.Runs(ctx, &store.RunFilter{Status: "parked", Limit: 50})
	if err != nil {
		return err
	}
	fmt.Printf("a page of %d that wait: %s\n", len(rows), time.Since(started).Round(10*time.Microsecond))
	return nil
}

func heap(when string) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fmt.Printf("%s: %.1f MB of heap, %d goroutines\n", when, float64(m.HeapAlloc)/1e6, runtime.NumGoroutine())
}
