package store

import (
	"context"
	"time"

	"github.com/lathe-run/lathe/remote"
)

// Records implements the interfaces of a store that do not store logs of runs. Each field implements one of them with the methods of
// [Rows]. [Memory] and store/sqlite embed Records; store/postgres implements the same rules in SQL.
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

// The values of the argument write of a transaction.
const (
	readOnly  = false
	readWrite = true
)

// NewRecords returns the records of a store. The store supplies begin, which executes one operation. op is the name of the operation, such
// as "claim calls", for the Op of errors. fn reads and changes the rows.
//
// begin must call fn with the rows and the current time of the store's clock. If write is true, begin must execute fn in one transaction:
// it commits all changes of fn if fn returns nil, and none if fn returns an error. If begin has rolled the transaction back, it may call fn
// again. If write is false, begin must change nothing and needs no transaction: each method of the rows may read a newer state than the one
// before.
//
// begin must return nil only if fn has returned nil and its changes are committed. Otherwise it must return a *[lathe.Error]. It must
// return a *[lathe.Error] of fn unchanged, and wrap [lathe.ErrConflict] and [lathe.ErrNotFound], which fn may also return, with the codes
// conflict and not_found. If ctx is done, begin may return before fn does: the caller of begin uses what fn has computed only if begin
// returns nil.
func NewRecords(begin func(ctx context.Context, op string, write bool, fn func(rows Rows, now time.Time) error) error) *Records {
	named := namedRecords{begin}
	return &Records{&callQueue{begin: begin}, ledgerRecords{begin}, requestRecords{begin}, named, named, signalRecords{begin}}
}

// Rows reads and changes the data of [Records] within one call of begin: see [NewRecords]. A store implements it. A method that returns one
// item must return [lathe.ErrNotFound] if the item is not stored, unless its comment says otherwise.
type Rows interface {
	// Call returns the call with this key. The caller may change the returned call, and passes it to PutCall to store it.
	Call(key string) (*QueuedCall, error)
	// PutCall stores a call in place of an earlier one with the same key. A new call is the last one in queue order.
	PutCall(c *QueuedCall) error
	// RenewCall sets the lease of a claimed or started call to end at until, if ref identifies the current attempt and its worker. It
	// returns whether the call is cancelled. It must read and write nothing else of the call.
	RenewCall(ref remote.Ref, until time.Time) (cancelled bool, err error)
	// QueuedCalls returns at most limit queued calls of these definitions whose deadline has not passed, in queue order.
	QueuedCalls(definitions []string, limit int) ([]*QueuedCall, error)
	// DueCalls returns the calls whose lease or deadline to start has passed. It may return only some of them: later calls must return the
	// rest.
	DueCalls() ([]*QueuedCall, error)
	// ForgetCalls removes the calls that ended before this time and whose run has ended or does not exist, and returns their number. If the
	// argument write of begin is false, it only counts them.
	ForgetCalls(before time.Time) (int, error)

	// Worker returns the worker with this id, if it has not expired, and the time until which it is stored.
	Worker(id string) (w *remote.Worker, until time.Time, err error)
	// PutWorker stores a worker until this time, or removes it if the time is not in the future. Workers with the same Since keep their
	// order.
	PutWorker(w *remote.Worker, until time.Time) error
	// Workers returns the workers that have not expired, in the order of Since.
	Workers() ([]remote.Worker, error)
	// ForgetWorkers removes the expired workers and returns their number. If the argument write of begin is false, it only counts them.
	ForgetWorkers() (int, error)

	// Reservation returns the reservation and the state that PutReservation has stored under this id. If none is stored, the state is ""
	// and the error is nil.
	Reservation(id string) (r *Reservation, state string, err error)
	// PutReservation stores a reservation, without its limits, under r.ID with a state: "open"; "charged" after it has expired; or
	// "recorded" for the id of a [Ledger].Record, with the time of the Record in r.Expires. The state "" removes the reservation.
	PutReservation(r *Reservation, state string) error
	// ExpiredReservations returns open reservations that expire at now or earlier. It may return only some of them: later calls must return
	// the rest.
	ExpiredReservations(now time.Time) ([]*Reservation, error)
	// Balances returns the balance of each account, in the order of accounts. An account without usage has balance 0.
	Balances(accounts []Account) ([]Balance, error)
	// Book adds the amounts of by to the balance of each account of k: see [UsageKey.Accounts]. If c is not nil, Book also adds c to the
	// usage of k. Spent amounts and usage must stop at [MaxBooked] instead of overflowing.
	Book(k *UsageKey, by Balance, c *Counts) error
	// Usage implements the method Usage of [Ledger].
	Usage(f *UsageFilter) ([]UsageRow, error)
	// ForgetLedger removes the reservations that are not open and whose Expires is before expired. It also removes the balances and the
	// usage of periods before first, which is a month such as "2025-10".
	ForgetLedger(expired time.Time, first string) error

	// Request returns what PutRequest has stored for a request: the id of its run, the time at of the record, and the time delivered of its
	// delivery. delivered is zero if the response was not delivered.
	Request(digest RequestDigest) (runID string, at, delivered time.Time, err error)
	// PutRequest stores the record of a request, in place of an earlier one: see Request.
	PutRequest(digest RequestDigest, runID string, at, delivered time.Time) error
	// ForgetRequests removes the records that PutRequest stored with a time before this time.
	ForgetRequests(before time.Time) error

	// Value returns the value that PutValue has stored under a name. If none is stored, it returns nil and no error.
	Value(name string) ([]byte, error)
	// PutValue stores a value under a name, in place of an earlier one. An empty value removes the name.
	PutValue(name string, value []byte) error
	// Values returns the values whose names begin with prefix, by name. If there are more than limit, it returns the first limit in the
	// order of names.
	Values(prefix string, limit int) (map[string][]byte, error)

	// PutSignal stores a signal after the others of its run. Its errors are those of PutSignal of [SignalStore]. It may retain f.
	PutSignal(f *Signal) error
	// Signals implements the method Signals of [SignalStore].
	Signals(runID string) ([]Signal, error)
}
