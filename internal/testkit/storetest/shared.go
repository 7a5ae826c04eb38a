package storetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/store"
)

// lease is so long that it does not end during a slow test.
const lease = time.Hour

// TestShared runs the tests for [store.Shared]. For each test open returns an empty store of its own and pass, which
// advances the store's clock. For a store whose clock cannot be set, pass moves the stored times back instead: the ends of
// leases, the times at which runs wake, and the expiry of addresses.
func TestShared(t *testing.T, open func() (s store.Shared, pass func(time.Duration))) {
	t.Helper()
	openShared := func() *shared {
		s, pass := open()
		return &shared{s, pass}
	}
	run(t, openShared, []testOf[*shared]{
		{"begins a run with a claim", beginsWithAClaim},
		{"takes events from the last claim alone", fences},
		{"keeps a claim until its lease ends", leaseEnds},
		{"renews the claims of a node", renews},
		{"gives others the runs of a node that stopped renewing", givesUpRenewed},
		{"renews no claim whose lease has ended", revivesNone},
		{"wakes a run whose holder is gone", wakesAbandoned},
		{"gives out runs in motion", givesRunsInMotion},
		{"leaves runs alone that cannot be resumed", leavesOthersAlone},
		{"leaves runs with an executor to it", leavesExecuted},
		{"lets a parked run wait once it was looked at", parks},
		{"loses no signal that comes while a run is executed", losesNoSignal},
		{"loses no event that comes while a run is released", losesNoEvent},
		{"wakes a parked run when a request for approval expires", wakes},
		{"takes one run", claimsOne},
		{"gives each run to one of many nodes", oneNodeEach},
		{"knows where nodes are", knowsAddresses},
		{"notifies of runs", notifications},
		{"refuses claims without a node or a lease", refusesClaims},
	})
}

type shared struct {
	store.Shared
	pass func(time.Duration)
}

// start begins a run of a node.
func (s *shared) start(t *testing.T, node, runID string) store.Claim {
	t.Helper()
	c := store.Claim{RunID: runID, Node: node, Lease: lease}
	end, err := s.AppendAs(t.Context(), c, 0, stamped(runID, 1, &event.RunStarted{Input: []byte(`{"version":1}`)}))
	if err != nil || end != 1 {
		t.Fatalf("begin %s: %d, %v", runID, end, err)
	}
	c.Epoch = 1
	return c
}

// append adds one event for the holder of the claim.
func (s *shared) append(t *testing.T, c store.Claim, last int64, d event.Data) {
	t.Helper()
	if end, err := s.AppendAs(t.Context(), c, last, stamped(c.RunID, last+1, d)); err != nil || end != last+1 {
		t.Fatalf("append to %s: %d, %v", c.RunID, end, err)
	}
}

// claim claims at most limit runs for a node.
func (s *shared) claim(t *testing.T, node string, limit int) []store.Claim {
	t.Helper()
	got, err := s.Claim(t.Context(), node, lease, limit)
	if err != nil {
		t.Fatalf("claim: %v", err)
	}
	for _, c := range got {
		if c.Node != node || c.Epoch < 1 || c.Lease != lease {
			t.Errorf("got the claim %+v", c)
		}
	}
	return got
}

// claimOnly claims for a node, and fails unless it gets exactly one run.
func (s *shared) claimOnly(t *testing.T, node string) store.Claim {
	t.Helper()
	got := s.claim(t, node, 10)
	if len(got) != 1 {
		t.Fatalf("%s got %d claims, want 1", node, len(got))
	}
	return got[0]
}

// wantNoClaim fails if another node can claim a run.
func (s *shared) wantNoClaim(t *testing.T, why string) {
	t.Helper()
	if got := s.claim(t, "node_other", 10); len(got) != 0 {
		t.Fatalf("%s: got %+v, want no claim", why, got)
	}
}

func (s *shared) release(t *testing.T, c store.Claim, seen int64) {
	t.Helper()
	if err := s.Release(t.Context(), c, seen); err != nil {
		t.Fatalf("release: %v", err)
	}
}

