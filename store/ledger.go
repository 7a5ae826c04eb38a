package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
)

// A Ledger counts what model calls use, by key, group, model and day, and admits calls under budgets. All processes of a
// store share it. Amounts are whole nano-dollars and tokens.
//
// A call under a budget is reserved before it is made, with the most that it can use, and settled afterwards with what it
// used. At every moment what an account has spent and reserved is at most its limit, however many processes reserve at the
// same time, as long as no call uses more than it reserved. Example, with a limit of 100:
//
//	Reserve a 60  → reserved 60
//	Reserve b 60  → budget_exhausted: 60 of 100 are reserved
//	Settle  a 20  → spent 20
//	Reserve b 60  → spent 20, reserved 60
//	              the process that made b is killed; the reservation expires
//	Sweep         → spent 80
//
// The caller supplies the times. They decide which day a call counts for and when a reservation expires, and never how much
// an account may use: processes whose clocks differ do not exceed a limit. Errors have the codes of every store.
type Ledger interface {
	// Reserve reserves the amount in the accounts of r, in all of them or in none. If that would exceed a limit, it returns an
	// error of code budget_exhausted that wraps a *[BudgetError]. A second Reserve with the ID of an open reservation does
	// nothing.
	Reserve(ctx context.Context, r *Reservation) error
	// Settle replaces the reservation by what the call used, also if Sweep has charged it meanwhile. It does nothing if there
	// is no such reservation: it was settled, or it expired long ago.
	Settle(ctx context.Context, id string, used Counts) error
	// Record adds what calls without a reservation used. A second Record with the same id does nothing.
	Record(ctx context.Context, id string, at time.Time, entries []UsageRow) error
	// Sweep charges the reservations that have expired at now in full, and returns their number. It removes rows older than
	// thirteen months.
	Sweep(ctx context.Context, now time.Time) (charged int, err error)
	// Balances returns the balance of each account, in the order of the accounts. One that nothing was booked on is 0.
	Balances(ctx context.Context, accounts []Account) ([]Balance, error)
	// Usage returns the rows that match the filter, by day, key, group and model. What is reserved is not in them.
	Usage(ctx context.Context, f *UsageFilter) ([]UsageRow, error)
}

// ledgerKept is how long the rows of a [Ledger] are kept: thirteen months.
const ledgerKept = 400 * 24 * time.Hour

// ChargedKept is how long a store remembers a reservation that was charged, and the id of a Record: a Settle within that time
// replaces what was charged, and a repeated Record is recognised.
const ChargedKept = 24 * time.Hour

// LedgerBegins returns the month before which Sweep removes rows: "2025-10". It is compared with days and with months.
func LedgerBegins(now time.Time) string { return now.UTC().Add(-ledgerKept).Format("2006-01") }

// The kinds of an [Account].
const (
	AccountKey   = "key"
	AccountGroup = "group"
)

// An Account is what a budget bounds: a key or a group, in a day or a month of UTC.
type Account struct {
	Kind   string // AccountKey or AccountGroup
	Name   string
	Period string // "2026-11-23" or "2026-11"
}

// Resets returns the moment at which the period of the account ends, the zero time if Period is none.
func (a Account) Resets() time.Time {
	if day, err := time.Parse(time.DateOnly, a.Period); err == nil {
		return day.AddDate(0, 0, 1)
	}
	if month, err := time.Parse("2006-01", a.Period); err == nil {
		return month.AddDate(0, 1, 0)
	}
	return time.Time{}
}

// A Limit bounds an account. A negative field is no bound, and the zero value admits only what costs and uses nothing.
type Limit struct{ Nanos, Tokens int64 }

// NoLimit admits every call.
var NoLimit = Limit{-1, -1}

// A Budget bounds a key or a group in each day and each month. The zero value admits only what costs and uses nothing.
type Budget struct{ Day, Month Limit }

// NoBudget admits every call.
var NoBudget = Budget{NoLimit, NoLimit}

// BoundsMoney reports whether the budget has a limit in US dollars.
func (b *Budget) BoundsMoney() bool { return b.Day.Nanos >= 0 || b.Month.Nanos >= 0 }

// A Bound is an account with its limit.
type Bound struct {
	Account
	Limit Limit
}

// A Balance is what was booked on an account. Spent includes reservations that were charged.
type Balance struct {
	Account
	SpentNanos, SpentTokens       int64
	ReservedNanos, ReservedTokens int64
}

