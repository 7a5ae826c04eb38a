package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/store"
)

// noon is the time of the calls in the tests of ledgers.
var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// TestLedger runs the tests for [store.Ledger]. open is as of [Test].
func TestLedger(t *testing.T, open func() store.Ledger) {
	t.Helper()
	run(t, open, []testOf[store.Ledger]{
		{"reserves and settles", reservesAndSettles},
		{"admits up to the limit", admitsUpToLimit},
		{"reserves in all accounts or in none", reservesInAllOrNone},
		{"names the budget that resets last", namesBudget},
		{"never exceeds a limit with many writers", neverExceeds},
		{"charges what expires and corrects it", chargesExpired},
		{"begins each day and each month at nothing", beginsPeriods},
		{"keeps two keys apart", keepsKeysApart},
		{"records without a reservation", records},
		{"lists usage", listsUsage},
		{"bounds what one call is booked with", boundsCounts},
		{"does not overflow", doesNotOverflow},
		{"removes what is old", sweepsOld},
		{"refuses what is no reservation", refusesReservations},
		{"respects the context with a ledger", ledgerRespectsContext},
	})
}

func day(at time.Time) string { return at.UTC().Format(time.DateOnly) }

// reservation returns a reservation of nanos and of as many tokens that no limit bounds.
func reservation(id string, nanos int64) *store.Reservation {
	return &store.Reservation{ID: id, UsageKey: store.UsageKey{Day: day(noon), Key: "app", Group: "team", Model: "m"}, InputTokens: nanos, Nanos: nanos,
		Expires: noon.Add(time.Minute), KeyDay: store.NoLimit, KeyMonth: store.NoLimit, GroupDay: store.NoLimit, GroupMonth: store.NoLimit}
}

func mustReserve(t *testing.T, l store.Ledger, r *store.Reservation) {
	t.Helper()
	if err := l.Reserve(t.Context(), r); err != nil {
		t.Fatalf("reserve %s: %v", r.ID, err)
	}
}

func mustSettle(t *testing.T, l store.Ledger, id string, nanos int64) {
	t.Helper()
	if err := l.Settle(t.Context(), id, store.Counts{Calls: 1, InputTokens: nanos, Tokens: nanos, Nanos: nanos}); err != nil {
		t.Fatalf("settle %s: %v", id, err)
	}
}

// wantExhausted returns the error of a reservation that must be refused.
func wantExhausted(t *testing.T, l store.Ledger, r *store.Reservation) *store.BudgetError {
	t.Helper()
	err := l.Reserve(t.Context(), r)
	var found *store.BudgetError
	if lathe.CodeOf(err) != lathe.CodeBudgetExhausted || !errors.As(err, &found) {
		t.Fatalf("reserve %s: %v, want budget_exhausted", r.ID, err)
	}
	return found
}

// wantBalance fails unless an account has these amounts of nanos, and as many tokens.
func wantBalance(t *testing.T, l store.Ledger, kind, name, period string, spent, reserved int64) {
	t.Helper()
	a := store.Account{Kind: kind, Name: name, Period: period}
	got, err := l.Balances(t.Context(), []store.Account{a})
	want := []store.Balance{{Account: a, SpentNanos: spent, SpentTokens: spent, ReservedNanos: reserved, ReservedTokens: reserved}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%s %s in %s (-want +got): %v\n%s", kind, name, period, err, diff)
	}
}

func wantAccounts(t *testing.T, l store.Ledger, spent, reserved int64) {
	t.Helper()
	if none, err := l.Balances(t.Context(), nil); err != nil || len(none) > 0 {
		t.Errorf("the balances of no account: %v, %v", none, err)
	}
	for _, a := range reservation("", 0).Accounts() {
		wantBalance(t, l, a.Kind, a.Name, a.Period, spent, reserved)
	}
}

func reservesAndSettles(t *testing.T, l store.Ledger) {
	wantAccounts(t, l, 0, 0)
	mustReserve(t, l, reservation("a", 60))
	mustReserve(t, l, reservation("a", 60)) // again, after an answer that was lost
	mustReserve(t, l, reservation("b", 30))
	wantAccounts(t, l, 0, 90)
	mustSettle(t, l, "a", 20)
	mustSettle(t, l, "a", 20)
	mustSettle(t, l, "unknown", 20)
	wantAccounts(t, l, 20, 30)
	mustSettle(t, l, "b", 40) // more than was reserved
	wantAccounts(t, l, 60, 0)
}