func (s *shared) wantOwner(t *testing.T, runID, want string) {
	t.Helper()
	if got, err := s.Owner(t.Context(), runID); err != nil || got != want {
		t.Errorf("the owner of %s: got %q, %v, want %q", runID, got, err, want)
	}
}

func waiting(id string) *event.RunPaused {
	return &event.RunPaused{Reason: lathe.ReasonAwaitingApproval, Pending: []string{id}}
}

func beginsWithAClaim(t *testing.T, s *shared) {
	s.wantOwner(t, "run_a", "")
	c := s.start(t, "node_1", "run_a")
	s.wantOwner(t, "run_a", "node_1")
	s.wantNoClaim(t, "a run under way")
	_, err := s.AppendAs(t.Context(), store.Claim{RunID: "run_a", Node: "node_2", Lease: lease}, 0, stamped("run_a", 1, &event.RunStarted{}))
	wantConflict(t, "a run that was begun already", err)
	s.wantOwner(t, "run_a", "node_1")
	s.append(t, c, 1, &event.RunFinished{Reason: lathe.ReasonAnswered, Status: "completed"})
	s.wantOwner(t, "run_a", "")
	if got := read(t, s, "run_a", 0); len(got) != 2 {
		t.Errorf("got %d events, want 2", len(got))
	}
	if _, err := s.AppendAs(t.Context(), store.Claim{RunID: "run_b", Node: "node_1", Epoch: 1, Lease: lease}, 0, events("run_b", 0, 1)...); !errors.Is(err, lathe.ErrConflict) {
		t.Errorf("a claim of a run that is not there: %v", err)
	}
}

func fences(t *testing.T, s *shared) {
	first := s.start(t, "node_1", "run_a")
	s.pass(2 * lease)
	s.append(t, first, 1, &event.RunResumed{}) // no other node has acquired the run
	second := s.claimOnly(t, "node_2")
	if second.Epoch != first.Epoch+1 {
		t.Errorf("got epoch %d after %d", second.Epoch, first.Epoch)
	}
	for name, c := range map[string]store.Claim{
		"the claim before":         first,
		"no claim":                 {RunID: "run_a", Node: "node_1", Lease: lease},
		"the epoch of another":     {RunID: "run_a", Node: "node_1", Epoch: second.Epoch, Lease: lease},
		"a claim that is to come":  {RunID: "run_a", Node: "node_2", Epoch: second.Epoch + 1, Lease: lease},
		"a claim of another's run": {RunID: "run_b", Node: "node_2", Epoch: second.Epoch, Lease: lease},
	} {
		_, err := s.AppendAs(t.Context(), c, 2, stamped(c.RunID, 3, &event.RunResumed{}))
		wantConflict(t, name, err)
	}
	s.append(t, second, 2, &event.RunResumed{})
	_, err := s.AppendAs(t.Context(), second, 2, stamped("run_a", 3, &event.RunResumed{}))
	wantConflict(t, "a log that has moved on", err)
	s.release(t, first, 3) // which is not the last one
	s.wantOwner(t, "run_a", "node_2")
	s.release(t, second, 3)
	_, err = s.AppendAs(t.Context(), second, 3, stamped("run_a", 4, &event.RunResumed{}))
	wantConflict(t, "a claim that was released", err)
	if got := read(t, s, "run_a", 0); len(got) != 3 {
		t.Errorf("got %d events, want 3", len(got))
	}
}

func leaseEnds(t *testing.T, s *shared) {
	c := s.start(t, "node_1", "run_a")
	s.pass(lease / 2)
	s.wantNoClaim(t, "half of the lease")
	s.pass(lease)
	s.wantOwner(t, "run_a", "")
	next := s.claimOnly(t, "node_2")
	s.wantOwner(t, "run_a", "node_2")
	if next.Epoch != c.Epoch+1 || next.RunID != "run_a" {
		t.Errorf("got %+v", next)
	}
	if got, err := s.Renew(t.Context(), "node_1", lease); err != nil || len(got) != 0 {
		t.Errorf("a claim that was lost is renewed: %+v, %v", got, err)
	}
}

