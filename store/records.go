package store

import (
	"context"
	"time"

	"github.com/lathe-run/lathe/remote"
)

// Records is all that a store stores besides the logs of runs. Each field implements its interface over [Rows]. [Memory] and store/sqlite
// embed it; store/postgres implements the same rules in SQL.
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

// NewRecords returns the records of a store. begin executes fn with the rows and the time of the store's clock, in one transaction. The
// transaction changes nothing if fn returns an error or write is false. begin may execute fn again if the transaction was rolled back. If
// write is false, each method of the rows may read a different state. If ctx is done, begin may return while fn executes: values that fn sets
// count only if begin returns nil. Errors of fn may be [lathe.ErrConflict] and [lathe.ErrNotFound]; begin returns a *[lathe.Error].
func NewRecords(begin func(ctx context.Context, op string, write bool, fn func(rows Rows, now time.Time) error) error) *Records {
	named := namedRecords{begin}
	return &Records{&callQueue{begin: begin}, ledgerRecords{begin}, requestRecords{begin}, named, named, signalRecords{begin}}
}

// Rows are the rows of [Records] within one transaction, which a store implements. A method that returns one row returns
// [lathe.ErrNotFound] if the row does not exist, unless its comment says otherwise.
type Rows interface {
	// Call returns the row of a key. The caller may change it and stores it by PutCall.
	Call(key string) (*QueuedCall, error)
	// PutCall stores a row. A new row is the last one in queue order.
	PutCall(c *QueuedCall) error
	// RenewCall sets the end of the lease of a claimed or started call if the worker has this attempt, and returns whether the call is
	// cancelled. It reads and writes nothing else of the call.
	RenewCall(ref remote.Ref, until time.Time) (cancelled bool, err error)
	// QueuedCalls returns at most limit queued calls of these definitions whose deadline has not passed, in queue order.
	QueuedCalls(definitions []string, limit int) ([]*QueuedCall, error)
	// DueCalls returns the calls whose lease or deadline to start has passed. It may omit some until the next time.
	DueCalls() ([]*QueuedCall, error)
	// ForgetCalls removes the calls that ended before this time and whose run has ended or does not exist, and returns their number. In a
	// transaction that does not write, it only counts them.
	ForgetCalls(before time.Time) (int, error)

	// Worker returns a worker that has not expired.
	Worker(id string) (w *remote.Worker, until time.Time, err error)
	// PutWorker stores a worker until this time, or removes it if the time is not after now. Workers with the same Since keep their order.
	PutWorker(w *remote.Worker, until time.Time) error
	// Workers returns the workers that have not expired, in the order of Since.
	Workers() ([]remote.Worker, error)
	// ForgetWorkers removes the expired workers and returns their number. In a transaction that does not write, it only counts them.
	ForgetWorkers() (int, error)

	// Reservation returns the reservation and the state that PutReservation stored under an id. The state is "" if none exists.
	Reservation(id string) (r *Reservation, state string, err error)
	// PutReservation stores a reservation, without its limits, with a state: open; charged after it expired; or recorded, for the id of a
	// Record with its time in Expires. The state "" removes it.
	PutReservation(r *Reservation, state string) error
	// ExpiredReservations returns open reservations that expire at now or earlier. It may omit some until the next time.
	ExpiredReservations(now time.Time) ([]*Reservation, error)
	// Balances returns the balance of each account, in the order of accounts. An account without bookings has balance 0.
	Balances(accounts []Account) ([]Balance, error)
	// Book adds by to the balances of the accounts of k and, unless c is nil, c to the usage of k, as [Counts.Add] does.
	Book(k *UsageKey, by Balance, c *Counts) error
	// Usage returns what Usage of [Ledger] returns.
	Usage(f *UsageFilter) ([]UsageRow, error)
	// ForgetLedger removes the reservations that are not open and expired before the time expired, and the balances and usage of the
	// periods before first.
	ForgetLedger(expired time.Time, first string) error

	// Request returns the run of a request, the time of its record, and the time of its delivery, which is zero if it was not delivered.
	Request(digest RequestDigest) (runID string, at, delivered time.Time, err error)
	// PutRequest stores the record of a request.
	PutRequest(digest RequestDigest, runID string, at, delivered time.Time) error
	// ForgetRequests removes the records that are older than this time.
	ForgetRequests(before time.Time) error

	// Value returns the value that PutValue stored under a name, or nil if none exists.
	Value(name string) ([]byte, error)
	// PutValue stores a value; an empty one removes the name.
	PutValue(name string, value []byte) error
	// Values returns the values whose names begin with prefix: the first limit by name.
	Values(prefix string, limit int) (map[string][]byte, error)

	// PutSignal stores a signal after the others of its run, or returns an error that [SignalStore] documents. It may retain f.
	PutSignal(f *Signal) error
	// Signals returns what Signals of [SignalStore] returns.
	Signals(runID string) ([]Signal, error)
}
