package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/store"
)

// defaultLease is the default of Options.Lease.
const defaultLease = 10 * time.Second

// A node is this process among those with the same store. It claims each run that it executes, and renews all its claims together, three
// times per lease.
//
// Ownership has two parts. The lease determines when another process may acquire the run: if the node cannot renew the claim on a run, it
// stops the run a fifth of the lease before its end. The epoch of the claim, which grows with each owner, determines who may write: the
// store refuses an append under an older epoch. So a process that was suspended for longer than its lease and resumes in the middle of a
// run cannot write to the run. For example, with a lease of 10 s:
//
//	 0 s  node a claims run 7 at epoch 3
//	 3 s  a renews all its claims; at 4 s it is suspended
//	13 s  the lease ends; node b claims run 7 at epoch 4 and resumes it
//	20 s  a wakes up: its timer has expired, so it stops the run; an append that was under way is refused: epoch 3 < 4
type node struct {
	store   store.Shared
	name    string
	lease   time.Duration
	timeout time.Duration // timeout of one call of the store
	log     *slog.Logger

	mu         sync.Mutex
	owned      map[string]*claimHandle // claims by run id
	pending    map[string]int          // number of claims per run that are being made or are left to expire
	claiming   atomic.Int32            // the number of calls of Store.Claim in progress
	graceUntil time.Time               // the end of the failover grace period: until then no run is claimed
	renewal    *renewal                // nil: the node owns no run
	notify     func(runID string)      // called with a run that has new signals; nil: no supervisor
}

// A renewal is the goroutine that renews the claims of a node while the node has claims.
type renewal struct {
	quit context.CancelFunc
	over chan struct{} // closed when the goroutine has ended
}

func newNode(opts *Options, store store.Shared) *node {
	return &node{store: store, name: opts.Node, lease: opts.Lease, timeout: opts.StoreTimeout, log: opts.Log,
		owned: map[string]*claimHandle{}, pending: map[string]int{}}
}

// A claimHandle is the claim on a run that this process executes. It is nil on a store that is not shared. begin or own makes it, and end must
// be called once. In between, the goroutine of the run records what it has appended and read, for the release of the claim. The renewal by
// the node resets watch or calls lose.
type claimHandle struct {
	node  *node
	claim store.Claim // its epoch is 0 until the first append of a new run

	mu       sync.Mutex
	stop     context.CancelCauseFunc // ends the run; nil until the run is executed
	lost     bool
	watch    *time.Timer // calls lose if the claim is not renewed in time
	over     bool        // the run has ended
	seen     int64       // ID of the last event that was appended or read
	signals  int         // number of signals that were read
	reported int         // number of signals in the last renewal that reported more than before; guarded by node.mu
}

