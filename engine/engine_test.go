package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/leaktest"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/testkit/pgtest"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

func TestMain(m *testing.M) { leaktest.Main(pgtest.M(m)) }

// model calls the tool once, then answers; it speaks in pieces both times.
type model struct {
	pieces int
	wait   time.Duration
}

func (model) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (m model) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		if m.wait > 0 {
			select {
			case <-time.After(m.wait):
			case <-ctx.Done():
				yield(lathe.Delta{}, ctx.Err())
				return
			}
		}
		for range m.pieces {
			if !yield(lathe.Delta{Kind: lathe.DeltaText, Text: "x"}, nil) {
				return
			}
		}
		if len(req.Messages) == 1 {
			c := lathe.ToolCall{ID: "a", Name: "count", Arguments: "{}"}
			yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: &lathe.Finish{Reason: lathe.FinishToolCalls, Message: lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{c}}}}, nil)
			return
		}
		yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: &lathe.Finish{Reason: lathe.FinishStop, Message: lathe.Assistant(strings.Repeat("x", max(1, m.pieces)))}}, nil)
	}
}

// counter counts how often it was called.
type counter struct {
	mu sync.Mutex
	n  int
}

func (c *counter) Spec() *lathe.ToolSpec {
	return &lathe.ToolSpec{Name: "count", Effect: lathe.Writes, Allowlist: []string{"*"}}
}

func (c *counter) Call(context.Context, json.RawMessage) (*lathe.Output, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return &lathe.Output{Data: json.RawMessage(`{"ok":true}`)}, nil
}

func (c *counter) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

func newLoop(t testing.TB, m lathe.Model, tools ...lathe.Tool) *loop.Loop {
	t.Helper()
	set, err := tool.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.AllowAll()})
	if err != nil {
		t.Fatal(err)
	}
	l, err := loop.New(m, runner, nil)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func input() *loop.Input {
	return &loop.Input{Run: lathe.RunInfo{SessionID: "s"}, Messages: []lathe.Message{lathe.User("hi")}}
}

// memory keeps events and fails at the append of one type, with err or, where that is nil, a panic.
type memory struct {
	mu     sync.Mutex
	log    map[string][]event.Event
	failAt string
	err    error
	slow   time.Duration
}

func (m *memory) Append(ctx context.Context, id string, last int64, events ...event.Event) (int64, error) {
	if m.slow > 0 {
		select {
		case <-time.After(m.slow):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if m.log == nil {
		m.log = map[string][]event.Event{}
	}
	if int64(len(m.log[id])) != last {
		return 0, lathe.ErrConflict
	}
	for _, e := range events {
		if e.Data.EventType() == m.failAt {
			if m.err == nil {
				panic("secret")
			}
			return 0, m.err
		}
		m.log[id] = append(m.log[id], e)
	}
	return int64(len(m.log[id])), nil
}

func (m *memory) Read(_ context.Context, id string, after int64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for _, e := range m.log[id][after:] {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (m *memory) Delete(_ context.Context, id string) error { delete(m.log, id); return nil }

func (m *memory) len(id string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.log[id])
}

// watcher is a sink that keeps each event and the length of the run's log when it received the event.
type watcher struct {
	store  *memory
	events []event.Event
	at     []time.Time // when each was received
	stored []int
}

func (w *watcher) Emit(_ context.Context, e event.Event) {
	w.events, w.at = append(w.events, e), append(w.at, time.Now())
	if w.store != nil {
		w.stored = append(w.stored, w.store.len(e.RunID))
	}
}

func (w *watcher) types() string {
	var names []string
	for _, e := range w.events {
		names = append(names, e.Data.EventType())
	}
	return strings.Join(names, " ")
}

func TestRunStampsAndStoresBeforeItPublishes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &memory{}
		w := &watcher{store: store}
		e := newEngine(t, &engine.Options{Store: store, Sinks: []event.Sink{w}})
		res, err := e.Run(t.Context(), newLoop(t, model{pieces: 3, wait: time.Second}, &counter{}), input(), nil)
		if err != nil || res.Answer != "xxx" {
			t.Fatalf("got %+v, %v", res, err)
		}
		var last, n int64
		for i, ev := range w.events {
			if ev.RunID != w.events[0].RunID || !strings.HasPrefix(ev.RunID, "run_") || !strings.HasPrefix(ev.RequestID, "req_") || ev.SessionID != "s" {
				t.Errorf("event %d: ids %q, %q, %q", i, ev.RunID, ev.RequestID, ev.SessionID)
			}
			if !ev.Time.Equal(w.at[i]) || ev.Time.Round(0) != w.at[i].Round(0) { // the store takes no time here
				t.Errorf("event %d: time %v, published at %v", i, ev.Time, w.at[i])
			}
			if event.IsDelta(ev.Data) {
				if n++; ev.ID != 0 || ev.After != last || ev.N != n {
					t.Errorf("delta %d: id %d, after %d, n %d; want after %d, n %d", i, ev.ID, ev.After, ev.N, last, n)
				}
				continue
			}
			if _, ok := ev.Data.(*event.ModelCallStarted); ok {
				n = 0
			}
			if last++; ev.ID != last || ev.After != 0 || ev.N != 0 {
				t.Errorf("event %d: id %d, want %d", i, ev.ID, last)
			}
			if w.stored[i] != int(ev.ID) {
				t.Errorf("event %d was published with %d stored", ev.ID, w.stored[i])
			}
		}
		log := store.log[w.events[0].RunID]
		published := slices.DeleteFunc(slices.Clone(w.events), func(e event.Event) bool { return event.IsDelta(e.Data) })
		if len(log) != len(published) {
			t.Fatalf("%d stored, %d published", len(log), len(published))
		}
		for i := range log {
			if log[i] != published[i] {
				t.Errorf("event %d: stored %+v, published %+v", i, log[i], published[i])
			}
		}
		if f := published[len(published)-1].Data.(*event.RunFinished); f.LatencyMS != 2000 {
			t.Errorf("latency: got %d", f.LatencyMS)
		}
	})
}

