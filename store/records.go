package store

import (
	"context"
	"time"

	"github.com/lathe-run/lathe/remote"
)

// Records are what a store keeps beside the logs of its runs. Each field implements its interface over [Rows].
// [Memory] and store/sqlite embed them; store/postgres, whose changes are one statement each, has the same rules in SQL.
type Records struct {
	remote.Queue
	Ledger
	RequestStore
	SecretKeeper
	ValueKeeper
	SignalStore
}

// A transaction is the argument of [NewRecords].
type transaction func(ctx context.Context, op string, write bool, fn func(rows Rows, now time.Time) error) error

// NewRecords returns the records of a store. begin executes fn with its rows and the time of its clock, in one transaction, which changes
// nothing if fn returns an error or write is false; without write, each method of the rows may see another moment. If ctx is done, begin may return while fn is executed: what fn sets counts only if begin
// returns nil. fn's errors may be [lathe.ErrConflict] and [lathe.ErrNotFound]; begin returns a *[lathe.Error].
func NewRecords(begin func(ctx context.Context, op string, write bool, fn func(rows Rows, now time.Time) error) error) *Records {
	named := namedRecords{begin}
	return &Records{&callQueue{begin: begin}, ledgerRecords{begin}, requestRecords{begin}, named, named, signalRecords{begin}}
}

// Rows are the rows of [Records] in one transaction. A method that returns one row returns [lathe.ErrNotFound] if it is not stored, unless
// it says otherwise.
type Rows interface {
	// Call returns the row of a key. The caller may change it, and stores it with PutCall.
	Call(key string) (*QueuedCall, error)
	// PutCall stores a row. A new one is the last in the order of calls.
	PutCall(c *QueuedCall) error
	// RenewCall sets the end of the lease of a claimed or started call that the worker holds in that attempt, and returns whether it is
	// cancelled. It reads and writes nothing else of the call.
	RenewCall(ref remote.Ref, until time.Time) (cancelled bool, err error)
	// QueuedCalls returns at most limit calls of these definitions that are queued and whose time is not up, in order.
	QueuedCalls(definitions []string, limit int) ([]*QueuedCall, error)
	// DueCalls returns the calls whose lease, or time to start, has ended while they wait for it. It may leave some for the next time.
	DueCalls() ([]*QueuedCall, error)
	// ForgetCalls removes the calls that ended before that time and whose run has ended or does not exist. A transaction that does not
	// write counts them.
	ForgetCalls(before time.Time) (int, error)

	// Worker returns a worker that has not expired.
	Worker(id string) (w *remote.Worker, until time.Time, err error)
	// PutWorker stores a worker until that time; a time that is not after now removes it. The workers with the same Since keep their order.
	PutWorker(w *remote.Worker, until time.Time) error
	// Workers returns the workers that have not expired, in the order of Since.
	Workers() ([]remote.Worker, error)
	// ForgetWorkers removes the workers that have expired. A transaction that does not write counts them.
	ForgetWorkers() (int, error)

	// Reservation returns what PutReservation stored under an id; the state is "" if there is nothing.
	Reservation(id string) (r *Reservation, state string, err error)
	// PutReservation stores a reservation without its limits as open, as charged because it expired, or as recorded, which is the id of a
	// Record with its time in Expires. The state "" removes it.
	PutReservation(r *Reservation, state string) error
	// ExpiredReservations returns open reservations that expire at now or earlier. It may leave some for the next time.
	ExpiredReservations(now time.Time) ([]*Reservation, error)
	// Balances returns the balance of each account, in the order of the accounts. One that nothing was booked on is 0.
	Balances(accounts []Account) ([]Balance, error)
	// Book adds by to the balances of the accounts of k and, unless c is nil, c to its usage, as [Counts.Add] does.
	Book(k *UsageKey, by Balance, c *Counts) error
	// Usage is that of [Ledger].
	Usage(f *UsageFilter) ([]UsageRow, error)
	// ForgetLedger removes the reservations that are not open and expired before that time, and the balances and usage of the periods
	// before first.
	ForgetLedger(expired time.Time, first string) error

	// Request returns the run of a request, when it was recorded, and when its response was delivered: zero if it was not.
	Request(digest RequestDigest) (runID string, at, delivered time.Time, err error)
	// PutRequest stores the record of a request.
	PutRequest(digest RequestDigest, runID string, at, delivered time.Time) error
	// ForgetRequests removes the records that are older than that time.
	ForgetRequests(before time.Time) error

	// Value returns what PutValue stored under a name, nil if there is nothing.
	Value(name string) ([]byte, error)
	// PutValue stores a value; an empty one removes the name.
	PutValue(name string, value []byte) error
	// Values returns the first values, by name, whose names begin with prefix.
	Values(prefix string, limit int) (map[string][]byte, error)

	// PutSignal stores a signal behind the others of its run, or returns the error that [SignalStore] names. It may retain f.
	PutSignal(f *Signal) error
	// Signals is that of [SignalStore].
	Signals(runID string) ([]Signal, error)
}