// renews checks that node_1 renews its claims of run_a and run_b alone: run_c has ended, run_d belongs to node_2, and run_e is released. The
// claims of node_1 are renewed after each half of a lease. The claim of node_2 is never renewed, and has ended after the three halves.
func renews(t *testing.T, s *shared) {
	for _, id := range []string{"run_a", "run_b"} {
		s.start(t, "node_1", id)
	}
	s.append(t, s.start(t, "node_1", "run_c"), 1, &event.RunFinished{Reason: lathe.ReasonAnswered, Status: "completed"})
	s.start(t, "node_2", "run_d")
	s.release(t, s.start(t, "node_1", "run_e"), 1)
	mustPut(t, s, store.Signal{RunID: "run_b", Kind: "cancel"})
	for range 3 {
		s.pass(lease / 2)
		got, err := s.Renew(t.Context(), "node_1", lease)
		slices.SortFunc(got, func(a, b store.Claim) int { return strings.Compare(a.RunID, b.RunID) })
		if err != nil || len(got) != 2 || got[0] != (store.Claim{RunID: "run_a", Node: "node_1", Epoch: 1, Lease: lease}) ||
			got[1] != (store.Claim{RunID: "run_b", Node: "node_1", Epoch: 1, Lease: lease, Signals: 1}) {
			t.Fatalf("got %+v, %v", got, err)
		}
	}
	if got := s.claim(t, "node_3", 10); len(got) != 2 { // run_d, whose lease has ended, and run_e
		t.Errorf("got %+v, want two claims", got)
	}
	s.pass(2 * lease) // the claims of node_1 end
	if got, err := s.Renew(t.Context(), "node_1", lease); err != nil || len(got) != 0 {
		t.Errorf("claims that have ended are renewed: %+v, %v", got, err)
	}
}

// wantRenewed renews the claims of a node, and fails unless they are those of these runs.
func (s *shared) wantRenewed(t *testing.T, node string, want ...string) {
	t.Helper()
	claims, err := s.Renew(t.Context(), node, lease)
	var got []string
	for _, c := range claims {
		got = append(got, c.RunID)
	}
	slices.Sort(got)
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("%s renewed %v, %v, want %v", node, got, err, want)
	}
}

// givesUpRenewed checks that the runs of node_1, of which run_c waits for an approval, can be claimed once node_1 has released them or has
// renewed nothing for a lease, and not before. node_2, which begins with run_d, renews its claims and receives the runs of node_1 one after
// the other, each with epoch 2: run_b by its release, then run_a with ClaimRun, then run_c with Claim.
func givesUpRenewed(t *testing.T, s *shared) {
	first := map[string]store.Claim{}
	for _, id := range []string{"run_a", "run_b", "run_c"} {
		first[id] = s.start(t, "node_1", id)
	}
	s.append(t, first["run_c"], 1, waiting("c1"))
	s.start(t, "node_2", "run_d")
	for range 2 {
		s.wantRenewed(t, "node_1", "run_a", "run_b", "run_c")
		s.wantRenewed(t, "node_2", "run_d")
		s.pass(lease / 2)
		s.wantNoClaim(t, "claims that were renewed")
		_, err := s.ClaimRun(t.Context(), "node_2", "run_a", lease)
		wantConflict(t, "a run whose claim was renewed", err)
		s.wantOwner(t, "run_a", "node_1")
	}
	// Half a lease after the last renewal, node_1 releases run_b.
	s.release(t, first["run_b"], 1)
	if got := s.claimOnly(t, "node_2"); got.RunID != "run_b" || got.Epoch != 2 {
		t.Errorf("what was released: %+v", got)
	}
	s.wantRenewed(t, "node_2", "run_b", "run_d")
	s.pass(lease / 2) // a lease after the last renewal of node_1, half a lease after that of node_2
	s.wantOwner(t, "run_a", "")
	s.wantOwner(t, "run_b", "node_2")
	taken, err := s.ClaimRun(t.Context(), "node_2", "run_a", lease)
	if err != nil || taken.Epoch != 2 {
		t.Fatalf("a run whose holder is late: %+v, %v", taken, err)
	}
	if got := s.claimOnly(t, "node_2"); got.RunID != "run_c" || got.Epoch != 2 {
		t.Errorf("a run whose holder is late: %+v", got)
	}
	s.wantRenewed(t, "node_1") // it owns no run
	s.wantRenewed(t, "node_2", "run_a", "run_b", "run_c", "run_d")
	_, err = s.AppendAs(t.Context(), first["run_a"], 1, stamped("run_a", 2, &event.RunResumed{}))
	wantConflict(t, "a claim that was lost", err)
	s.append(t, taken, 1, &event.RunResumed{})
}

