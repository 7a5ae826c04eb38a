package lathe

import (
	"context"
	"encoding/json"
	"time"
)

// A SharedStore is a [RunIndex] that several processes use at once. It says which of them, called
// nodes here, carries a run. Only its own clock counts: no method takes a time of the caller.
//
// A claim is a promise about work, not about safety: whoever lost one may not know yet. Safety is in
// AppendAs, which takes nothing from a claim that is not the last one of its run.
type SharedStore interface {
	RunIndex
	FactStore
	// AppendAs is Append for the holder of a claim. It returns [ErrConflict] where the claim is not the
	// last one of its run, or was given back. With last 0 and Epoch 0 it begins the run and makes the claim,
	// whose epoch is 1 and which holds for c.Lease. A claim whose lease has ended and that nobody took over
	// still appends.
	AppendAs(ctx context.Context, c Claim, last int64, events ...Event) (int64, error)
	// Claim takes for a node at most limit runs that nobody carries and that can be gone on with: of those
	// that are Resumable and have not ended, the ones in motion, and the parked ones whose [RunSummary].WakeAt
	// has passed or that have more events or facts than the last Release of the run has said. A run without
	// any claim is one that nobody carries. No other node gets them while the lease holds.
	Claim(ctx context.Context, node string, lease time.Duration, limit int) ([]Claim, error)
	// Take claims one run, parked or not, resumable or not. It returns [ErrConflict] while another
	// node's claim holds or where the run has ended, and an error of code not_found where there is no such run.
	Take(ctx context.Context, node, runID string, lease time.Duration) (Claim, error)
	// Renew prolongs all claims of a node that still hold, of runs that have not ended, and returns them.
	Renew(ctx context.Context, node string, lease time.Duration) ([]Claim, error)
	// Release gives a claim back, and says that its holder has looked at the run up to event seen and at
	// c.Facts facts. A parked run that has no more than that waits then; any other is given out by the next Claim.
	// A claim that is not the last one of its run is no error, and changes nothing.
	Release(ctx context.Context, c Claim, seen int64) error
	// Owner returns the node whose claim on the run holds, "" where there is none or the run has ended.
	Owner(ctx context.Context, runID string) (node string, err error)
	// Advertise says under which address other nodes reach this one, until ttl has passed; Address
	// finds it, "" where it is not known. They serve what may be lost: deltas on their way to a watcher.
	Advertise(ctx context.Context, node, address string, ttl time.Duration) error
	Address(ctx context.Context, node string) (string, error)
	// Watch calls fn with the id of each run that may have new events or facts, until ctx is done or the
	// connection is lost. A hint may come twice, late or never.
	Watch(ctx context.Context, fn func(runID string)) error
}

// A LossWatcher is a [SharedStore] that notices when its server lacks what it has confirmed: a standby took
// over that was behind, or an older copy was put in its place.
type LossWatcher interface {
	SharedStore
	// WatchLosses calls fn, until ctx is done, each time this process finds that the server was started anew or
	// is another one, before it does anything there. lost are the runs whose logs lack events that were
	// confirmed to this process, of those that it has written to lately; nearly always there is none. A run that
	// another process has deleted may be among them. What was found while nobody watched is told first. fn must not wait for the store. There is one watcher.
	WatchLosses(ctx context.Context, fn func(lost []string))
}

// A Claim says that a node carries a run.
type Claim struct {
	RunID string
	Node  string
	// Epoch grows with each claim of the run, from 1.
	Epoch int64
	// Lease is for how long the claim holds without being renewed.
	Lease time.Duration
	// Facts is how many facts the run had when the store gave the claim or renewed it. Who releases a claim
	// says there how many it has looked at.
	Facts int
}

// A FactStore keeps what comes to a run from outside while somebody carries it, or nobody: an answer to
// an approval, the result of a client's tool, a wish to cancel. Facts go with the run when it is deleted.
type FactStore interface {
	// PutFact keeps a fact. The first of its run, kind and key wins: a second one is [ErrConflict], and
	// changes nothing. A run that is not there is an error of code not_found, one that has ended is
	// [ErrConflict].
	PutFact(ctx context.Context, f Fact) error
	// Facts returns those of a run, in the order in which they came.
	Facts(ctx context.Context, runID string) ([]Fact, error)
}

// The kinds of facts.
const (
	FactApproval = "approval" // somebody has answered a request for approval; the key is the id of the call
	FactResult   = "result"   // a client has the result of its tool; the key is the id of the call
	FactCancel   = "cancel"   // somebody wants the run to end
)

// A Fact is what came to a run from outside.
type Fact struct {
	RunID string
	Kind  string // [FactApproval], [FactResult] or [FactCancel]
	Key   string // the id of the call, "" for the whole run
	// Body is content: it goes to the store and to nobody else.
	Body json.RawMessage
	Time time.Time // when the store took it; set by the store
}
