package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
)

// defaultLease is for how long a claim holds unless the options say otherwise.
const defaultLease = 10 * time.Second

// A node is this process among those that use one store. It claims each run that is carried here and
// renews all its claims together, three times in each lease. What a run is stopped for too late is
// refused by the store: the claim is its fence.
type node struct {
	store   lathe.SharedStore
	name    string
	lease   time.Duration
	timeout time.Duration // of one call of the store
	log     *slog.Logger

	mu       sync.Mutex
	held     map[string]*hold   // by run
	coming   map[string]int     // runs whose claims are on their way here, or are left to end by themselves
	claiming int                // how many calls are under way that may bring any claim
	hushed   time.Time          // until then no run is claimed that others may know more of
	beat     *beat              // nil: nothing is held
	facts    func(runID string) // told of a carried run that has more facts than before; nil: nobody is
}

// A beat renews the claims of a node while there are some.
type beat struct {
	quit context.CancelFunc
	over chan struct{} // closed when it has ended
}

func newNode(opts *Options, store lathe.SharedStore) *node {
	return &node{store: store, name: opts.Node, lease: opts.Lease, timeout: opts.StoreTimeout, log: opts.Log,
		held: map[string]*hold{}, coming: map[string]int{}}
}

// A hold is the claim on a run that is carried here. A nil hold is one where nobody else could carry it.
type hold struct {
	node  *node
	claim lathe.Claim // its epoch is 0 until the run is begun

	mu     sync.Mutex
	stop   context.CancelCauseFunc // ends the run; nil until it is carried
	lost   bool
	watch  *time.Timer // ends the run where its lease could not be renewed in time
	over   bool        // the run has ended
	seen   int64       // the last event that was appended or read
	looked int         // how many facts were looked at
	told   int         // how many facts a beat has told of; the node's
}

// begin returns the hold of a run that its first append begins.
func (n *node) begin(runID string, stop context.CancelCauseFunc) *hold {
	if n == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.coming[runID]++
	return &hold{node: n, claim: lathe.Claim{RunID: runID, Node: n.name, Lease: n.lease}, stop: stop}
}

// take claims a run that nobody carries, unless the node is hushed.
func (n *node) take(ctx context.Context, runID string) (*hold, error) {
	if n == nil {
		return nil, nil
	}
	const op = "engine: take the run"
	if n.hush() {
		return nil, &lathe.Error{Code: lathe.CodeUnavailable, Op: op, Err: errHush}
	}
	n.mu.Lock()
	if n.held[runID] != nil || n.coming[runID] > 0 {
		n.mu.Unlock()
		return nil, &lathe.Error{Code: lathe.CodeConflict, Op: op, Err: errors.New("the run goes on already")}
	}
	n.coming[runID]++
	n.mu.Unlock()
	defer n.arrived(runID)
	asked := time.Now()
	c, err := n.store.Take(ctx, n.name, runID, n.lease)
	if err != nil {
		return nil, &lathe.Error{Code: storeCode(err), Op: op, Err: err}
	}
	h := n.hold(c, asked)
	if n.hush() { // which was found by taking
		h.end(false)
		return nil, &lathe.Error{Code: lathe.CodeUnavailable, Op: op, Err: errHush}
	}
	return h, nil
}

// claim takes runs that nobody carries, limit at most.
func (n *node) claim(ctx context.Context, limit int) ([]*hold, error) {
	n.mu.Lock()
	n.claiming++
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		n.claiming--
		n.mu.Unlock()
	}()
	ctx, cancel := context.WithTimeout(ctx, n.timeout)
	defer cancel()
	asked := time.Now()
	claims, err := n.store.Claim(ctx, n.name, n.lease, limit)
	if err != nil {
		return nil, &lathe.Error{Code: storeCode(err), Op: "engine: claim", Err: err}
	}
	holds := make([]*hold, len(claims))
	for i := range claims {
		holds[i] = n.hold(claims[i], asked)
	}
	return holds, nil
}

// arrived ends the wait for a claim that was on its way.
func (n *node) arrived(runID string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.coming[runID]--; n.coming[runID] == 0 {
		delete(n.coming, runID)
	}
}

// hold takes up a claim that was asked for at that time.
func (n *node) hold(c lathe.Claim, asked time.Time) *hold {
	h := &hold{node: n, claim: c}
	n.keep(h, asked)
	return h
}

// keep has the claim of h renewed from now on.
func (n *node) keep(h *hold, asked time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.held[h.claim.RunID] = h
	h.mu.Lock()
	h.watch = time.AfterFunc(n.left(asked), h.lose)
	h.mu.Unlock()
	if n.beat == nil {
		ctx, quit := context.WithCancel(context.Background())
		n.beat = &beat{quit, make(chan struct{})}
		go n.renew(ctx, n.beat.over)
	}
}

// left is how much longer a claim may be relied on that was asked for then: a fifth of the lease is
// left to whoever comes next.
func (n *node) left(asked time.Time) time.Duration { return n.lease - n.lease/5 - time.Since(asked) }

// errLost is why a run is left whose claim is not ours any more.
var errLost = fmt.Errorf("the claim on it is lost: %w", errLeft)