// revivesNone checks that a node whose claims have ended does not get them back by renewing the claims of later runs. node_1 begins run_a,
// run_b and run_c, each two leases after the one before, and renews. Only its claim of run_c then holds; node_2 claims the other two runs,
// and node_1 claims run_c again.
func revivesNone(t *testing.T, s *shared) {
	s.start(t, "node_1", "run_a")
	s.pass(2 * lease) // the claim of run_a ends, never renewed
	s.start(t, "node_1", "run_b")
	s.wantRenewed(t, "node_1", "run_b")
	s.pass(2 * lease) // the claim of run_b ends, renewed once
	s.start(t, "node_1", "run_c")
	s.wantRenewed(t, "node_1", "run_c")
	s.pass(lease / 2)
	s.wantOwner(t, "run_c", "node_1")
	if got := s.claim(t, "node_2", 1); len(got) != 1 {
		t.Errorf("with limit 1: %+v", got)
	}
	if got := s.claimOnly(t, "node_2"); got.Epoch != 2 {
		t.Errorf("got %+v", got)
	}
	s.wantRenewed(t, "node_1", "run_c")
	again, err := s.ClaimRun(t.Context(), "node_1", "run_c", lease) // which node_1 owns already
	if err != nil || again.Epoch != 2 {
		t.Errorf("got %+v, %v", again, err)
	}
	s.wantRenewed(t, "node_1", "run_c")
}

// wakesAbandoned checks when a run that waits can be claimed after the node that owned it has crashed: with a new signal (run_a), and when
// its request for approval expires (run_b, after 10 leases; that of run_a expires after 1000). node_2, which owns run_c, renews all the time.
func wakesAbandoned(t *testing.T, s *shared) {
	for i, id := range []string{"run_a", "run_b"} {
		c := s.start(t, "node_1", id)
		asked := &event.ApprovalRequested{ToolCallID: "c1"}
		asked.ExpiresAt = time.Now().Add(10 * lease)
		if i == 0 {
			asked.ExpiresAt = time.Now().Add(1000 * lease)
		}
		s.append(t, c, 1, asked)
		s.append(t, c, 2, waiting("c1"))
		s.release(t, c, 3)
		if _, err := s.ClaimRun(t.Context(), "node_1", id, lease); err != nil { // the node that reads the run crashes
			t.Fatal(err)
		}
	}
	s.wantRenewed(t, "node_1", "run_a", "run_b")
	s.pass(2 * lease) // the claims of node_1 end
	s.start(t, "node_2", "run_c")
	s.wantRenewed(t, "node_2", "run_c")
	s.wantNoClaim(t, "runs that wait, with nothing new")
	mustPut(t, s, store.Signal{RunID: "run_a", Kind: store.SignalApproval, Key: "c1", Body: []byte(`{}`)})
	if got := s.claimOnly(t, "node_2"); got.RunID != "run_a" || got.Signals != 1 {
		t.Errorf("the one with a signal: %+v", got)
	}
	s.wantRenewed(t, "node_2", "run_a", "run_c")
	s.pass(lease / 2)
	s.wantRenewed(t, "node_2", "run_a", "run_c")
	for range 9 { // 8.1 leases, after 2.5: the request of run_b has expired
		s.pass(lease - lease/10)
		s.wantRenewed(t, "node_2", "run_a", "run_c")
	}
	if got := s.claimOnly(t, "node_2"); got.RunID != "run_b" {
		t.Errorf("the one whose request has expired: %+v", got)
	}
}