func TestRunKeepsIDsOfTheCaller(t *testing.T) {
	t.Parallel()
	w := &watcher{}
	in := input()
	in.Run.RunID, in.Run.RequestID = "run_mine", "req_mine"
	if _, err := newEngine(t, &engine.Options{Sinks: []event.Sink{w}}).Run(t.Context(), newLoop(t, model{}, &counter{}), in, nil); err != nil {
		t.Fatal(err)
	}
	if e := w.events[0]; e.RunID != "run_mine" || e.RequestID != "req_mine" {
		t.Errorf("got %q, %q", e.RunID, e.RequestID)
	}
}

func TestRunFromNothingIsABadRequest(t *testing.T) {
	t.Parallel()
	w := &watcher{}
	res, err := newEngine(t, &engine.Options{Sinks: []event.Sink{w}}).Run(t.Context(), newLoop(t, model{}), nil, nil)
	if res == nil || res.Reason != lathe.ReasonInternal || lathe.CodeOf(err) != lathe.CodeInvalidRequest || len(w.events) != 2 || w.events[1].ID != 2 || w.events[0].RunID == "" {
		t.Errorf("got %+v, %v, %s", res, err, w.types())
	}
}

// When the store fails, nothing happens that is not in the store: no tool is called, and the only event published
// after the failure is the end of the run.
func TestStoreFailureEndsRun(t *testing.T) {
	t.Parallel()
	full := errors.New("disk full")
	for _, failAt := range []string{"RunStarted", "ModelCallStarted", "ModelCallFinished", "ToolCallProposed", "ToolCallPlanned", "ToolCallExecuted", "ToolCallResult", "RunFinished"} {
		t.Run(failAt, func(t *testing.T) {
			t.Parallel()
			store := &memory{failAt: failAt, err: full}
			w, c := &watcher{}, &counter{}
			in := input()
			in.Run.RunID = "run_1"
			res, err := newEngine(t, &engine.Options{Store: store, Sinks: []event.Sink{w}}).Run(t.Context(), newLoop(t, model{pieces: 2}, c), in, nil)
			if res == nil || res.Reason != lathe.ReasonInternal || !errors.Is(err, full) || !errors.Is(res.Err, full) {
				t.Fatalf("got %+v, %v", res, err)
			}
			called := failAt == "ToolCallExecuted" || failAt == "ToolCallResult" || failAt == "RunFinished"
			if c.count() > 0 != called {
				t.Errorf("the tool was called %d times", c.count())
			}
			stored := store.log["run_1"]
			published := slices.DeleteFunc(slices.Clone(w.events), func(e event.Event) bool { return event.IsDelta(e.Data) })
			if len(published) != len(stored)+1 {
				t.Fatalf("stored %d, published %s", len(stored), w.types())
			}
			last := published[len(published)-1]
			f, ok := last.Data.(*event.RunFinished)
			if !ok || last.ID != 0 || last.After != int64(len(stored)) || f.Reason != lathe.ReasonInternal || f.Status != "failed" || f.ErrorCode != "internal" {
				t.Errorf("the end: got %+v %+v", last, last.Data)
			}
			answered := 0
			for _, m := range res.History {
				answered += len(m.Calls())
				if m.Role == lathe.RoleTool {
					answered--
				}
			}
			if answered != 0 {
				t.Errorf("the history has calls that are not answered: %+v", res.History)
			}
		})
	}
}

