package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/remote"
	"github.com/lathe-run/lathe/store"
)

// long is a lease, or a time, that does not end during a test.
const long = time.Hour

// TestQueue runs the tests for [remote.Queue]. open returns an empty queue of its own for each test. The tests walk the
// possible orders of operations on a call, and execute one of every so many orders: 1 executes all, for a fast store.
func TestQueue(t *testing.T, every int, open func() remote.Queue) {
	t.Helper()
	run(t, open, []testOf[remote.Queue]{
		{"queues a call once", queuesOnce},
		{"keeps a call whole", keepsCalls},
		{"gives a call to one worker", claimsOnce},
		{"lets many workers claim at once", claimsTogether},
		{"starts a call for its holder alone", startsForClaimantOnly},
		{"finishes a call once", finishesOnce},
		{"renews leases", renewsCalls},
		{"queues again what was not sent", requeuesClaimed},
		{"queues again what may run again", requeuesReaders},
		{"gives up what is lost too often", givesUp},
		{"never runs again what writes", leavesWriters},
		{"takes late results", acceptsLateResults},
		{"returns calls", returnsCalls},
		{"cancels calls", cancelsCalls},
		{"does not start what is too late", tooLate},
		{"misses calls that are not there", missesCalls},
		{"notifies of what may have changed", deliversNotifications},
		{"knows the workers", knowsWorkers},
		{"respects the context of calls", callsContext},
		{"forgets the calls of a run", forgetsCalls},
	})
	t.Run("keeps its promises in every order of events", func(t *testing.T) {
		t.Parallel()
		everyOrder(t, every, open)
	})
}

func call(key string, effect lathe.Effect) *remote.Call {
	return &remote.Call{Key: key, RunID: "run_" + key, CallID: "call_1", RequestID: "req_1", SessionID: "s", Depth: 1, Trace: event.TraceContext{Parent: "00-" + key, State: "a=b"}, Tool: "act",
		Definition: "def", Effect: effect, Arguments: json.RawMessage(`{"a":1}`)}
}

func putCall(t *testing.T, q remote.Queue, c *remote.Call) *remote.Call {
	t.Helper()
	row, err := q.PutCall(t.Context(), c, long)
	if err != nil {
		t.Fatal(err)
	}
	return row
}

func claimCall(t *testing.T, q remote.Queue, worker string) remote.Ref {
	t.Helper()
	calls, err := q.ClaimCalls(t.Context(), worker, []string{"def"}, long, 10)
	if err != nil || len(calls) != 1 {
		t.Fatalf("%s claims %d calls, %v; want 1", worker, len(calls), err)
	}
	return calls[0].Ref()
}

func beginCall(t *testing.T, q remote.Queue, worker string) remote.Ref {
	t.Helper()
	ref := claimCall(t, q, worker)
	if err := q.StartCall(t.Context(), ref, long); err != nil {
		t.Fatal(err)
	}
	return ref
}

// expire ends the lease of an attempt, and has the queue see it.
func expire(t *testing.T, q remote.Queue, ref remote.Ref) {
	t.Helper()
	if _, err := q.RenewCalls(t.Context(), ref.Worker, []remote.Ref{ref}, 0); err != nil {
		t.Fatal(err)
	}
	if n, err := q.ExpireCalls(t.Context()); err != nil || n < 1 {
		t.Fatalf("reaped %d, %v", n, err)
	}
}

