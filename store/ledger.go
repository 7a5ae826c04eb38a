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

// A Ledger counts the usage of model calls by key, group, model and day, and admits calls under budgets. All processes with the same store
// share it. Amounts are whole nano-dollars and tokens.
//
// For a call under a budget, the maximum that it can use is reserved before the call, and replaced by its usage afterwards. If no call uses
// more than it has reserved, the sum of the spent and the reserved amount of an account never exceeds its limit, however many processes
// reserve concurrently. Example, with a limit of 100:
//
//	Reserve a 60  → reserved 60
//	Reserve b 60  → budget_exhausted: 60 of 100 are reserved
//	Settle  a 20  → spent 20
//	Reserve b 60  → spent 20, reserved 60
//	              the process that made b stops; the reservation expires
//	Sweep         → spent 80
//
// The caller supplies the times. They determine the day for which a call counts and the time at which a reservation expires, but not the
// limit of an account, so that processes with different clocks do not exceed a limit. Every error is a *[lathe.Error].
type Ledger interface {
	// Reserve reserves the amount of r in all its accounts or in none. If it would exceed a limit, it returns an error of code
	// budget_exhausted that wraps a *[BudgetError]. A second Reserve with the ID of an open reservation does nothing.
	Reserve(ctx context.Context, r *Reservation) error
	// Settle replaces the reservation with this id by the actual usage of the call, even if Sweep has already charged it. It does nothing
	// if the store no longer has the reservation: see [ChargedKept].
	Settle(ctx context.Context, id string, used Counts) error
	// Record adds the usage of calls that were not reserved. at is the time of the call of Record. id makes Record idempotent: a second
	// Record with the same id within [ChargedKept] after at does nothing.
	Record(ctx context.Context, id string, at time.Time, entries []UsageRow) error
	// Sweep charges all reservations that expired at now or earlier with their full amount, and returns their number. It also removes the
	// balances and usage of the months before [LedgerBegins].
	Sweep(ctx context.Context, now time.Time) (charged int, err error)
	// Balances returns the balance of each account, in the order of accounts. An account without usage has a zero balance.
	Balances(ctx context.Context, accounts []Account) ([]Balance, error)
	// Usage returns the rows that match the filter, which must not be nil, sorted by day, key, group and model. They do not include open
	// reservations.
	Usage(ctx context.Context, f *UsageFilter) ([]UsageRow, error)
}

// ledgerKept is the time for which a [Ledger] stores its rows: thirteen months.
const ledgerKept = 400 * 24 * time.Hour

// ChargedKept is how long a store keeps a reservation that [Ledger].Sweep has charged, and the id of a [Ledger].Record. During this time a
// late Settle replaces the charge, and a second Record with the same id does nothing.
const ChargedKept = 24 * time.Hour

// LedgerBegins returns the oldest month whose balances and usage [Ledger].Sweep keeps if it is called at now. Months such as "2025-10" and
// days such as "2025-10-31" can be compared with it as strings.
func LedgerBegins(now time.Time) string { return now.UTC().Add(-ledgerKept).Format("2006-01") }

// The kinds of an [Account].
const (
	AccountKey   = "key"
	AccountGroup = "group"
)

// An Account is what a budget limits: the usage of one API key or group in one day or month of UTC.
type Account struct {
	Kind   string // [AccountKey] or [AccountGroup]: what Name names
	Name   string
	Period string // a day, "2026-11-23", or a month, "2026-11"
}

// Resets returns the end of the account's period, or the zero time if Period is not valid.
func (a Account) Resets() time.Time {
	if day, err := time.Parse(time.DateOnly, a.Period); err == nil {
		return day.AddDate(0, 0, 1)
	}
	if month, err := time.Parse("2006-01", a.Period); err == nil {
		return month.AddDate(0, 1, 0)
	}
	return time.Time{}
}

// A Limit is the maximum of an account in nano-dollars and in tokens; negative: no limit. The zero value admits only calls that cost
// nothing and use no tokens: see [NoLimit].
type Limit struct{ Nanos, Tokens int64 }

// NoLimit admits every call.
var NoLimit = Limit{-1, -1}

// A Budget contains the limits of a key or group per day and per month of UTC. The zero value admits almost nothing: see [NoBudget].
type Budget struct{ Day, Month Limit }

// NoBudget admits every call.
var NoBudget = Budget{NoLimit, NoLimit}

// BoundsMoney reports whether the budget has a limit in US dollars, per day or per month.
func (b *Budget) BoundsMoney() bool { return b.Day.Nanos >= 0 || b.Month.Nanos >= 0 }

// A Bound is an account together with its limit.
type Bound struct {
	Account
	Limit Limit
}

// A Balance contains the spent and the reserved amounts of one account, in nano-dollars and tokens. Charged reservations are part of the
// spent amounts; open reservations are not.
type Balance struct {
	Account
	SpentNanos, SpentTokens       int64
	ReservedNanos, ReservedTokens int64
}