// Owns reports whether this process holds the claim on the run. It returns false if the store is not shared.
func (e *Engine) Owns(runID string) bool {
	n := e.node
	if n == nil {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.owned[runID] != nil
}

// begin returns the handle of the claim that the first append of a new run makes. It returns nil if the store is not shared.
func (n *node) begin(runID string, stop context.CancelCauseFunc) *claimHandle {
	if n == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pending[runID]++
	return &claimHandle{node: n, claim: store.Claim{RunID: runID, Node: n.name, Lease: n.lease}, stop: stop}
}

// acquire claims a run that no process executes. It returns nil if the store is not shared, and an error during the failover grace period.
func (n *node) acquire(ctx context.Context, runID string) (*claimHandle, error) {
	if n == nil {
		return nil, nil
	}
	const op = "engine: claim the run"
	if n.inGrace() {
		return nil, lathe.CodeUnavailable.Wrap(op, errGrace)
	}
	n.mu.Lock()
	if n.owned[runID] != nil || n.pending[runID] > 0 {
		n.mu.Unlock()
		return nil, lathe.CodeConflict.Errorf(op, "the run is under way already")
	}
	n.pending[runID]++
	n.mu.Unlock()
	defer n.endPending(runID)
	asked := time.Now()
	c, err := n.store.ClaimRun(ctx, n.name, runID, n.lease)
	if err != nil {
		return nil, storeCode(err).Wrap(op, err)
	}
	h := n.own(c, asked)
	if n.inGrace() { // ClaimRun may have found that the server has changed
		h.end(releaseClaim)
		return nil, lathe.CodeUnavailable.Wrap(op, errGrace)
	}
	return h, nil
}

// claim claims at most limit runs that no process executes.
func (n *node) claim(ctx context.Context, limit int) ([]*claimHandle, error) {
	n.claiming.Add(1)
	defer n.claiming.Add(-1)
	ctx, cancel := context.WithTimeout(ctx, n.timeout)
	defer cancel()
	asked := time.Now()
	claims, err := n.store.Claim(ctx, n.name, n.lease, limit)
	if err != nil {
		return nil, storeCode(err).Wrap("engine: claim", err)
	}
	var owned []*claimHandle
	for _, c := range claims {
		owned = append(owned, n.own(c, asked))
	}
	return owned, nil
}

// endPending records that a claim in pending was made, refused or has expired.
func (n *node) endPending(runID string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pending[runID]--
	if n.pending[runID] == 0 {
		delete(n.pending, runID)
	}
}

// own returns the handle of a claim that was requested at the time asked, and starts its renewal.
func (n *node) own(c store.Claim, asked time.Time) *claimHandle {
	h := &claimHandle{node: n, claim: c}
	n.keep(h, asked)
	return h
}

// keep adds h to the owned claims, so that it is renewed. asked is the time of the request for the claim.
func (n *node) keep(h *claimHandle, asked time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.owned[h.claim.RunID] = h
	h.mu.Lock()
	h.watch = time.AfterFunc(n.left(asked), h.lose)
	h.mu.Unlock()
	if n.renewal == nil {
		ctx, quit := context.WithCancel(context.Background())
		n.renewal = &renewal{quit, make(chan struct{})}
		go n.renew(ctx, n.renewal.over)
	}
}

// left returns the remaining time for which a claim that was requested at the time asked is safe: until a fifth of the lease before its
// end.
func (n *node) left(asked time.Time) time.Duration { return n.lease - n.lease/5 - time.Since(asked) }

// errLost is the cancellation cause of a run whose claim this process has lost.
var errLost = fmt.Errorf("the claim on it is lost: %w", errLeft)

// lose marks the claim as lost and stops its run, because another node may own the run.
func (h *claimHandle) lose() {
	h.mu.Lock()
	h.lost = true
	stop := h.stop
	h.mu.Unlock()
	if stop != nil {
		stop(errLost)
	}
}

// bind sets the function that stops the run, and calls it if the claim is already lost.
func (h *claimHandle) bind(stop context.CancelCauseFunc) {
	if h == nil {
		return
	}
	h.mu.Lock()
	h.stop = stop
	lost := h.lost
	h.mu.Unlock()
	if lost {
		stop(errLost)
	}
}

// append appends events under the claim. The first append of a new run makes the claim.
func (h *claimHandle) append(ctx context.Context, last int64, events []event.Event) error {
	n := h.node
	asked := time.Now()
	end, err := n.store.AppendAs(ctx, h.claim, last, events...)
	if err != nil {
		if h.claim.Epoch == 0 && errors.Is(err, lathe.ErrConflict) {
			h.noteOver() // another run has this id
		}
		return err
	}
	if h.claim.Epoch == 0 {
		h.claim.Epoch = 1
		n.keep(h, asked)
		n.endPending(h.claim.RunID)
	}
	_, over := events[len(events)-1].Data.(*event.RunFinished)
	h.noteLog(end, over)
	return nil
}

// noteLog records the last ID of the log, and whether the run has ended.
func (h *claimHandle) noteLog(last int64, over bool) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen, h.over = last, over
}

// noteOver records that the run has ended or is another run, so that end releases nothing.
func (h *claimHandle) noteOver() { h.noteLog(0, true) }

// noteSignals records the number of signals that were read.
func (h *claimHandle) noteSignals(read int) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.signals = read
}

// A claimEnd says how a process gives up a claim on a run that has not ended.
type claimEnd int

const (
	releaseClaim claimEnd = iota
	expireClaim           // the claim lasts until its lease ends, so that the run is not resumed at once
)

