package store

import (
	"context"
	"time"

	"github.com/lathe-run/lathe/event"
)

// A Shared is a store that several processes, called nodes, use concurrently. At most one node owns a run: the one with its newest claim.
// All times are those of the store's clock; no method takes a time from the caller.
//
// A claim is a lease and a fence. The lease only avoids duplicate work: a node whose lease has ended may not have noticed that and may
// still execute the run. The fence guarantees correctness: each claim of a run has a higher epoch than all earlier claims, and AppendAs
// refuses every epoch but the newest. Example:
//
//	node a  Claim            → run_1, epoch 1, 30 s
//	node a  AppendAs epoch 1 → stored
//	        node a is suspended for 40 s; its lease ends
//	node b  Claim            → run_1, epoch 2
//	node a  AppendAs epoch 1 → ErrConflict: node a stops and discards the run
//	node b  AppendAs epoch 2 → stored
//
// A released claim records how many events and signals its owner had read. The next Claim returns a parked run that has more, so that input
// which arrives between the last read and Release is not lost.
type Shared interface {
	RunIndex
	SignalStore
	// AppendAs appends events as [Store].Append does, under the claim c. It returns [lathe.ErrConflict] if c is not the newest claim of its
	// run or was released. A claim whose lease has ended is valid until another node claims the run. If last and c.Epoch are 0, AppendAs
	// creates the run together with its first claim, which has epoch 1 and the lease c.Lease.
	AppendAs(ctx context.Context, c Claim, last int64, events ...event.Event) (int64, error)
	// Claim claims at most limit runs for a node. It considers runs that are Resumable, have no Executor, have not ended and have no claim
	// with a valid lease. Of these it claims the running ones, and the parked ones whose [RunSummary].WakeAt has passed or that have more
	// events or signals than the last Release recorded.
	Claim(ctx context.Context, node string, lease time.Duration, limit int) ([]Claim, error)
	// ClaimRun claims one run, even if it is parked, not resumable or has an executor. The error wraps [lathe.ErrConflict] if another node
	// has a valid lease or the run has ended, and has the code not_found if the run does not exist.
	ClaimRun(ctx context.Context, node, runID string, lease time.Duration) (Claim, error)
	// Renew extends the leases of all claims of the node on runs that have not ended, and returns these claims. It does not renew a claim
	// whose lease has ended.
	Renew(ctx context.Context, node string, lease time.Duration) ([]Claim, error)
	// Release ends a claim and records that its owner has read the events of the run up to the ID seen, and its first c.Signals signals. It
	// does nothing if the claim is not the newest one of its run.
	Release(ctx context.Context, c Claim, seen int64) error
	// Owner returns the node with a valid claim on the run, or "" if no lease is valid or the run has ended.
	Owner(ctx context.Context, runID string) (node string, err error)
	// Advertise stores, for the duration ttl, the base URL at which other nodes reach this one. Address returns the URL that a node has
	// stored, or "" if it has stored none or its ttl has passed. Nodes use these URLs for data that may be lost, such as deltas for a
	// subscriber at another node.
	Advertise(ctx context.Context, node, address string, ttl time.Duration) error
	Address(ctx context.Context, node string) (string, error)
	// Watch calls fn with the id of each run that may have new events or signals, until ctx is done or the connection is
	// lost. A notification may be delivered twice, late or not at all: callers also poll.
	Watch(ctx context.Context, fn func(runID string)) error
}

// A LossWatcher is a [Shared] that detects that the database server has lost events whose storing it had confirmed: after a failover to a
// standby that was behind, or after a restore from an older backup.
type LossWatcher interface {
	Shared
	// WatchLosses calls fn each time this process finds that it is connected to a restarted or different server, before the process
	// executes any other statement there. lost lists the runs to which this process wrote recently and whose logs lack confirmed events; it
	// is usually empty. It may include a run that another process has deleted. If this was found before WatchLosses is called, fn is called
	// for it first. WatchLosses returns when ctx is done. fn must not call the store. Only one call of WatchLosses may be active.
	WatchLosses(ctx context.Context, fn func(lost []string))
}

// A Claim is the right of one node to append to a run: see [Shared].
type Claim struct {
	RunID string
	Node  string
	// Epoch is 1 for the first claim of a run and higher for each later one.
	Epoch int64
	// Lease is how long the claim is valid, beginning when it was made or renewed.
	Lease time.Duration
	// Signals is the number of signals that the run had when the claim was made or renewed. Before it calls Release, the owner sets Signals
	// to the number of signals that it has read.
	Signals int
}