func callState(t *testing.T, q remote.Queue, key string, want remote.State) *remote.Call {
	t.Helper()
	row, err := q.FindCall(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if row.State != want {
		t.Fatalf("the call is %s, want %s", row.State, want)
	}
	return row
}

func good(text string) *remote.Result {
	return &remote.Result{Data: json.RawMessage(`"` + text + `"`)}
}

func queuesOnce(t *testing.T, q remote.Queue) {
	ctx := t.Context()
	first := putCall(t, q, call("k", lathe.Writes))
	if first.State != remote.Queued || first.Attempt != 0 || first.Left <= 0 || first.Left > long {
		t.Errorf("a queued call is %+v", first)
	}
	beginCall(t, q, "w")
	again := putCall(t, q, call("k", lathe.Writes))
	if again.State != remote.Started || again.Attempt != 1 || again.Worker != "w" {
		t.Errorf("put again: %+v, want the row as it stands", again)
	}
	other := call("k", lathe.Writes)
	other.Arguments = json.RawMessage(`{"a":2}`)
	_, err := q.PutCall(ctx, other, long)
	wantConflict(t, "the key with other arguments", err)
	other = call("k", lathe.Writes)
	other.Tool = "other"
	_, err = q.PutCall(ctx, other, long)
	wantConflict(t, "the key with another tool", err)
	for _, bad := range []*remote.Call{{}, {Key: "x", Tool: "t", Definition: "d"}, {Key: "x", Tool: "t", Definition: "d", Arguments: json.RawMessage(`{`)}} {
		if _, err := q.PutCall(ctx, bad, long); lathe.CodeOf(err) != lathe.CodeInvalidRequest {
			t.Errorf("%+v was taken: %v", bad, err)
		}
	}
}

func keepsCalls(t *testing.T, q remote.Queue) {
	ctx := t.Context()
	in := call("k", lathe.Idempotent)
	putCall(t, q, in)
	in.Arguments[5] = '9' // the queue has its own
	want := *call("k", lathe.Idempotent)
	want.State, want.Attempt, want.Worker = remote.Claimed, 1, "w"
	calls, err := q.ClaimCalls(ctx, "w", []string{"other", "def"}, long, 1)
	if err != nil || len(calls) != 1 {
		t.Fatalf("%d calls, %v", len(calls), err)
	}
	if calls[0].Left <= 0 || calls[0].Left > long {
		t.Errorf("%s are left", calls[0].Left)
	}
	calls[0].Left = 0
	if diff := cmp.Diff(want, calls[0]); diff != "" {
		t.Errorf("the call came back changed:\n%s", diff)
	}
	if err := q.StartCall(ctx, calls[0].Ref(), long); err != nil {
		t.Fatal(err)
	}
	result := &remote.Result{Data: json.RawMessage(`{"n":1.50}`), Blobs: []lathe.Blob{{MediaType: "image/png", Data: []byte{1, 2}}}, IsError: true,
		Code: lathe.CodeInvalidArguments, Detail: "näh", RC: -3}
	if err := q.FinishCall(ctx, calls[0].Ref(), result); err != nil {
		t.Fatal(err)
	}
	row := callState(t, q, "k", remote.Done)
	if diff := cmp.Diff(result, row.Result); diff != "" {
		t.Errorf("the result came back changed:\n%s", diff)
	}
	if row.Arguments != nil {
		t.Error("the arguments of a call that has ended are kept")
	}
	row.Result.Data[0] = '['
	if got := callState(t, q, "k", remote.Done); got.Result.Data[0] != '{' {
		t.Error("a reader changed the result")
	}
}

func claimsOnce(t *testing.T, q remote.Queue) {
	ctx := t.Context()
	for i := range 5 {
		c := call(fmt.Sprint("k", i), lathe.ReadOnly)
		if i == 2 {
			c.Definition = "other"
		}
		putCall(t, q, c)
	}
	var got []string
	for _, worker := range []string{"a", "b", "a"} {
		calls, err := q.ClaimCalls(ctx, worker, []string{"def"}, long, 2)
		if err != nil {
			t.Fatal(err)
		}
		for i := range calls {
			got = append(got, worker+calls[i].Key)
		}
	}
	if want := []string{"ak0", "ak1", "bk3", "bk4"}; !slices.Equal(got, want) {
		t.Errorf("claimed %v, want %v", got, want)
	}
	for _, none := range [][]string{nil, {}, {"nothing"}} {
		if calls, err := q.ClaimCalls(ctx, "c", none, long, 9); err != nil || len(calls) != 0 {
			t.Errorf("who serves %v got %d calls, %v", none, len(calls), err)
		}
	}
	if calls, err := q.ClaimCalls(ctx, "c", []string{"other"}, long, 0); err != nil || len(calls) != 0 {
		t.Errorf("without credit there are %d calls, %v", len(calls), err)
	}
}

func claimsTogether(t *testing.T, q remote.Queue) {
	const calls, workers = 60, 6
	for i := range calls {
		putCall(t, q, call(fmt.Sprint("k", i), lathe.Writes))
	}
	var mu sync.Mutex
	had := map[string]string{}
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			worker := fmt.Sprint("w", i)
			for {
				got, err := q.ClaimCalls(t.Context(), worker, []string{"def"}, long, 3)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				n := len(had)
				for k := range got {
					if had[got[k].Key] != "" {
						t.Errorf("%s and %s have claimed %s", had[got[k].Key], worker, got[k].Key)
					}
					had[got[k].Key] = worker
				}
				mu.Unlock()
				if n == calls {
					return
				}
			}
		})
	}
	wg.Wait()
}