// end ends the execution of the run under the claim.
func (h *claimHandle) end(how claimEnd) {
	if h == nil {
		return
	}
	n := h.node
	if h.claim.Epoch == 0 { // the first append has not made the claim
		how = releaseClaim
		defer n.endPending(h.claim.RunID)
	}
	n.disown(h, how)
	h.mu.Lock()
	if h.watch != nil {
		h.watch.Stop()
	}
	c, seen, over := h.claim, h.seen, h.over
	c.Signals = h.signals
	h.mu.Unlock()
	if over || how == expireClaim {
		return
	}
	c.Epoch = max(c.Epoch, 1) // the store may have stored the first event although its response was lost
	n.release(c, seen)
}

// disown removes h from the owned claims, so that it is not renewed any more. It ends the renewal after the last claim.
func (n *node) disown(h *claimHandle, how claimEnd) {
	id := h.claim.RunID
	n.mu.Lock()
	if how == expireClaim {
		n.pending[id]++ // so that a renewal does not release the claim earlier
		time.AfterFunc(n.lease, func() { n.endPending(id) })
	}
	if n.owned[id] == h {
		delete(n.owned, id)
	}
	var last *renewal
	if len(n.owned) == 0 && n.renewal != nil {
		last, n.renewal = n.renewal, nil
	}
	n.mu.Unlock()
	if last != nil {
		last.quit()
		<-last.over
	}
}

func (n *node) release(c store.Claim, seen int64) {
	ctx, cancel := context.WithTimeout(context.Background(), n.timeout)
	defer cancel()
	if err := n.store.Release(ctx, c, seen); err != nil { // the lease will expire
		n.log.Warn("the claim on a run could not be released", "run_id", c.RunID, "code", lathe.CodeOf(err))
	}
}

// renew renews all claims periodically until ctx is done.
func (n *node) renew(ctx context.Context, over chan<- struct{}) {
	defer close(over)
	pause := n.lease / 3
	for {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		pause = n.lease / 3
		if err := n.renewOnce(ctx); err != nil && ctx.Err() == nil {
			n.log.Warn("claims could not be renewed", "code", lathe.CodeOf(err))
			pause = n.lease / 10
		}
	}
}

// renewOnce renews all claims. It stops the runs whose claims are lost, and releases claims of this node on runs that it does not execute.
func (n *node) renewOnce(ctx context.Context) error {
	asked := time.Now()
	n.mu.Lock()
	before := maps.Clone(n.owned)
	claiming := n.claiming.Load() > 0
	n.mu.Unlock()
	claims, err := n.renewAll(ctx)
	if err != nil {
		return err
	}
	var strays []store.Claim
	var news []string // runs with new signals
	n.mu.Lock()
	claiming = claiming || n.claiming.Load() > 0 // a claim that is being made is not one that this node does not execute
	for _, c := range claims {
		h := n.owned[c.RunID]
		isOwned := h != nil && h == before[c.RunID] && h.claim.Epoch == c.Epoch
		isStray := h == nil && n.pending[c.RunID] == 0 && !claiming
		switch {
		case isOwned:
			delete(before, c.RunID)
			h.renewed(n.left(asked))
			if c.Signals > h.reported {
				h.reported = c.Signals
				news = append(news, c.RunID)
			}
		case isStray:
			strays = append(strays, c)
		}
	}
	maps.DeleteFunc(before, func(id string, h *claimHandle) bool { return n.owned[id] != h }) // claims that ended during the renewal
	notify := n.notify
	n.mu.Unlock()
	for id, h := range before {
		n.log.Warn("the claim on a run is lost", "run_id", id)
		h.lose()
	}
	for _, c := range strays {
		n.release(c, 0)
	}
	for _, id := range news {
		if notify != nil {
			notify(id)
		}
	}
	return nil
}

// renewAll renews all claims of the node in the store and returns them. A panic of the store is returned as an error.
func (n *node) renewAll(ctx context.Context) (claims []store.Claim, err error) {
	defer recovered(&err, errStorePanicked)
	ctx, cancel := context.WithTimeout(ctx, n.lease/3)
	defer cancel()
	return n.store.Renew(ctx, n.name, n.lease)
}

func (h *claimHandle) renewed(left time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.lost {
		h.watch.Reset(left)
	}
}