func givesRunsInMotion(t *testing.T, s *shared) {
	c := s.start(t, "node_1", "run_a")
	s.release(t, c, 1)
	s.wantOwner(t, "run_a", "")
	if got := s.claim(t, "node_1", 0); len(got) != 0 {
		t.Errorf("with limit 0: %+v", got)
	}
	next := s.claimOnly(t, "node_1") // which has owned the run before
	if next.Epoch != 2 {
		t.Errorf("got %+v", next)
	}
	begin(t, s, "run_b") // without a claim
	if got := s.claimOnly(t, "node_2"); got.RunID != "run_b" || got.Epoch < 1 {
		t.Errorf("got %+v", got)
	}
	for _, id := range []string{"run_c", "run_d", "run_e"} {
		begin(t, s, id)
	}
	if got := s.claim(t, "node_2", 2); len(got) != 2 {
		t.Errorf("with limit 2: got %d", len(got))
	}
}

func leavesOthersAlone(t *testing.T, s *shared) {
	mustAppend(t, s, "run_a", 0, stamped("run_a", 1, &event.RunStarted{})) // it cannot be resumed
	c := s.start(t, "node_1", "run_b")
	s.append(t, c, 1, &event.RunFinished{Reason: lathe.ReasonAnswered, Status: "completed"})
	s.release(t, c, 0)
	s.pass(2 * lease)
	s.wantNoClaim(t, "one run is not resumable, the other has ended")
}

// A run that is executed step by step is claimed by its executor alone, with ClaimRun, in each of its states.
func leavesExecuted(t *testing.T, s *shared) {
	c := store.Claim{RunID: "run_a", Node: "node_1", Lease: lease}
	if _, err := s.AppendAs(t.Context(), c, 0, stamped("run_a", 1, &event.RunStarted{Input: []byte(`{"version":1}`), Executor: "steps"})); err != nil {
		t.Fatal(err)
	}
	c.Epoch = 1
	s.release(t, c, 0)
	s.wantNoClaim(t, "between two steps")
	c, err := s.ClaimRun(t.Context(), "node_2", "run_a", lease)
	if err != nil {
		t.Fatalf("a step: %v", err)
	}
	s.pass(2 * lease)
	s.wantNoClaim(t, "the process of a step is gone")
	if c, err = s.ClaimRun(t.Context(), "node_1", "run_a", lease); err != nil {
		t.Fatalf("the next step: %v", err)
	}
	s.append(t, c, 1, &event.ApprovalRequested{ToolCallID: "c1", ExpiresAt: epoch})
	s.append(t, c, 2, waiting("c1"))
	s.release(t, c, 1)
	mustPut(t, s, store.Signal{RunID: "run_a", Kind: "approval", Key: "c1"})
	s.wantNoClaim(t, "it waits, has a signal, and its request for approval has expired")
	rows, _, err := s.Runs(t.Context(), &store.RunFilter{RunID: "run_a"})
	if err != nil || len(rows) != 1 || rows[0].Executor != "steps" || !rows[0].Resumable {
		t.Errorf("the row: %+v, %v", rows, err)
	}
}

func parks(t *testing.T, s *shared) {
	c := s.start(t, "node_1", "run_a")
	s.append(t, c, 1, waiting("c1"))
	s.release(t, c, 2)
	s.wantNoClaim(t, "it waits, and all of it was seen")
	mustPut(t, s, store.Signal{RunID: "run_a", Kind: "approval", Key: "c1"})
	next := s.claimOnly(t, "node_2")
	if next.Signals != 1 {
		t.Errorf("the claim has %d signals, want 1", next.Signals)
	}
	s.release(t, next, 2) // the holder has read the signal and released the run
	s.wantNoClaim(t, "the signal was seen")

	unseen := s.start(t, "node_1", "run_b")
	s.append(t, unseen, 1, waiting("c1"))
	s.wantNoClaim(t, "the claim holds")
	s.pass(2 * lease) // the holder is gone before it gave the claim back
	if got := s.claimOnly(t, "node_2"); got.RunID != "run_b" {
		t.Errorf("got %+v", got)
	}
}