func admitsUpToLimit(t *testing.T, l store.Ledger) {
	for name, limited := range map[string]func(int64) store.Limit{
		"nanos":  func(n int64) store.Limit { return store.Limit{Nanos: n, Tokens: -1} },
		"tokens": func(n int64) store.Limit { return store.Limit{Nanos: -1, Tokens: n} },
	} {
		under := func(id string, amount, limit int64) *store.Reservation {
			r := reservation(name+id, amount)
			r.Key, r.Group, r.KeyDay = name, "", limited(limit)
			return r
		}
		mustReserve(t, l, under("1", 0, 0)) // what uses nothing
		_ = wantExhausted(t, l, under("2", 1, 0))
		mustReserve(t, l, under("3", 100, 100))
		_ = wantExhausted(t, l, under("4", 1, 100))
		mustSettle(t, l, name+"3", 99)
		mustReserve(t, l, under("5", 1, 100))
		found := wantExhausted(t, l, under("6", 1, 100))
		want := &store.BudgetError{Bound: store.Bound{Account: store.Account{Kind: store.AccountKey, Name: name, Period: day(noon)}, Limit: limited(100)},
			WantNanos: 1, WantTokens: 1}
		want.Balance = store.Balance{Account: want.Bound.Account, SpentNanos: 99, SpentTokens: 99, ReservedNanos: 1, ReservedTokens: 1}
		if diff := cmp.Diff(want, found); diff != "" {
			t.Errorf("the error of %s (-want +got):\n%s", name, diff)
		}
	}
}

func reservesInAllOrNone(t *testing.T, l store.Ledger) {
	for i, bound := range []func(*store.Reservation) *store.Limit{
		func(r *store.Reservation) *store.Limit { return &r.KeyDay }, func(r *store.Reservation) *store.Limit { return &r.KeyMonth },
		func(r *store.Reservation) *store.Limit { return &r.GroupDay }, func(r *store.Reservation) *store.Limit { return &r.GroupMonth },
	} {
		r := reservation(fmt.Sprint(i), 10)
		*bound(r) = store.Limit{Nanos: 9, Tokens: -1}
		_ = wantExhausted(t, l, r)
		wantAccounts(t, l, 0, 0)
	}
}

func namesBudget(t *testing.T, l store.Ledger) {
	r := reservation("a", 10)
	r.KeyDay, r.GroupDay, r.GroupMonth = store.Limit{Nanos: 9, Tokens: -1}, store.Limit{Nanos: 9, Tokens: -1}, store.Limit{Nanos: -1, Tokens: 9}
	r.Day = "2026-11-10"
	found := wantExhausted(t, l, r)
	if want := (store.Account{Kind: store.AccountGroup, Name: "team", Period: "2026-11"}); found.Bound.Account != want {
		t.Errorf("the error names %+v, want %+v", found.Bound.Account, want)
	}
	if resets := found.Bound.Resets(); !resets.Equal(time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("it resets at %v", resets)
	}
}

func neverExceeds(t *testing.T, l store.Ledger) {
	const writers, limit, each = 64, 1000, 7
	var admitted atomic.Int64
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range 6 {
				r := reservation(fmt.Sprintf("%d-%d", w, i), each)
				r.Key = fmt.Sprint(w % 2)
				r.GroupDay = store.Limit{Nanos: limit, Tokens: -1}
				switch err := l.Reserve(t.Context(), r); {
				case err == nil:
					admitted.Add(1)
				case lathe.CodeOf(err) != lathe.CodeBudgetExhausted:
					t.Errorf("reserve: %v", err)
				}
			}
		})
	}
	all.Wait()
	if got := admitted.Load(); got != limit/each {
		t.Errorf("%d were admitted, want %d", got, limit/each)
	}
	wantBalance(t, l, store.AccountGroup, "team", day(noon), 0, limit/each*each)
}