// A store that panics has not stored the event: the run ends, with one event of its end.
func TestStorePanicEndsRun(t *testing.T) {
	t.Parallel()
	for _, at := range event.Types() {
		store, w, c := &memory{failAt: at}, &watcher{}, &counter{}
		res, err := newEngine(t, &engine.Options{Store: store, Sinks: []event.Sink{w}}).Run(t.Context(), newLoop(t, model{pieces: 2}, c), input(), nil)
		stored := store.log[w.events[0].RunID]
		failed := !slices.ContainsFunc(stored, func(e event.Event) bool { return e.Data.EventType() == "RunFinished" })
		if got := res.Reason == lathe.ReasonInternal; got != failed || failed && (err == nil || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: reason %q, %v", at, res.Reason, err)
		}
		ends := 0
		for _, e := range w.events {
			if _, ok := e.Data.(*event.RunFinished); ok {
				ends++
			}
		}
		if ends != 1 {
			t.Errorf("%s: %d ends were published", at, ends)
		}
		if at == "ToolCallPlanned" && c.count() != 0 {
			t.Errorf("%s: the tool was called", at)
		}
	}
}

// With a Cancel of the caller, the engine cancels the caller's context if the store fails, and leaves it alone otherwise.
func TestStoreFailureCancelsTheContextOfTheCaller(t *testing.T) {
	t.Parallel()
	full := errors.New("disk full")
	for _, durability := range []engine.Durability{engine.Immediate, engine.Deferred} {
		for _, failAt := range []string{"", "RunStarted", "ModelCallFinished", "ToolCallPlanned"} {
			store, c := &memory{failAt: failAt, err: full}, &counter{}
			opts := &engine.RunOptions{Durability: durability}
			if durability == engine.Deferred { // and stored from the first event on
				opts.MustPersist = func(event.Data) bool { return true }
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			opts.Cancel = cancel
			res, err := newEngine(t, &engine.Options{Store: store}).Run(ctx, newLoop(t, model{pieces: 2}, c), input(), opts)
			if failed := failAt != ""; errors.Is(err, full) != failed || errors.Is(context.Cause(ctx), full) != failed || (ctx.Err() != nil) != failed {
				t.Errorf("%v, failing at %q: %v, %v, the context %v", durability, failAt, res.Reason, err, context.Cause(ctx))
			}
			if called := c.count() > 0; called != (failAt == "") {
				t.Errorf("%v, failing at %q: the tool was called: %v", durability, failAt, called)
			}
			cancel(nil)
		}
	}
}

func TestLogThatIsThereIsAConflict(t *testing.T) {
	t.Parallel()
	store := &memory{log: map[string][]event.Event{"run_1": {{ID: 1}}}}
	in := input()
	in.Run.RunID = "run_1"
	_, err := newEngine(t, &engine.Options{Store: store}).Run(t.Context(), newLoop(t, model{}, &counter{}), in, nil)
	if !errors.Is(err, lathe.ErrConflict) || lathe.CodeOf(err) != lathe.CodeConflict {
		t.Errorf("got %v", err)
	}
}

// A store that does not answer does not block the run.
func TestSlowStoreIsAFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &memory{slow: time.Minute}
		start := time.Now()
		_, err := newEngine(t, &engine.Options{Store: store, StoreTimeout: 2 * time.Second}).Run(t.Context(), newLoop(t, model{}, &counter{}), input(), nil)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 2*time.Second {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
	})
}

// A run that is cancelled is recorded to its end.
func TestCancelledRunIsStored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &memory{}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		in := input()
		in.Run.RunID = "run_1"
		res, err := newEngine(t, &engine.Options{Store: store}).Run(ctx, newLoop(t, model{wait: time.Hour}, &counter{}), in, nil)
		log := store.log["run_1"]
		if res.Reason != lathe.ReasonCancelled || !errors.Is(err, context.DeadlineExceeded) || len(log) != 4 {
			t.Fatalf("got reason %q, error %v, %d events", res.Reason, err, len(log))
		}
		if f, ok := log[3].Data.(*event.RunFinished); !ok || f.Reason != lathe.ReasonCancelled {
			t.Errorf("the last event is %+v", log[3].Data)
		}
	})
}

type panicking struct{}

func (panicking) Emit(context.Context, event.Event) { panic("of a sink") }