func losesNoSignal(t *testing.T, s *shared) {
	c := s.start(t, "node_1", "run_a")
	mustPut(t, s, store.Signal{RunID: "run_a", Kind: "approval", Key: "c1"})
	s.append(t, c, 1, waiting("c1"))
	s.release(t, c, 2)
	next := s.claimOnly(t, "node_2")
	mustPut(t, s, store.Signal{RunID: "run_a", Kind: "result", Key: "c2"}) // after it has looked
	s.release(t, next, 2)
	next = s.claimOnly(t, "node_1")
	if next.Signals != 2 {
		t.Errorf("the claim has %d signals, want 2", next.Signals)
	}
	s.pass(2 * lease) // the holder is gone
	next = s.claimOnly(t, "node_2")
	s.release(t, next, 2)
	s.wantNoClaim(t, "all was seen")
}

func losesNoEvent(t *testing.T, s *shared) {
	c := s.start(t, "node_1", "run_a")
	s.append(t, c, 1, waiting("c1"))
	s.release(t, c, 1)
	next := s.claimOnly(t, "node_2")
	s.release(t, next, 2)
	s.wantNoClaim(t, "all was seen")
	mustAppend(t, s, "run_a", 2, stamped("run_a", 3, waiting("c1")))
	s.claimOnly(t, "node_2")
}

func wakes(t *testing.T, s *shared) {
	c := s.start(t, "node_1", "run_a")
	s.append(t, c, 1, &event.ApprovalRequested{ToolCallID: "c1", ExpiresAt: time.Now().Add(10 * lease)})
	s.append(t, c, 2, waiting("c1"))
	s.release(t, c, 3)
	s.pass(lease)
	s.wantNoClaim(t, "the request has not expired")
	s.pass(10 * lease)
	next := s.claimOnly(t, "node_2")
	s.append(t, next, 3, &event.RunResumed{})
	s.append(t, next, 4, &event.ApprovalResolved{ToolCallID: "c1", Decision: "expired"})
	s.append(t, next, 5, waiting("c2"))
	s.release(t, next, 6)
	s.pass(10 * lease)
	s.wantNoClaim(t, "no request is open")
}

func claimsOne(t *testing.T, s *shared) {
	if _, err := s.ClaimRun(t.Context(), "node_1", "run_a", lease); !errors.Is(err, lathe.ErrNotFound) || lathe.CodeOf(err) != lathe.CodeNotFound {
		t.Errorf("a run that is not there: %v", err)
	}
	c := s.start(t, "node_1", "run_a")
	_, err := s.ClaimRun(t.Context(), "node_2", "run_a", lease)
	wantConflict(t, "a run that another node owns", err)
	s.append(t, c, 1, waiting("c1"))
	s.release(t, c, 2)
	taken, err := s.ClaimRun(t.Context(), "node_2", "run_a", lease)
	if err != nil || taken.Epoch != 2 || taken.RunID != "run_a" || taken.Node != "node_2" || taken.Lease != lease || taken.Signals != 0 {
		t.Fatalf("got %+v, %v", taken, err)
	}
	s.wantOwner(t, "run_a", "node_2")
	again, err := s.ClaimRun(t.Context(), "node_2", "run_a", lease)
	if err != nil || again.Epoch != 3 {
		t.Errorf("its own run: got %+v, %v", again, err)
	}
	s.pass(2 * lease)
	if c, err = s.ClaimRun(t.Context(), "node_1", "run_a", lease); err != nil || c.Epoch != 4 {
		t.Fatalf("a claim that has ended: got %+v, %v", c, err)
	}
	s.append(t, c, 2, &event.RunFinished{Reason: lathe.ReasonCancelled, Status: "cancelled"})
	for _, node := range []string{"node_1", "node_2"} {
		_, err = s.ClaimRun(t.Context(), node, "run_a", lease)
		wantConflict(t, "a run that has ended", err)
	}
	mustAppend(t, s, "run_b", 0, stamped("run_b", 1, &event.RunStarted{}))
	if c, err = s.ClaimRun(t.Context(), "node_1", "run_b", lease); err != nil || c.Epoch < 1 {
		t.Errorf("a run that is not resumable: got %+v, %v", c, err)
	}
}