func startsForClaimantOnly(t *testing.T, q remote.Queue) {
	ctx := t.Context()
	putCall(t, q, call("k", lathe.Writes))
	wantConflict(t, "start of a queued call", q.StartCall(ctx, remote.Ref{Key: "k"}, long))
	ref := claimCall(t, q, "a")
	for _, bad := range []remote.Ref{{Key: "k", Attempt: 1, Worker: "b"}, {Key: "k", Attempt: 2, Worker: "a"}, {Key: "k", Attempt: 0, Worker: "a"}, {Key: "k", Attempt: 1}} {
		wantConflict(t, fmt.Sprintf("start of %+v", bad), q.StartCall(ctx, bad, long))
		wantConflict(t, fmt.Sprintf("finish of %+v", bad), q.FinishCall(ctx, bad, good("x")))
		wantConflict(t, fmt.Sprintf("return of %+v", bad), q.ReturnCall(ctx, bad))
	}
	wantConflict(t, "the result of a call that was not started", q.FinishCall(ctx, ref, good("x")))
	if err := q.StartCall(ctx, ref, long); err != nil {
		t.Fatal(err)
	}
	wantConflict(t, "the second start", q.StartCall(ctx, ref, long))
	callState(t, q, "k", remote.Started)
}

func finishesOnce(t *testing.T, q remote.Queue) {
	ctx := t.Context()
	putCall(t, q, call("k", lathe.Writes))
	ref := beginCall(t, q, "a")
	for i := range 3 {
		if err := q.FinishCall(ctx, ref, good(fmt.Sprint("r", i))); err != nil {
			t.Fatalf("finished for the time %d: %v", i+1, err)
		}
	}
	wantConflict(t, "the result of another attempt", q.FinishCall(ctx, remote.Ref{Key: "k", Attempt: 2, Worker: "a"}, good("x")))
	wantConflict(t, "the result of another worker", q.FinishCall(ctx, remote.Ref{Key: "k", Attempt: 1, Worker: "b"}, good("x")))
	if row := callState(t, q, "k", remote.Done); string(row.Result.Data) != `"r0"` {
		t.Errorf("the result is %s, want the first", row.Result.Data)
	}
	if calls, err := q.ClaimCalls(ctx, "b", []string{"def"}, long, 9); err != nil || len(calls) != 0 {
		t.Errorf("a call that is done was claimed: %d, %v", len(calls), err)
	}
}

func renewsCalls(t *testing.T, q remote.Queue) {
	ctx := t.Context()
	putCall(t, q, call("k", lathe.ReadOnly))
	ref := beginCall(t, q, "a")
	if _, err := q.RenewCalls(ctx, "a", []remote.Ref{ref}, 0); err != nil {
		t.Fatal(err)
	}
	if stop, err := q.RenewCalls(ctx, "a", []remote.Ref{ref}, long); err != nil || len(stop) != 0 { // no reaper has run since
		t.Errorf("stop %v, %v", stop, err)
	}
	if _, err := q.ExpireCalls(ctx); err != nil {
		t.Fatal(err)
	}
	callState(t, q, "k", remote.Started)
	for _, strange := range []remote.Ref{{Key: "k", Attempt: 2, Worker: "a"}, {Key: "none", Attempt: 1, Worker: "a"}} {
		if stop, err := q.RenewCalls(ctx, "a", []remote.Ref{strange, ref}, long); err != nil || !slices.Equal(stop, []remote.Ref{strange}) {
			t.Errorf("stop %v, %v; want %v", stop, err, strange)
		}
	}
	theirs := ref
	if stop, err := q.RenewCalls(ctx, "b", []remote.Ref{theirs}, 0); err != nil || len(stop) != 1 {
		t.Errorf("another worker renews: stop %v, %v", stop, err)
	}
	if _, err := q.ExpireCalls(ctx); err != nil {
		t.Fatal(err)
	}
	callState(t, q, "k", remote.Started)
}