func chargesExpired(t *testing.T, l store.Ledger) {
	mustReserve(t, l, reservation("a", 60))
	late := reservation("b", 30)
	late.Expires = noon.Add(2 * time.Minute)
	mustReserve(t, l, late)
	sweep := func(at time.Time, want int) {
		t.Helper()
		if got, err := l.Sweep(t.Context(), at); err != nil || got != want {
			t.Fatalf("swept %d, %v, want %d", got, err, want)
		}
	}
	sweep(noon.Add(time.Minute-time.Nanosecond), 0)
	wantAccounts(t, l, 0, 90)
	sweep(noon.Add(time.Minute), 1)
	sweep(noon.Add(time.Minute), 0)
	wantAccounts(t, l, 60, 30)
	rows, err := l.Usage(t.Context(), &store.UsageFilter{})
	want := []store.UsageRow{{UsageKey: reservation("", 0).UsageKey, Counts: store.Counts{Calls: 1, Estimated: 1, InputTokens: 60, Tokens: 60, Nanos: 60}}}
	if diff := cmp.Diff(want, rows); err != nil || diff != "" {
		t.Errorf("usage (-want +got): %v\n%s", err, diff)
	}
	mustSettle(t, l, "a", 5) // its process was slow, and not dead
	mustSettle(t, l, "a", 5)
	wantAccounts(t, l, 5, 30)
	if rows, err = l.Usage(t.Context(), &store.UsageFilter{}); err != nil || len(rows) != 1 || rows[0].Counts != (store.Counts{Calls: 1, InputTokens: 5, Tokens: 5, Nanos: 5}) {
		t.Errorf("usage after the correction: %+v, %v", rows, err)
	}
	sweep(noon.Add(3*time.Minute), 1)
	sweep(noon.Add(3*time.Minute).Add(store.ChargedKept), 0)
	mustSettle(t, l, "b", 1) // forgotten by now
	wantAccounts(t, l, 35, 0)
}

func beginsPeriods(t *testing.T, l store.Ledger) {
	at := func(id string, when time.Time) *store.Reservation {
		r := reservation(id, 10)
		r.Day = day(when)
		r.KeyDay, r.KeyMonth = store.Limit{Nanos: 10, Tokens: -1}, store.Limit{Nanos: 20, Tokens: -1}
		return r
	}
	end := time.Date(2026, 11, 30, 23, 59, 59, 999999999, time.UTC)
	mustReserve(t, l, at("1", end.AddDate(0, 0, -1)))
	_ = wantExhausted(t, l, at("2", end.AddDate(0, 0, -1)))
	mustReserve(t, l, at("3", end))
	if found := wantExhausted(t, l, at("4", end)); found.Bound.Period != "2026-11" && found.Bound.Period != "2026-11-30" {
		t.Errorf("refused by %+v", found.Bound)
	}
	mustReserve(t, l, at("5", end.Add(time.Nanosecond))) // the next day and the next month
	wantBalance(t, l, store.AccountKey, "app", "2026-11", 0, 20)
	wantBalance(t, l, store.AccountKey, "app", "2026-12", 0, 10)
	wantBalance(t, l, store.AccountKey, "app", "2026-12-01", 0, 10)
	mustSettle(t, l, "3", 1) // counts for the day on which it began, whenever it ends
	wantBalance(t, l, store.AccountKey, "app", "2026-11-30", 1, 0)
}

func keepsKeysApart(t *testing.T, l store.Ledger) {
	of := func(id, key, group string) *store.Reservation {
		r := reservation(id, 10)
		r.Key, r.Group = key, group
		r.KeyDay, r.GroupDay = store.Limit{Nanos: 10, Tokens: -1}, store.Limit{Nanos: 20, Tokens: -1}
		return r
	}
	mustReserve(t, l, of("1", "a", "team"))
	mustReserve(t, l, of("2", "b", "team"))
	_ = wantExhausted(t, l, of("3", "c", "team")) // the budget of the group is exhausted
	mustReserve(t, l, of("4", "c", ""))
	mustReserve(t, l, of("5", "team", "a")) // names of keys and groups are apart
	wantBalance(t, l, store.AccountKey, "a", day(noon), 0, 10)
	wantBalance(t, l, store.AccountGroup, "a", day(noon), 0, 10)
	wantBalance(t, l, store.AccountGroup, "team", day(noon), 0, 20)
	wantBalance(t, l, store.AccountKey, "team", day(noon), 0, 10)
}