// lose stops the run: another node may carry it.
func (h *hold) lose() {
	h.mu.Lock()
	h.lost = true
	stop := h.stop
	h.mu.Unlock()
	if stop != nil {
		stop(errLost)
	}
}

// bind has stop called when the claim is lost, at once where it is.
func (h *hold) bind(stop context.CancelCauseFunc) {
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

// append appends events as the holder of the claim.
func (h *hold) append(ctx context.Context, last int64, events []lathe.Event) error {
	n := h.node
	asked := time.Now()
	end, err := n.store.AppendAs(ctx, h.claim, last, events...)
	if err != nil {
		if h.claim.Epoch == 0 && errors.Is(err, lathe.ErrConflict) {
			h.saw(0, true) // it is another run: there is nothing to give back
		}
		return err
	}
	if h.claim.Epoch == 0 {
		h.claim.Epoch = 1
		n.keep(h, asked)
		n.arrived(h.claim.RunID)
	}
	_, over := events[len(events)-1].Data.(*lathe.RunFinished)
	h.saw(end, over)
	return nil
}

func (h *hold) saw(last int64, over bool) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen, h.over = last, over
}

// look notes how many facts were looked at.
func (h *hold) look(facts int) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.looked = facts
}

// end gives the claim back. failed leaves it to end by itself: whoever goes on with the run then does
// not do so at once.
func (h *hold) end(failed bool) {
	if h == nil {
		return
	}
	n := h.node
	id := h.claim.RunID
	begun := h.claim.Epoch > 0
	n.mu.Lock()
	if begun && failed {
		n.coming[id]++ // so that no beat gives it back before
		time.AfterFunc(n.lease, func() { n.arrived(id) })
	}
	if n.held[id] == h {
		delete(n.held, id)
	}
	var last *beat
	if len(n.held) == 0 && n.beat != nil {
		last, n.beat = n.beat, nil
	}
	n.mu.Unlock()
	if last != nil {
		last.quit()
		<-last.over
	}
	if !begun {
		defer n.arrived(id)
	}
	h.mu.Lock()
	if h.watch != nil {
		h.watch.Stop()
	}
	c, seen, over := h.claim, h.seen, h.over
	c.Facts = h.looked
	h.mu.Unlock()
	if over || failed && begun {
		return
	}
	c.Epoch = max(c.Epoch, 1) // the store may have begun the run without being heard
	n.release(c, seen)
}

func (n *node) release(c lathe.Claim, seen int64) {
	ctx, cancel := context.WithTimeout(context.Background(), n.timeout)
	defer cancel()
	if err := n.store.Release(ctx, c, seen); err != nil { // the lease ends by itself
		n.log.Warn("a run could not be given back", "run_id", c.RunID, "code", lathe.CodeOf(err))
	}
}

// renew prolongs all claims, again and again, until ctx is done.
func (n *node) renew(ctx context.Context, over chan<- struct{}) {
	defer close(over)
	again := time.NewTimer(n.lease / 3)
	defer again.Stop()
	for {
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
		if err := n.renewOnce(ctx); err == nil {
			again.Reset(n.lease / 3)
		} else if ctx.Err() == nil {
			n.log.Warn("claims could not be renewed", "code", lathe.CodeOf(err))
			again.Reset(n.lease / 10)
		}
	}
}

// renewOnce prolongs all claims, stops the runs whose claims are gone, and gives back what is claimed
// for this node and not carried by it.
func (n *node) renewOnce(ctx context.Context) error {
	asked := time.Now()
	n.mu.Lock()
	before := maps.Clone(n.held)
	claiming := n.claiming > 0
	n.mu.Unlock()
	claims, err := n.renewAll(ctx)
	if err != nil {
		return err
	}
	var strays []lathe.Claim
	var news []string
	n.mu.Lock()
	for _, c := range claims {
		h := n.held[c.RunID]
		switch {
		case h != nil && h == before[c.RunID] && h.claim.Epoch == c.Epoch:
			delete(before, c.RunID)
			h.renewed(n.left(asked))
			if c.Facts > h.told {
				h.told = c.Facts
				news = append(news, c.RunID)
			}
		case h == nil && n.coming[c.RunID] == 0 && !claiming && n.claiming == 0:
			strays = append(strays, c)
		}
	}
	maps.DeleteFunc(before, func(id string, h *hold) bool { return n.held[id] != h }) // they are over
	facts := n.facts
	n.mu.Unlock()
	for id, h := range before {
		n.log.Warn("the claim on a run is lost", "run_id", id)
		h.lose()
	}
	for _, c := range strays {
		n.release(c, 0)
	}
	for _, id := range news {
		if facts != nil {
			facts(id)
		}
	}
	return nil
}

// renewAll asks the store. One that panics has renewed nothing.
func (n *node) renewAll(ctx context.Context) (claims []lathe.Claim, err error) {
	defer func() {
		if recover() != nil { // its value may hold content
			err = errors.New("the store panicked")
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, n.lease/3)
	defer cancel()
	return n.store.Renew(ctx, n.name, n.lease)
}

func (h *hold) renewed(left time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.lost {
		h.watch.Reset(left)
	}
}