func requeuesClaimed(t *testing.T, q remote.Queue) {
	putCall(t, q, call("k", lathe.Writes))
	ref := claimCall(t, q, "a")
	expire(t, q, ref)
	if row := callState(t, q, "k", remote.Queued); row.Worker != "" || row.Attempt != 1 {
		t.Errorf("queued again: %+v", row)
	}
	wantConflict(t, "the start of a claim that has ended", q.StartCall(t.Context(), ref, long))
	wantConflict(t, "the result of it", q.FinishCall(t.Context(), ref, good("x")))
	if next := beginCall(t, q, "b"); next.Attempt != 2 {
		t.Errorf("attempt %d, want 2", next.Attempt)
	}
}

func requeuesReaders(t *testing.T, q remote.Queue) {
	for i, effect := range []lathe.Effect{lathe.ReadOnly, lathe.Idempotent} {
		key := fmt.Sprint("k", i)
		putCall(t, q, call(key, effect))
		old := beginCall(t, q, "a")
		expire(t, q, old)
		callState(t, q, key, remote.Queued)
		next := beginCall(t, q, "b")
		wantConflict(t, "the late result of the attempt before", q.FinishCall(t.Context(), old, good("old")))
		if err := q.FinishCall(t.Context(), next, good("new")); err != nil {
			t.Fatal(err)
		}
		if row := callState(t, q, key, remote.Done); string(row.Result.Data) != `"new"` || string(row.Ref().Worker) != "b" {
			t.Errorf("done: %+v", row)
		}
	}
}

func givesUp(t *testing.T, q remote.Queue) {
	putCall(t, q, call("k", lathe.ReadOnly))
	for range remote.MaxStarts {
		callState(t, q, "k", remote.Queued)
		expire(t, q, beginCall(t, q, "a"))
	}
	if row := callState(t, q, "k", remote.Done); !row.Result.IsError || row.Result.Code != lathe.CodeUnavailable {
		t.Errorf("the result is %+v", row.Result)
	}
}

func leavesWriters(t *testing.T, q remote.Queue) {
	for i, effect := range []lathe.Effect{lathe.Writes, lathe.EffectUndeclared} {
		key := fmt.Sprint("k", i)
		putCall(t, q, call(key, effect))
		expire(t, q, beginCall(t, q, "a"))
		if row := callState(t, q, key, remote.Unknown); row.Arguments != nil {
			t.Error("the arguments are kept")
		}
		if calls, err := q.ClaimCalls(t.Context(), "b", []string{"def"}, long, 9); err != nil || len(calls) != 0 {
			t.Errorf("%d calls are claimed, %v", len(calls), err)
		}
		if row := putCall(t, q, call(key, effect)); row.State != remote.Unknown {
			t.Errorf("put again it is %s", row.State)
		}
	}
}