func records(t *testing.T, l store.Ledger) {
	entry := func(key string, nanos int64) store.UsageRow {
		r := reservation("", 0)
		r.Key = key
		return store.UsageRow{UsageKey: r.UsageKey, Counts: store.Counts{Calls: 2, Tokens: nanos, Nanos: nanos}}
	}
	for range 2 { // the second time after an answer that was lost
		if err := l.Record(t.Context(), "batch", noon, []store.UsageRow{entry("app", 3), entry("b", 4), entry("app", 5)}); err != nil {
			t.Fatal(err)
		}
	}
	wantBalance(t, l, store.AccountKey, "app", day(noon), 8, 0)
	wantBalance(t, l, store.AccountGroup, "team", "2026-11", 12, 0)
	r := reservation("a", 3)
	r.KeyMonth = store.Limit{Nanos: 10, Tokens: -1}
	_ = wantExhausted(t, l, r) // a budget that is set later counts what was used before
	r.KeyMonth.Nanos = 11
	mustReserve(t, l, r)
	if err := l.Settle(t.Context(), "batch", store.Counts{Calls: 1}); err != nil { // is no reservation
		t.Error(err)
	}
	wantBalance(t, l, store.AccountKey, "b", day(noon), 4, 0)
}

func listsUsage(t *testing.T, l store.Ledger) {
	of := func(day, key, group, model string) store.UsageKey {
		return store.UsageKey{Day: day, Key: key, Group: group, Model: model}
	}
	var entries []store.UsageRow
	for i, k := range []store.UsageKey{of("2026-11-29", "a", "g", "m"), of("2026-11-30", "a", "", "m"), of("2026-11-30", "a", "g", "m"), of("2026-11-30", "a", "g", "n"),
		of("2026-11-30", "b", "", "m"), of("2026-12-01", "", "", "m")} {
		c := store.Counts{}
		for j, p := range c.Fields() {
			*p = int64(10*i + j + 1)
		}
		entries = append(entries, store.UsageRow{UsageKey: k, Counts: c})
	}
	for i := range entries {
		e := entries[len(entries)-1-i] // in another order
		if err := l.Record(t.Context(), fmt.Sprint(i), noon, []store.UsageRow{e}); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		filter store.UsageFilter
		want   []store.UsageRow
	}{
		{store.UsageFilter{}, entries},
		{store.UsageFilter{Key: "a"}, entries[:4]},
		{store.UsageFilter{Since: "2026-11-30"}, entries[1:]},
		{store.UsageFilter{Until: "2026-11-30"}, entries[:1]},
		{store.UsageFilter{Key: "a", Since: "2026-11-30", Until: "2026-12-01"}, entries[1:4]},
		{store.UsageFilter{Key: "z"}, nil},
		{store.UsageFilter{Limit: 2}, entries[:2]},
		{store.UsageFilter{Key: "a", Since: "2026-11-30", Limit: 2}, entries[1:3]},
		{store.UsageFilter{Limit: 100}, entries},
	} {
		got, err := l.Usage(t.Context(), &tt.filter)
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%+v (-want +got): %v\n%s", tt.filter, err, diff)
		}
	}
}