// A UsageKey says for what a call counts.
type UsageKey struct {
	Day   string `json:"day"`             // in UTC: "2026-11-23"
	Key   string `json:"key,omitempty"`   // name of the API key; "" where there are none
	Group string `json:"group,omitempty"` // of the key; "": none
	Model string `json:"model"`           // entry of the configuration
}

// Counts are sums over model calls.
type Counts struct {
	Calls     int64 `json:"calls"`
	Estimated int64 `json:"estimated_calls,omitempty"` // of Calls: counted with what was reserved, since what they used is not known
	Unpriced  int64 `json:"unpriced_calls,omitempty"`  // of Calls: their price is not known, and they add nothing to Nanos

	InputTokens      int64 `json:"input_tokens"`
	CachedTokens     int64 `json:"cached_tokens,omitempty"`      // part of InputTokens
	CacheWriteTokens int64 `json:"cache_write_tokens,omitempty"` // part of InputTokens
	OutputTokens     int64 `json:"output_tokens"`
	Tokens           int64 `json:"tokens"` // what budgets count: input and output, or more if the server says so
	Nanos            int64 `json:"-"`      // nano-dollars
}

// Add adds d to c. A sum is at most [MaxBooked] and the last number that was added to it, so that it cannot overflow.
func (c *Counts) Add(d Counts) {
	for i, p := range c.Fields() {
		*p = addBooked(*p, *d.Fields()[i])
	}
}

// MaxBooked is the largest sum of nano-dollars or tokens that stores add to: eight billion US dollars. It is above all limits, and so far
// below the largest number that adding what one Record or one Sweep books does not overflow.
const MaxBooked = 8_000_000_000_000_000_000

// maxAdded bounds what is added to a sum at once.
const maxAdded = 1_000_000_000_000_000_000

func addBooked(sum, d int64) int64 { return min(sum, MaxBooked) + min(max(d, -maxAdded), maxAdded) }

// Fields returns pointers to the fields in their order, for stores.
func (c *Counts) Fields() []*int64 {
	return []*int64{&c.Calls, &c.Estimated, &c.Unpriced, &c.InputTokens, &c.CachedTokens, &c.CacheWriteTokens, &c.OutputTokens, &c.Tokens, &c.Nanos}
}

// A UsageRow is the sum of the calls that count for the same.
type UsageRow struct {
	UsageKey
	Counts
}

// A UsageFilter selects rows. Empty fields select all.
type UsageFilter struct {
	Key          string
	Since, Until string // days: Since is included, Until is not
	Limit        int    // the most rows, the first ones; 0: all
}

// Selects reports whether a row has the key of the filter and a day within its bounds, as far as they are set.
func (f *UsageFilter) Selects(k *UsageKey) bool {
	return (f.Key == "" || f.Key == k.Key) && (f.Since == "" || k.Day >= f.Since) && (f.Until == "" || k.Day < f.Until)
}

// CompareUsage orders rows by day, key, group and model.
func CompareUsage(a, b UsageRow) int {
	return cmp.Or(strings.Compare(a.Day, b.Day), strings.Compare(a.Key, b.Key), strings.Compare(a.Group, b.Group), strings.Compare(a.Model, b.Model))
}

// A Reservation admits one model call.
type Reservation struct {
	ID string // unique
	UsageKey
	// InputTokens and OutputTokens are the most that the call can use, and Nanos the most that it can cost.
	InputTokens, OutputTokens, Nanos int64
	Expires                          time.Time
	// Limits of the accounts of the call. The zero value of each refuses.
	KeyDay, KeyMonth, GroupDay, GroupMonth Limit
}

// Tokens returns what the reservation takes of a budget of tokens.
func (r *Reservation) Tokens() int64 { return r.InputTokens + r.OutputTokens }

// Charged returns what a reservation counts for when it expires.
func (r *Reservation) Charged() Counts {
	return Counts{Calls: 1, Estimated: 1, InputTokens: r.InputTokens, OutputTokens: r.OutputTokens, Tokens: r.Tokens(), Nanos: r.Nanos}
}

// Bounds returns the accounts of the reservation with their limits, in the order of [UsageKey.Accounts].
func (r *Reservation) Bounds() []Bound {
	var out []Bound
	limits := map[string][2]Limit{AccountGroup: {r.GroupMonth, r.GroupDay}, AccountKey: {r.KeyMonth, r.KeyDay}}
	for _, a := range r.Accounts() {
		limit := limits[a.Kind][0]
		if a.Period == r.Day {
			limit = limits[a.Kind][1]
		}
		out = append(out, Bound{a, limit})
	}
	return out
}