func acceptsLateResults(t *testing.T, q remote.Queue) {
	ctx := t.Context()
	putCall(t, q, call("finished", lathe.Writes))
	ref := beginCall(t, q, "a")
	expire(t, q, ref)
	wantConflict(t, "the late result of another worker", q.FinishCall(ctx, remote.Ref{Key: ref.Key, Attempt: ref.Attempt, Worker: "b"}, good("x")))
	if err := q.FinishCall(ctx, ref, good("late")); err != nil {
		t.Fatal(err)
	}
	callState(t, q, "finished", remote.Done)

	putCall(t, q, call("decided", lathe.Writes))
	if row, err := q.DecideCall(ctx, "decided"); err != nil || row.Decided || row.State != remote.Queued {
		t.Errorf("a queued call was decided: %+v, %v", row, err)
	}
	ref = beginCall(t, q, "a")
	expire(t, q, ref)
	if row, err := q.DecideCall(ctx, "decided"); err != nil || !row.Decided || row.State != remote.Unknown {
		t.Errorf("decided: %+v, %v", row, err)
	}
	wantConflict(t, "the result of a call that was decided", q.FinishCall(ctx, ref, good("late")))
	callState(t, q, "decided", remote.Unknown)

	putCall(t, q, call("queued", lathe.ReadOnly))
	ref = beginCall(t, q, "a")
	expire(t, q, ref)
	if err := q.FinishCall(ctx, ref, good("late")); err != nil {
		t.Errorf("no other worker has claimed it, and the result is refused: %v", err)
	}
	callState(t, q, "queued", remote.Done)
}

func returnsCalls(t *testing.T, q remote.Queue) {
	ctx := t.Context()
	putCall(t, q, call("k", lathe.Writes))
	first := claimCall(t, q, "a")
	if err := q.ReturnCall(ctx, first); err != nil {
		t.Fatal(err)
	}
	second := beginCall(t, q, "a")
	if err := q.ReturnCall(ctx, second); err != nil {
		t.Fatal(err)
	}
	wantConflict(t, "the result of what was returned", q.FinishCall(ctx, second, good("x")))
	wantConflict(t, "a second return", q.ReturnCall(ctx, second))
	third := beginCall(t, q, "b")
	if _, err := q.CancelCall(ctx, "k"); err != nil {
		t.Fatal(err)
	}
	if err := q.ReturnCall(ctx, third); err != nil {
		t.Fatal(err)
	}
	callState(t, q, "k", remote.Cancelled) // its run has cancelled it
}

func cancelsCalls(t *testing.T, q remote.Queue) {
	ctx := t.Context()
	putCall(t, q, call("queued", lathe.Writes))
	if row, err := q.CancelCall(ctx, "queued"); err != nil || row.State != remote.Cancelled || !row.Cancelled || row.Arguments != nil {
		t.Fatalf("%+v, %v", row, err)
	}
	putCall(t, q, call("claimed", lathe.Writes))
	ref := claimCall(t, q, "a")
	if row, err := q.CancelCall(ctx, "claimed"); err != nil || row.State != remote.Cancelled {
		t.Fatalf("%+v, %v", row, err)
	}
	wantConflict(t, "the start of a call that is cancelled", q.StartCall(ctx, ref, long))

	putCall(t, q, call("answered", lathe.Writes))
	ref = beginCall(t, q, "a")
	if row, err := q.CancelCall(ctx, "answered"); err != nil || row.State != remote.Started || !row.Cancelled {
		t.Fatalf("%+v, %v", row, err)
	}
	if stop, err := q.RenewCalls(ctx, "a", []remote.Ref{ref}, long); err != nil || !slices.Equal(stop, []remote.Ref{ref}) {
		t.Errorf("the worker receives %v, %v", stop, err)
	}
	if err := q.FinishCall(ctx, ref, good("after all")); err != nil {
		t.Errorf("what a worker has done counts: %v", err)
	}
	if row, err := q.CancelCall(ctx, "answered"); err != nil || row.State != remote.Done || row.Result == nil {
		t.Errorf("what is done cannot be cancelled: %+v, %v", row, err)
	}

	for key, want := range map[string]remote.State{"reader": remote.Cancelled, "writer": remote.Unknown} {
		c := call(key, lathe.ReadOnly)
		if key == "writer" {
			c.Effect = lathe.Writes
		}
		putCall(t, q, c)
		ref = beginCall(t, q, "a")
		if _, err := q.CancelCall(ctx, key); err != nil {
			t.Fatal(err)
		}
		expire(t, q, ref)
		callState(t, q, key, want)
	}
}