// A UsageKey identifies the row of usage that counts a model call.
type UsageKey struct {
	Day   string `json:"day"`             // day in UTC on which the call counts, such as "2026-11-23"
	Key   string `json:"key,omitempty"`   // name of the API key of the call; "": the server requires no keys
	Group string `json:"group,omitempty"` // group of the key; "": none
	Model string `json:"model"`           // name of the model entry in the configuration
}

// Counts are sums over model calls. The zero value means no calls.
type Counts struct {
	Calls     int64 `json:"calls"`
	Estimated int64 `json:"estimated_calls,omitempty"` // number of Calls that count with the reserved maximum because their usage is unknown
	Unpriced  int64 `json:"unpriced_calls,omitempty"`  // number of Calls whose price is unknown; they add nothing to Nanos

	InputTokens      int64 `json:"input_tokens"`
	CachedTokens     int64 `json:"cached_tokens,omitempty"`      // the part of InputTokens that the model server read from its cache
	CacheWriteTokens int64 `json:"cache_write_tokens,omitempty"` // the part of InputTokens that the model server wrote to its cache
	OutputTokens     int64 `json:"output_tokens"`
	Tokens           int64 `json:"tokens"` // what budgets count: input and output tokens, or the model server's total if it is higher
	Nanos            int64 `json:"-"`      // cost in nano-dollars; 10⁹ are one US dollar
}

// Add adds d to c, field by field. Sums of tokens and nano-dollars stop at [MaxBooked] instead of overflowing.
func (c *Counts) Add(d Counts) {
	for i, p := range c.Fields() {
		*p = addBooked(*p, *d.Fields()[i])
	}
}

// MaxBooked is the maximum of each sum of nano-dollars (eight billion US dollars) or tokens in a store. It is above all limits, and one
// more addition cannot overflow an int64.
const MaxBooked = 8_000_000_000_000_000_000

// maxAdded is the maximum absolute value that is added to a sum at once.
const maxAdded = 1_000_000_000_000_000_000

func addBooked(sum, d int64) int64 { return min(sum, MaxBooked) + min(max(d, -maxAdded), maxAdded) }

// Fields returns pointers to all fields of c, in the order of their declaration.
func (c *Counts) Fields() []*int64 {
	return []*int64{&c.Calls, &c.Estimated, &c.Unpriced, &c.InputTokens, &c.CachedTokens, &c.CacheWriteTokens, &c.OutputTokens, &c.Tokens, &c.Nanos}
}

// A UsageRow is the usage of all calls with the same UsageKey.
type UsageRow struct {
	UsageKey
	Counts
}

// A UsageFilter selects rows of usage. A zero field selects every row.
type UsageFilter struct {
	Key          string
	Since, Until string // days such as "2026-11-23": Since is inclusive, Until exclusive
	Limit        int    // maximum number of rows; 0: all
}

// Selects reports whether the filter selects a row with this key.
func (f *UsageFilter) Selects(k *UsageKey) bool {
	return (f.Key == "" || f.Key == k.Key) && (f.Since == "" || k.Day >= f.Since) && (f.Until == "" || k.Day < f.Until)
}

// CompareUsage compares two rows by day, key, group and model, for [slices.SortFunc]: it returns a negative number if a comes first, and 0 for
// equal keys.
func CompareUsage(a, b UsageRow) int {
	return cmp.Or(strings.Compare(a.Day, b.Day), strings.Compare(a.Key, b.Key), strings.Compare(a.Group, b.Group), strings.Compare(a.Model, b.Model))
}

// A Reservation is the maximum that one model call can use. It is reserved before the call: see [Ledger].
type Reservation struct {
	ID string // unique id, which is passed to [Ledger].Settle
	UsageKey
	// InputTokens and OutputTokens are the maximum tokens of the call, Nanos its maximum cost in nano-dollars.
	InputTokens, OutputTokens, Nanos int64
	Expires                          time.Time // when the reservation expires, so that Sweep charges its full amount
	// KeyDay and KeyMonth are the limits of the key, GroupDay and GroupMonth those of the group. A zero Limit admits only a call that costs
	// nothing and uses no tokens; [NoLimit] admits every call.
	KeyDay, KeyMonth, GroupDay, GroupMonth Limit
}

// Tokens returns InputTokens + OutputTokens: the number of tokens that Reserve reserves in each account.
func (r *Reservation) Tokens() int64 { return r.InputTokens + r.OutputTokens }

// Charged returns the usage that Sweep adds for an expired reservation: one estimated call with the reserved amounts.
func (r *Reservation) Charged() Counts {
	return Counts{Calls: 1, Estimated: 1, InputTokens: r.InputTokens, OutputTokens: r.OutputTokens, Tokens: r.Tokens(), Nanos: r.Nanos}
}