// Accounts returns the accounts that a call is booked on: those of its group, and those of its key, each for the month and the
// day. Stores lock them in this order.
func (k *UsageKey) Accounts() []Account {
	month := k.Day[:min(len(k.Day), len("2006-01"))]
	var out []Account
	if k.Group != "" {
		out = append(out, Account{AccountGroup, k.Group, month}, Account{AccountGroup, k.Group, k.Day})
	}
	return append(out, Account{AccountKey, k.Key, month}, Account{AccountKey, k.Key, k.Day})
}

// Bounds of what one call can be booked with: a trillion tokens and a million US dollars. Larger counts are cut.
const (
	maxCallTokens = 1_000_000_000_000
	maxCallNanos  = 1_000_000 * 1_000_000_000
)

// Bounded returns the counts with each token count cut to a trillion and the money to a million US dollars a call, and without
// negative numbers, so that no answer of a model server can overflow a balance.
func (c Counts) Bounded() Counts {
	calls := min(max(c.Calls, 1), 1000)
	nanos := min(max(c.Nanos, 0), maxCallNanos*calls)
	for _, p := range c.Fields() {
		*p = min(max(*p, 0), maxCallTokens*calls)
	}
	c.Nanos = nanos
	return c
}

// CheckReservation returns an error of code invalid_request if a reservation has no ID or no day, or an amount that is negative or above
// what one call can be booked with.
func CheckReservation(op string, r *Reservation) error {
	var err error
	switch {
	case r.ID == "":
		err = errors.New("a reservation has an ID")
	case !isDay(r.Day):
		err = fmt.Errorf("%.20q is not a day", r.Day)
	case r.InputTokens < 0 || r.OutputTokens < 0 || r.Nanos < 0:
		err = errors.New("a reservation is not negative")
	case r.InputTokens > maxCallTokens || r.OutputTokens > maxCallTokens || r.Nanos > maxCallNanos:
		err = errors.New("a reservation is at most a trillion tokens and a million US dollars")
	default:
		return nil
	}
	return &lathe.Error{Code: lathe.CodeInvalidRequest, Op: op, Err: err}
}

// CheckEntries returns an error of code invalid_request if a Record has no id, or an entry without a day.
func CheckEntries(op, id string, entries []UsageRow) error {
	if id == "" || slices.ContainsFunc(entries, func(e UsageRow) bool { return !isDay(e.Day) }) {
		return &lathe.Error{Code: lathe.CodeInvalidRequest, Op: op, Err: errors.New("entries have an id, and each has a day")}
	}
	return nil
}

func isDay(s string) bool {
	_, err := time.Parse(time.DateOnly, s)
	return err == nil
}

// A BudgetError says which budget does not admit a call.
type BudgetError struct {
	Bound   Bound
	Balance Balance
	// WantNanos and WantTokens are what the call would have reserved.
	WantNanos, WantTokens int64
	// Resets is the time until the period ends, by the clock of the caller, which sets it; stores leave it 0.
	Resets time.Duration
}

// Error names the account.
func (e *BudgetError) Error() string {
	return fmt.Sprintf("the budget of %s %s for %s is exhausted", e.Bound.Kind, e.Bound.Name, e.Bound.Period)
}

// OverBudget returns the error for a reservation whose accounts have these balances, nil if all admit it. Of several accounts
// that do not, the error names the one that resets last.
func OverBudget(op string, r *Reservation, balances []Balance) error {
	var found *BudgetError
	for _, b := range r.Bounds() {
		i := slices.IndexFunc(balances, func(x Balance) bool { return x.Account == b.Account })
		if i < 0 {
			balances = append(slices.Clip(balances), Balance{Account: b.Account})
			i = len(balances) - 1
		}
		x := balances[i]
		if b.Limit.Nanos >= 0 && x.SpentNanos+x.ReservedNanos+r.Nanos > b.Limit.Nanos ||
			b.Limit.Tokens >= 0 && x.SpentTokens+x.ReservedTokens+r.Tokens() > b.Limit.Tokens {
			if found == nil || b.Resets().After(found.Bound.Resets()) {
				found = &BudgetError{Bound: b, Balance: x, WantNanos: r.Nanos, WantTokens: r.Tokens()}
			}
		}
	}
	if found == nil {
		return nil
	}
	return &lathe.Error{Code: lathe.CodeBudgetExhausted, Op: op, Err: found}
}