func tooLate(t *testing.T, q remote.Queue) {
	ctx := t.Context()
	if _, err := q.PutCall(ctx, call("k", lathe.Writes), 0); err != nil {
		t.Fatal(err)
	}
	if calls, err := q.ClaimCalls(ctx, "a", []string{"def"}, long, 9); err != nil || len(calls) != 0 {
		t.Errorf("a call whose time is up was claimed: %d, %v", len(calls), err)
	}
	if _, err := q.ExpireCalls(ctx); err != nil {
		t.Fatal(err)
	}
	if row := callState(t, q, "k", remote.Cancelled); row.Left > 0 || row.Cancelled {
		t.Errorf("%+v", row)
	}
}

func missesCalls(t *testing.T, q remote.Queue) {
	ctx := t.Context()
	ref := remote.Ref{Key: "none", Attempt: 1, Worker: "a"}
	_, found := q.FindCall(ctx, "none")
	_, cancelled := q.CancelCall(ctx, "none")
	_, decided := q.DecideCall(ctx, "none")
	for what, err := range map[string]error{"find": found, "cancel": cancelled, "decide": decided, "start": q.StartCall(ctx, ref, long),
		"finish": q.FinishCall(ctx, ref, good("x")), "return": q.ReturnCall(ctx, ref)} {
		if !errors.Is(err, lathe.ErrNotFound) || lathe.CodeOf(err) != lathe.CodeNotFound {
			t.Errorf("%s: got %v, want not found", what, err)
		}
	}
	if n, err := q.ExpireCalls(ctx); n != 0 || err != nil {
		t.Errorf("reaped %d, %v", n, err)
	}
}

// deliversNotifications waits for each notification until it arrives: an implementation may lose some, not all of them.
func deliversNotifications(t *testing.T, q remote.Queue) {
	ctx, cancel := context.WithCancel(t.Context())
	notifications := make(chan remote.Notification, 1000)
	over := make(chan error, 1)
	go func() {
		over <- q.WatchCalls(ctx, func(h remote.Notification) {
			select {
			case notifications <- h:
			default:
			}
		})
	}()
	wait := func(what string, is func(remote.Notification) bool, again func()) {
		t.Helper()
		deadline := time.After(30 * time.Second)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case h := <-notifications:
				if is(h) {
					return
				}
			case <-tick.C:
				again()
			case <-deadline:
				t.Fatalf("no notification of %s", what)
			}
		}
	}
	n := 0
	another := func() {
		n++
		putCall(t, q, call(fmt.Sprint("k", n), lathe.Writes))
	}
	wait("a queued call", func(h remote.Notification) bool { return h.Definition == "def" && h.Key != "" }, another)
	var refs []remote.Ref
	calls, err := q.ClaimCalls(ctx, "a", []string{"def"}, long, 1000)
	if err != nil || len(calls) == 0 {
		t.Fatalf("%d calls, %v", len(calls), err)
	}
	for i := range calls {
		refs = append(refs, calls[i].Ref())
		if err := q.StartCall(ctx, calls[i].Ref(), long); err != nil {
			t.Fatal(err)
		}
	}
	cancelIt := func() {
		if _, err := q.CancelCall(ctx, refs[0].Key); err != nil {
			t.Error(err)
		}
	}
	cancelIt()
	wait("a call to be cancelled", func(h remote.Notification) bool { return h.Cancelled && h.Key == refs[0].Key }, cancelIt)
	finish := func() {
		if err := q.FinishCall(ctx, refs[0], good("x")); err != nil {
			t.Error(err)
		}
	}
	finish()
	wait("a call that is done", func(h remote.Notification) bool { return h.Key == refs[0].Key && !h.Cancelled }, func() {})
	w := 0
	worker := func() {
		w++
		if err := q.PutWorker(ctx, &remote.Worker{ID: fmt.Sprint("f/", w), Pool: "f"}, long); err != nil {
			t.Error(err)
		}
	}
	worker()
	wait("the workers", func(h remote.Notification) bool { return h == remote.Notification{} }, worker)
	cancel()
	if err := <-over; err != nil && ctx.Err() == nil {
		t.Error(err)
	}
}