func boundsCounts(t *testing.T, l store.Ledger) {
	const most = 1<<63 - 1
	for i := range 20 { // the sum fits
		mustReserve(t, l, reservation(fmt.Sprint(i), 1))
		if err := l.Settle(t.Context(), fmt.Sprint(i), store.Counts{Calls: 1, InputTokens: most, OutputTokens: -5, Tokens: most, Nanos: most}); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := l.Usage(t.Context(), &store.UsageFilter{})
	want := store.Counts{Calls: 20, InputTokens: 20e12, Tokens: 20e12, Nanos: 20e15}
	if err != nil || len(rows) != 1 || rows[0].Counts != want {
		t.Errorf("%+v, %v, want %+v", rows, err, want)
	}
}

// doesNotOverflow books more than the largest number, as a broken model server can report it: the sums stay large, and no budget
// admits a call afterwards.
func doesNotOverflow(t *testing.T, l store.Ledger) {
	const most = 1<<63 - 1
	for i := range 24 {
		k := store.UsageKey{Day: day(noon), Key: "app", Group: "team", Model: "m"}
		large := store.UsageRow{UsageKey: k, Counts: store.Counts{Calls: 1_000_000, InputTokens: most, Tokens: most, Nanos: most}}
		if err := l.Record(t.Context(), fmt.Sprint(i), noon, []store.UsageRow{large, large}); err != nil {
			t.Fatal(err)
		}
	}
	r := reservation("r", 1)
	r.KeyDay = store.Limit{Nanos: 1_000_000_000_000_000_000, Tokens: -1}
	if over := wantExhausted(t, l, r); over.Balance.SpentNanos < store.MaxBooked {
		t.Errorf("%+v", over.Balance)
	}
	rows, err := l.Usage(t.Context(), &store.UsageFilter{})
	if err != nil || len(rows) != 1 || rows[0].Nanos < store.MaxBooked || rows[0].Tokens < 24e15 || rows[0].Calls != 48_000_000 {
		t.Errorf("%+v, %v", rows, err)
	}
}

func sweepsOld(t *testing.T, l store.Ledger) {
	for i, d := range []string{"2025-09-30", "2025-10-01", "2026-11-30"} {
		if err := l.Record(t.Context(), fmt.Sprint(i), noon, []store.UsageRow{{UsageKey: store.UsageKey{Day: d, Key: "app", Model: "m"}, Counts: store.Counts{Calls: 1, Nanos: 1, Tokens: 1}}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Sweep(t.Context(), noon); err != nil {
		t.Fatal(err)
	}
	rows, err := l.Usage(t.Context(), &store.UsageFilter{})
	if err != nil || len(rows) != 2 || rows[0].Day != "2025-10-01" {
		t.Errorf("%+v, %v", rows, err)
	}
	for period, spent := range map[string]int64{"2025-09": 0, "2025-09-30": 0, "2025-10": 1, "2025-10-01": 1, "2026-11": 1} {
		wantBalance(t, l, store.AccountKey, "app", period, spent, 0)
	}
}

func refusesReservations(t *testing.T, l store.Ledger) {
	for name, change := range map[string]func(*store.Reservation){
		"no id": func(r *store.Reservation) { r.ID = "" }, "no day": func(r *store.Reservation) { r.Day = "" }, "a month": func(r *store.Reservation) { r.Day = "2026-11" },
		"negative": func(r *store.Reservation) { r.Nanos = -1 }, "less than no tokens": func(r *store.Reservation) { r.OutputTokens = -1 },
		"too much": func(r *store.Reservation) { r.Nanos = 1 << 62 }, "too many": func(r *store.Reservation) { r.InputTokens = 1 << 62 },
	} {
		r := reservation("a", 1)
		change(r)
		if err := l.Reserve(t.Context(), r); lathe.CodeOf(err) != lathe.CodeInvalidRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := l.Record(t.Context(), "a", noon, []store.UsageRow{{}}); lathe.CodeOf(err) != lathe.CodeInvalidRequest {
		t.Errorf("an entry without a day: %v", err)
	}
	if err := l.Record(t.Context(), "", noon, nil); lathe.CodeOf(err) != lathe.CodeInvalidRequest {
		t.Errorf("entries without an id: %v", err)
	}
	wantAccounts(t, l, 0, 0)
}

func ledgerRespectsContext(t *testing.T, l store.Ledger) {
	ctx := cancelled(t)
	errs := map[string]error{"reserve": l.Reserve(ctx, reservation("a", 1)), "settle": l.Settle(ctx, "a", store.Counts{}), "record": l.Record(ctx, "b", noon, nil)}
	_, errs["sweep"] = l.Sweep(ctx, noon)
	_, errs["balances"] = l.Balances(ctx, reservation("", 0).Accounts())
	_, errs["usage"] = l.Usage(ctx, &store.UsageFilter{})
	for name, err := range errs {
		if lathe.CodeOf(err) != lathe.CodeCancelled {
			t.Errorf("%s: %v", name, err)
		}
	}
	wantAccounts(t, l, 0, 0)
}
