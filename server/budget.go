package server

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/lathe-run/lathe/internal/price"
	"github.com/lathe-run/lathe/store"
)

// A budgetRow is the JSON of an account. Limits are absent if the account has none.
type budgetRow struct {
	Kind           string    `json:"kind"` // key or group
	Name           string    `json:"name"`
	Period         string    `json:"period"` // "2026-11-23" or "2026-11", in UTC
	Resets         time.Time `json:"resets_at"`
	CostLimit      *float64  `json:"cost_limit,omitempty"` // in US dollars, like all costs here
	TokenLimit     *int64    `json:"token_limit,omitempty"`
	SpentCost      float64   `json:"spent_cost"`
	SpentTokens    int64     `json:"spent_tokens"`
	ReservedCost   float64   `json:"reserved_cost"` // reserved by calls in progress
	ReservedTokens int64     `json:"reserved_tokens"`
}

// budgetRows returns one row for each of bounds, in the same order, with the current balances.
func (co *core) budgetRows(ctx context.Context, bounds []store.Bound) ([]budgetRow, error) {
	var accounts []store.Account
	for _, b := range bounds {
		accounts = append(accounts, b.Account)
	}
	balances, err := co.opts.Ledger.Balances(ctx, accounts)
	if err != nil {
		return nil, err
	}
	rows := make([]budgetRow, len(bounds))
	for i, b := range bounds {
		now := balances[i]
		rows[i] = budgetRow{Kind: b.Kind, Name: b.Name, Period: b.Period, Resets: b.Resets(), SpentCost: price.Money(now.SpentNanos).Dollars(), SpentTokens: now.SpentTokens,
			ReservedCost: price.Money(now.ReservedNanos).Dollars(), ReservedTokens: now.ReservedTokens}
		if b.Limit.Nanos >= 0 {
			rows[i].CostLimit = new(price.Money(b.Limit.Nanos).Dollars())
		}
		if b.Limit.Tokens >= 0 {
			rows[i].TokenLimit = &b.Limit.Tokens
		}
	}
	return rows, nil
}

// boundsOf returns the two accounts of a budget: that of the day, which has the form 2026-11-23, and that of its month.
func boundsOf(kind, name, day string, b *store.Budget) []store.Bound {
	if b == nil {
		b = &store.NoBudget
	}
	return []store.Bound{{Account: store.Account{Kind: kind, Name: name, Period: day}, Limit: b.Day},
		{Account: store.Account{Kind: kind, Name: name, Period: day[:len("2006-01")]}, Limit: b.Month}}
}

// A budgetOwner is a key or a group with its budget.
type budgetOwner struct {
	kind, name string
	budget     *store.Budget
}

// follows reports whether the owner follows the one with that kind and name in the order of budgetOwners. Every owner follows
// the kind "".
func (o budgetOwner) follows(kind, name string) bool {
	if o.kind == kind {
		return o.name > name
	}
	return kind != store.AccountGroup
}

// budgetOwners returns the keys and groups that the caller may see: all for an admin key, else its own key and the group of
// that key. Keys come first, then groups, each sorted by name.
func (c *caller) budgetOwners() (owners []budgetOwner) {
	groups := map[string]*store.Budget{}
	for _, k := range c.visibleKeys() {
		owners = append(owners, budgetOwner{store.AccountKey, k.Name, k.Budget})
		if k.Group != "" && groups[k.Group] == nil {
			groups[k.Group] = k.GroupBudget
		}
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		owners = append(owners, budgetOwner{store.AccountGroup, name, groups[name]})
	}
	return owners
}

// boundsPage returns the accounts of at most limit of the budgetOwners that have a budget. after is the value of next of the
// page before, such as "key:ann"; "" for the first page. next is "" if this is the last page. ok is false if after is not a
// value of next.
func (c *caller) boundsPage(day, after string, limit int) (page []store.Bound, next string, ok bool) {
	kind, name, ok := strings.Cut(after, ":")
	isKind := kind == store.AccountKey || kind == store.AccountGroup
	if after != "" && !(ok && isKind) {
		return nil, "", false
	}
	n := 0
	for _, owner := range c.budgetOwners() {
		bounds := slices.DeleteFunc(boundsOf(owner.kind, owner.name, day, owner.budget), func(b store.Bound) bool { return b.Limit == store.NoLimit })
		if !owner.follows(kind, name) || len(bounds) == 0 {
			continue
		}
		if n == limit {
			last := page[len(page)-1]
			return page, last.Kind + ":" + last.Name, true
		}
		n++
		page = append(page, bounds...)
	}
	return page, "", true
}

// A usageRow is a row of the ledger and its cost.
type usageRow struct {
	store.UsageRow
	Cost float64 `json:"cost"` // US dollars; only calls with a known price count
}

// usageBody is the response of GET /api/usage.
type usageBody struct {
	Since   string      `json:"since"` // a day in UTC, which is included
	Until   string      `json:"until"` // a day in UTC, which is not included
	Total   usageTotal  `json:"total"`
	Data    []usageRow  `json:"data"`
	Budgets []budgetRow `json:"budgets"`        // one page of the budgets
	Next    string      `json:"next,omitempty"` // the cursor of the next page of budgets
}

type usageTotal struct {
	store.Counts
	Cost float64 `json:"cost"`
}

// maxUsageRows is the maximum number of rows in a response; a query with more gets 400.
const maxUsageRows = 100_000

// budgetsPage is the default number of keys and groups in a page of budgets.
const budgetsPage = 100

// showUsage handles GET /api/usage: the usage by day, key, group and model, and one page of the budgets. An admin key gets
// those of all keys, another key only its own.
func (h *stateHandler) showUsage(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	if h.opts.Ledger == nil {
		return notFound("not_found", "This gateway has no store that counts usage: see serve.store.")
	}
	now := h.opts.Now().UTC()
	q, given := &store.RunFilter{}, r.URL.Query()
	limit, p := number(given, "limit", budgetsPage, maxPage)
	if p == nil {
		p = narrowTimes(q, given, now)
	}
	if p != nil {
		return p
	}
	bounds, next, ok := c.boundsPage(now.Format(time.DateOnly), given.Get("after"), limit)
	if !ok {
		return badRequest("after", "after wants the `next` of the page before.")
	}
	f := store.UsageFilter{Since: cmp.Or(dayOf(q.Since), now.Format("2006-01")+"-01"), Until: now.AddDate(0, 0, 1).Format(time.DateOnly), Limit: maxUsageRows + 1}
	if !q.Until.IsZero() { // the day of until is included
		f.Until = dayOf(q.Until.UTC().AddDate(0, 0, 1))
	}
	if !c.key.isAdmin() {
		f.Key = c.key.configured()
	}
	rows, err := h.opts.Ledger.Usage(r.Context(), &f)
	if err == nil && len(rows) > maxUsageRows {
		return badRequest("since", "There are more than %d rows: ask for fewer days.", maxUsageRows)
	}
	body := &usageBody{Since: f.Since, Until: f.Until, Data: []usageRow{}, Next: next}
	if err == nil {
		body.Budgets, err = h.budgetRows(r.Context(), bounds)
	}
	if err != nil {
		return h.storeFailed(c, err)
	}
	for _, row := range rows {
		body.Total.Add(row.Counts)
		body.Data = append(body.Data, usageRow{row, price.Money(row.Nanos).Dollars()})
	}
	body.Total.Cost = price.Money(body.Total.Nanos).Dollars()
	return answer(w, body)
}

// dayOf returns the day of a time in UTC, such as 2026-11-23; "" for the zero time.
func dayOf(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.DateOnly)
}