func knowsWorkers(t *testing.T, q remote.Queue) {
	ctx := t.Context()
	tools := []remote.Tool{{Name: "act", Description: "Acts.", Schema: json.RawMessage(`{"type":"object"}`), Effect: "writes", Allowlist: []string{"*"},
		Target: []string{"id"}, Labels: []string{"x"}, Version: "1", TimeoutMS: 5}}
	for _, id := range []string{"f/b", "f/a", "f/c", "f/b"} {
		if err := q.PutWorker(ctx, &remote.Worker{ID: id, Pool: "f", Tools: tools}, long); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.PutWorker(ctx, &remote.Worker{ID: "f/c"}, 0); err != nil {
		t.Fatal(err)
	}
	got, err := q.Workers(ctx)
	if err != nil || len(got) != 2 || got[0].ID != "f/b" || got[1].ID != "f/a" || got[0].Since.IsZero() || got[0].Pool != "f" {
		t.Fatalf("%+v, %v", got, err)
	}
	if diff := cmp.Diff(tools, got[0].Tools); diff != "" {
		t.Errorf("the tools came back changed:\n%s", diff)
	}
	if err := q.PutWorker(ctx, &remote.Worker{ID: "f/b", Pool: "f"}, long); err != nil {
		t.Fatal(err)
	}
	if again, err := q.Workers(ctx); err != nil || len(again) != 2 || again[0].ID != "f/b" || len(again[0].Tools) != 0 || !again[0].Since.Equal(got[0].Since) {
		t.Errorf("%+v, %v", again, err)
	}
	if err := q.PutWorker(ctx, &remote.Worker{ID: "none"}, 0); err != nil {
		t.Errorf("forgetting a worker that is not there: %v", err)
	}
	shortenWorkers(t, q)
}

// shortenWorkers finds f/b and f/a. A time is shortened, never prolonged, and nothing else comes of it.
func shortenWorkers(t *testing.T, q remote.Queue) {
	ctx := t.Context()
	before, err := q.Workers(ctx)
	if err != nil {
		t.Fatal(err)
	}
	shorten := func(id string, ttl time.Duration) {
		t.Helper()
		if err := q.ShortenWorker(ctx, id, ttl); err != nil {
			t.Fatal(err)
		}
	}
	shorten("none", long)
	shorten("f/a", long/2)
	shorten("f/a", 2*long)
	after, err := q.Workers(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the workers are others:\n%s", diff)
	}
	shorten("f/a", 0)
	shorten("f/a", long)
	if left, err := q.Workers(ctx); err != nil || len(left) != 1 || left[0].ID != "f/b" {
		t.Errorf("%+v, %v", left, err)
	}
}

func callsContext(t *testing.T, q remote.Queue) {
	putCall(t, q, call("k", lathe.Writes))
	ctx := cancelled(t)
	if _, err := q.FindCall(ctx, "k"); lathe.CodeOf(err) != lathe.CodeCancelled {
		t.Errorf("find: %v", err)
	}
	if _, err := q.PutCall(ctx, call("l", lathe.Writes), long); lathe.CodeOf(err) != lathe.CodeCancelled {
		t.Errorf("put: %v", err)
	}
	if _, err := q.FindCall(t.Context(), "l"); !errors.Is(err, lathe.ErrNotFound) {
		t.Errorf("what was not put is there: %v", err)
	}
}

func forgetsCalls(t *testing.T, q remote.Queue) {
	s, ok := q.(store.Store)
	if !ok {
		t.Skip("the queue keeps no runs")
	}
	putCall(t, q, call("k", lathe.Writes))
	putCall(t, q, call("other", lathe.Writes))
	mustAppend(t, s, "run_k", 0, events("run_k", 0, 1)...)
	if err := s.Delete(t.Context(), "run_k"); err != nil {
		t.Fatal(err)
	}
	if _, err := q.FindCall(t.Context(), "k"); !errors.Is(err, lathe.ErrNotFound) {
		t.Errorf("the call of a run that was deleted: %v", err)
	}
	callState(t, q, "other", remote.Queued)
}