func oneNodeEach(t *testing.T, s *shared) {
	const runs, nodes = 20, 4
	for i := range runs {
		begin(t, s, "run_"+string(rune('a'+i)))
	}
	got := make([]map[string]int64, nodes)
	var wg sync.WaitGroup
	for n := range nodes {
		got[n] = map[string]int64{}
		wg.Go(func() {
			for range runs {
				claims, err := s.Claim(context.Background(), "node_"+string(rune('a'+n)), lease, 3)
				if err != nil {
					t.Errorf("claim: %v", err)
				}
				for _, c := range claims {
					got[n][c.RunID] = c.Epoch
				}
			}
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	for _, mine := range got {
		for id := range mine {
			if seen[id] {
				t.Errorf("%s was given out twice", id)
			}
			seen[id] = true
		}
	}
	if len(seen) != runs {
		t.Errorf("%d runs were given out, want %d", len(seen), runs)
	}
}

func knowsAddresses(t *testing.T, s *shared) {
	want := func(node, address string) {
		t.Helper()
		if got, err := s.Address(t.Context(), node); err != nil || got != address {
			t.Errorf("the address of %s: got %q, %v, want %q", node, got, err, address)
		}
	}
	want("node_1", "")
	for _, address := range []string{"http://10.0.0.1:1", "http://10.0.0.1:2"} {
		if err := s.Advertise(t.Context(), "node_1", address, lease); err != nil {
			t.Fatal(err)
		}
		want("node_1", address)
	}
	want("node_2", "")
	s.pass(2 * lease)
	want("node_1", "")
}

// notifications checks that a watcher is notified of a run with new events or signals. A notification may come late and twice.
func notifications(t *testing.T, s *shared) {
	ctx, cancel := context.WithCancel(t.Context())
	notified := make(chan string, 1)
	over := make(chan error, 1)
	go func() {
		over <- s.Watch(ctx, func(id string) {
			select {
			case notified <- id:
			case <-ctx.Done():
			}
		})
	}()
	defer func() {
		cancel()
		if err := <-over; !errors.Is(err, context.Canceled) {
			t.Errorf("watch: %v", err)
		}
	}()
	c := s.start(t, "node_1", "run_a")
	last := int64(1)
	expect := func(what string, again func()) {
		t.Helper()
		deadline := time.After(time.Minute)
		for {
			select {
			case id := <-notified:
				if id == "run_a" {
					return
				}
				t.Errorf("%s: a notification of %q", what, id)
			case <-deadline:
				t.Fatalf("%s: no notification", what)
			case <-time.After(100 * time.Millisecond): // the watcher may not have listened yet
				again()
			}
		}
	}
	more := func() {
		s.append(t, c, last, &event.RunResumed{})
		last++
	}
	expect("an event", more)
	n := 0
	expect("a signal", func() {
		n++
		mustPut(t, s, store.Signal{RunID: "run_a", Kind: "result", Key: "c" + string(rune('a'+n%26)) + string(rune('a'+n/26))})
	})
}

func refusesClaims(t *testing.T, s *shared) {
	begin(t, s, "run_a")
	for _, tt := range []struct {
		node  string
		lease time.Duration
	}{{"", lease}, {"node_1", 0}, {"node_1", -time.Second}} {
		_, claim := s.Claim(t.Context(), tt.node, tt.lease, 1)
		_, take := s.ClaimRun(t.Context(), tt.node, "run_a", tt.lease)
		_, renew := s.Renew(t.Context(), tt.node, tt.lease)
		for what, err := range map[string]error{"claim": claim, "take": take, "renew": renew, "advertise": s.Advertise(t.Context(), tt.node, "http://x", tt.lease)} {
			if lathe.CodeOf(err) != lathe.CodeInvalidRequest {
				t.Errorf("%s for %q, %v: %v", what, tt.node, tt.lease, err)
			}
		}
	}
	done := cancelled(t)
	if _, err := s.Claim(done, "node_1", lease, 1); lathe.CodeOf(err) != lathe.CodeCancelled {
		t.Errorf("cancelled: %v", err)
	}
	if got := s.claim(t, "node_1", 1); len(got) != 1 {
		t.Errorf("refused claims took the run: got %+v", got)
	}
}