func TestSinkPanicIsContained(t *testing.T) {
	t.Parallel()
	before, after := &watcher{}, &watcher{}
	res, err := newEngine(t, &engine.Options{Sinks: []event.Sink{before, panicking{}, after}}).Run(t.Context(), newLoop(t, model{pieces: 1}, &counter{}), input(), nil)
	if err != nil || res.Answer != "x" || len(before.events) == 0 || before.types() != after.types() {
		t.Errorf("got %+v, %v; published %q and %q", res, err, before.types(), after.types())
	}
}

func TestIDsSortByTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &watcher{}
		e := newEngine(t, &engine.Options{Sinks: []event.Sink{w}})
		l := newLoop(t, model{}, &counter{})
		var ids []string
		for i := range 200 {
			if i%3 == 0 {
				time.Sleep(time.Millisecond)
			}
			w.events = nil
			if _, err := e.Run(t.Context(), l, input(), nil); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, w.events[0].RunID)
		}
		for i, id := range ids {
			if len(id) != len("run_")+26 || strings.Trim(id[4:], "0123456789ABCDEFGHJKMNPQRSTVWXYZ") != "" {
				t.Errorf("id %q", id)
			}
			if i > 0 && id <= ids[i-1] {
				t.Errorf("%q does not come after %q", id, ids[i-1])
			}
		}
		// 2000-01-01, where the bubble's clock begins, is 946 684 800 000 ms.
		if want := "00VHNCZ"; !strings.HasPrefix(ids[0][4:], want) {
			t.Errorf("id %q, want the time %s first", ids[0], want)
		}
	})
}

func TestRunsSideBySide(t *testing.T) {
	t.Parallel()
	store := &memory{}
	e := newEngine(t, &engine.Options{Store: store})
	l := newLoop(t, model{pieces: 5}, &counter{})
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			in := input()
			in.Run.RunID = fmt.Sprintf("run_%d", i)
			if res, err := e.Run(t.Context(), l, in, nil); err != nil || res.Answer != "xxxxx" {
				t.Errorf("got %+v, %v", res, err)
			}
		})
	}
	wg.Wait()
	for id, log := range store.log {
		for i, ev := range log {
			if ev.ID != int64(i+1) || ev.RunID != id {
				t.Errorf("%s: event %d has id %d of %s", id, i, ev.ID, ev.RunID)
			}
		}
	}
	if len(store.log) != 20 {
		t.Errorf("%d logs", len(store.log))
	}
}

// quiet is a sink that keeps nothing.
type quiet struct{ n int }

func (q *quiet) Emit(context.Context, event.Event) { q.n++ }

// Deltas share their memory by blocks.
func TestDeltasShareAllocations(t *testing.T) {
	testdata.CountsAllocations(t)
	measure := func(pieces int) float64 {
		e := newEngine(t, &engine.Options{Sinks: []event.Sink{&quiet{}}, Store: &forgetful{}})
		l := newLoop(t, model{pieces: pieces}, &counter{})
		return testing.AllocsPerRun(50, func() {
			if _, err := e.Run(context.Background(), l, input(), nil); err != nil {
				t.Fatal(err)
			}
		})
	}
	if few, many := measure(2), measure(2000); many > few+2000/10 {
		t.Errorf("allocations: %v with 2 deltas, %v with 2000", few, many)
	}
}

// forgetful is a store that keeps nothing.
type forgetful struct{ memory }

func (*forgetful) Append(_ context.Context, _ string, last int64, events ...event.Event) (int64, error) {
	return last + int64(len(events)), nil
}

func ExampleEngine_Run() {
	set, _ := tool.NewSet(&counter{})
	runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.AllowAll()})
	if err != nil {
		panic(err)
	}
	l, err := loop.New(model{pieces: 3}, runner, nil)
	if err != nil {
		panic(err)
	}
	e, err := engine.New(&engine.Options{Sinks: []event.Sink{printer{}}})
	if err != nil {
		panic(err)
	}
	res, err := e.Run(context.Background(), l, &loop.Input{Messages: []lathe.Message{lathe.User("hi")}}, nil)
	fmt.Println(res.Answer, err)
	// Output:
	// 1 RunStarted
	// 2 ModelCallStarted
	// 3 ModelCallFinished
	// 4 ToolCallProposed
	// 5 ToolCallPlanned
	// 6 ToolCallExecuted
	// 7 ToolCallResult
	// 8 ModelCallStarted
	// 9 ModelCallFinished
	// 10 RunFinished
	// xxx <nil>
}

// printer prints the events that are stored.
type printer struct{}

func (printer) Emit(_ context.Context, e event.Event) {
	if e.ID > 0 {
		fmt.Println(e.ID, e.Data.EventType())
	}
}