// Bounds returns the accounts in which the reservation is made, with their limits, in the order of [UsageKey.Accounts].
func (r *Reservation) Bounds() []Bound {
	var out []Bound
	for _, a := range r.Accounts() {
		budget := Budget{r.KeyDay, r.KeyMonth}
		if a.Kind == AccountGroup {
			budget = Budget{r.GroupDay, r.GroupMonth}
		}
		limit := budget.Month
		if a.Period == r.Day {
			limit = budget.Day
		}
		out = append(out, Bound{a, limit})
	}
	return out
}

// Accounts returns the accounts that a call with this key uses: month and day of the group, unless Group is "", then month and day of the
// key. Stores lock accounts in this order.
func (k *UsageKey) Accounts() []Account {
	month := k.Day[:min(len(k.Day), len("2006-01"))]
	var out []Account
	if k.Group != "" {
		out = append(out, Account{AccountGroup, k.Group, month}, Account{AccountGroup, k.Group, k.Day})
	}
	return append(out, Account{AccountKey, k.Key, month}, Account{AccountKey, k.Key, k.Day})
}

// Maximum of what one call can be booked with: a trillion tokens and a million US dollars. Larger counts are reduced.
const (
	maxCallTokens = 1_000_000_000_000
	maxCallNanos  = 1_000_000 * 1_000_000_000
)

// Bounded returns c with each field limited, so that a faulty response of a model server cannot overflow a balance. The minimum is 0. The
// maximum is a trillion tokens, or a million US dollars, for each call. For this maximum, c.Calls counts as at least 1 and at most 1,000
// calls.
func (c Counts) Bounded() Counts {
	calls := min(max(c.Calls, 1), 1000)
	nanos := min(max(c.Nanos, 0), maxCallNanos*calls)
	for _, p := range c.Fields() {
		*p = min(max(*p, 0), maxCallTokens*calls)
	}
	c.Nanos = nanos
	return c
}

// CheckReservation returns an error of code invalid_request if r has no ID or no valid Day, if InputTokens, OutputTokens or Nanos is
// negative, or if one of them is above a trillion tokens or a million US dollars. It does not check the limits. op is the Op of the error.
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
	return lathe.CodeInvalidRequest.Wrap(op, err)
}

// CheckEntries checks the arguments of [Ledger].Record: it returns an error of code invalid_request if id is "" or an entry has no valid
// Day. A store must call it in Record. op is the Op of the error.
func CheckEntries(op, id string, entries []UsageRow) error {
	if id == "" || slices.ContainsFunc(entries, func(e UsageRow) bool { return !isDay(e.Day) }) {
		return lathe.CodeInvalidRequest.Errorf(op, "entries have an id, and each has a day")
	}
	return nil
}

func isDay(s string) bool {
	_, err := time.Parse(time.DateOnly, s)
	return err == nil
}

// A BudgetError says which budget has refused a call: the account with its limit (Bound) and its balance. It is wrapped in a *[lathe.Error]
// of code budget_exhausted.
type BudgetError struct {
	Bound   Bound
	Balance Balance
	// WantNanos and WantTokens are the maximum that the call would have used.
	WantNanos, WantTokens int64
	// Resets is the time until the period of the budget ends. Stores leave it 0; the caller of the store sets it by its own clock.
	Resets time.Duration
}

// Error returns a text that names the account.
func (e *BudgetError) Error() string {
	return fmt.Sprintf("the budget of %s %s for %s is exhausted", e.Bound.Kind, e.Bound.Name, e.Bound.Period)
}

// OverBudget decides whether the accounts of r, which have these balances, admit the reservation. It returns nil if they do, and otherwise
// an error of code budget_exhausted that wraps a [*BudgetError]. If several accounts refuse it, the error names the one whose period ends
// last. An account that is missing in balances counts as 0. OverBudget does not change balances. op is the Op of the error.
func OverBudget(op string, r *Reservation, balances []Balance) error {
	var found *BudgetError
	for _, b := range r.Bounds() {
		x := Balance{Account: b.Account}
		if i := slices.IndexFunc(balances, func(x Balance) bool { return x.Account == b.Account }); i >= 0 {
			x = balances[i]
		}
		overNanos := b.Limit.Nanos >= 0 && x.SpentNanos+x.ReservedNanos+r.Nanos > b.Limit.Nanos
		overTokens := b.Limit.Tokens >= 0 && x.SpentTokens+x.ReservedTokens+r.Tokens() > b.Limit.Tokens
		if !overNanos && !overTokens {
			continue
		}
		if found == nil || b.Resets().After(found.Bound.Resets()) {
			found = &BudgetError{Bound: b, Balance: x, WantNanos: r.Nanos, WantTokens: r.Tokens()}
		}
	}
	if found == nil {
		return nil
	}
	return lathe.CodeBudgetExhausted.Wrap(op, found)
}
