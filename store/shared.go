package store

import (
	"context"
	"time"

	"github.com/lathe-run/lathe/event"
)

// A Shared is a store that several processes, called nodes, use at the same time. At most one node owns a run: the one
// that holds its newest claim. All times are those of the store's clock; no method takes a time from the caller.
//
// A claim is a lease and a fence. The lease only avoids duplicated work: a node whose lease has ended may not have
// noticed and may still execute the run. Correctness comes from the fence: each claim of a run has a higher epoch than
// the claims before it, and AppendAs refuses every epoch but the newest. Example:
//
//	node a  Claim            → run_1, epoch 1, 30 s
//	node a  AppendAs epoch 1 → stored
//	        node a is suspended for 40 s; its lease ends
//	node b  Claim            → run_1, epoch 2
//	node a  AppendAs epoch 1 → ErrConflict: node a stops and discards the run
//	node b  AppendAs epoch 2 → stored
//
// A claim that was released records how many events and signals its holder had read. A parked run with more than
// these is returned by the next Claim, so that input which arrives between the last read and Release is not lost.
type Shared interface {
	RunIndex
	SignalStore
	// AppendAs is Append for the holder of a claim. It returns [lathe.ErrConflict] if the claim is not the newest one of
	// its run or was released. A claim whose lease has ended still appends until another node claims the run.
	// With last 0 and Epoch 0 it creates the run together with its first claim, which has epoch 1 and lasts c.Lease.
	AppendAs(ctx context.Context, c Claim, last int64, events ...event.Event) (int64, error)
	// Claim claims at most limit runs for a node. It considers runs that are Resumable, have no Executor, have not ended and have
	// no claim whose lease holds. Of these it takes the running ones, and the parked ones that are due: their [RunSummary].WakeAt
	// has passed, or they have more events or signals than the last Release recorded.
	Claim(ctx context.Context, node string, lease time.Duration, limit int) ([]Claim, error)
	// ClaimRun claims one run, also one that is parked, is not resumable or has an executor. It returns [lathe.ErrConflict]
	// while another node's lease holds or if the run has ended, and an error of code not_found for a run that does not exist.
	ClaimRun(ctx context.Context, node, runID string, lease time.Duration) (Claim, error)
	// Renew extends the leases of all claims that the node holds on runs that have not ended, and returns them. A claim
	// whose lease has ended is not renewed.
	Renew(ctx context.Context, node string, lease time.Duration) ([]Claim, error)
	// Release ends a claim and records that its holder has read the run's events up to the ID seen and its first
	// c.Signals signals. It does nothing if the claim is not the newest one of its run.
	Release(ctx context.Context, c Claim, seen int64) error
	// Owner returns the node that holds a claim on the run, "" if no lease holds or the run has ended.
	Owner(ctx context.Context, runID string) (node string, err error)
	// Advertise stores for ttl the address at which other nodes reach this one. Address returns it, or "" if it is not
	// known. The addresses are for data that may be lost: deltas on their way to a subscriber at another node.
	Advertise(ctx context.Context, node, address string, ttl time.Duration) error
	Address(ctx context.Context, node string) (string, error)
	// Watch calls fn with the id of each run that may have new events or signals, until ctx is done or the connection is
	// lost. A notification may be delivered twice, late or not at all: callers also poll.
	Watch(ctx context.Context, fn func(runID string)) error
}

// A LossWatcher is a [Shared] that detects a server that lacks events it had acknowledged: after a failover to a
// standby that was behind, or after a restore from an older backup.
type LossWatcher interface {
	Shared
	// WatchLosses calls fn each time this process finds that it is connected to a restarted or different server, before
	// it executes any other statement there. lost lists the runs that this process wrote to recently and whose logs
	// lack acknowledged events; it is usually empty. A run that another process has deleted may be listed, too. Findings
	// from before WatchLosses was called are delivered first. WatchLosses returns when ctx is done. fn must not
	// call the store. Only one call of WatchLosses may be active.
	WatchLosses(ctx context.Context, fn func(lost []string))
}

// A Claim is the right of one node to append to a run; see [Shared].
type Claim struct {
	RunID string
	Node  string
	// Epoch is 1 for the first claim of a run and higher for each later one.
	Epoch int64
	// Lease is how long the claim lasts unless it is renewed.
	Lease time.Duration
	// Signals is how many signals the run had when the claim was made or renewed. For Release the holder sets it to how
	// many it has read.
	Signals int
}
