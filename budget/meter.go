// Package budget admits model calls under the budgets of keys and groups, and counts what they use in a [store.Ledger].
//
// A call under a budget is reserved before it is made, with the most that it can use: the size of its request in bytes, which
// no tokenizer exceeds, and the longest answer. After the call the reservation is replaced by what the server reports. If that is not known,
// because the answer broke off or has no usage, the whole reservation is charged. A call with tools of the vendor, a continuation or a
// document can use more than was reserved: it is charged with what it used, which can exceed the budget. Calls without a budget are
// only counted, in the background.
package budget

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/price"
	"github.com/lathe-run/lathe/store"
)

// Lease is how long a reservation is open. It only decides when the reservation of a process that was killed is shown as spent:
// it counts in full before and after. A call that takes longer is settled all the same.
const Lease = 15 * time.Minute

// settleTimeout bounds the time in which the store settles a call whose run has ended.
const settleTimeout = 10 * time.Second

// A Key is what a key's calls count for.
type Key struct {
	Budget store.Budget
	Group  string // "": none
	// GroupBudget is that of the group.
	GroupBudget store.Budget
}

// A Model is what the meter has to know of a model.
type Model struct {
	Name  string       // in reports: the entry of the configuration
	Price *price.Price // nil: unknown
	// OutputLimit is the most tokens that the model's server sends where a request has no limit; 0: unknown.
	OutputLimit int64
	// MaxTokens limits the answer to a call under a budget whose request has no limit, if OutputLimit is unknown.
	MaxTokens int
}

// Options are the options of [New]. The zero value is usable.
type Options struct {
	Log *slog.Logger     // nil: discards
	Now func() time.Time // nil: time.Now
}

// A Meter admits and counts the calls of a process. Its methods may be called from several goroutines at once. Close must be
// called.
type Meter struct {
	ledger  store.Ledger
	log     *slog.Logger
	now     func() time.Time
	process string // part of the ids
	serial  atomic.Int64
	keys    atomic.Pointer[map[string]Key]
	pending pending
	stopped sync.WaitGroup
}

// New returns a meter that books in the ledger. Until [Meter.SetKeys] no call has a budget.
func New(ledger store.Ledger, opts *Options) *Meter {
	m := &Meter{ledger: ledger, log: slog.New(slog.DiscardHandler), now: time.Now, process: rand.Text()}
	if opts != nil && opts.Log != nil {
		m.log = opts.Log
	}
	if opts != nil && opts.Now != nil {
		m.now = opts.Now
	}
	m.keys.Store(&map[string]Key{})
	m.pending.init()
	m.stopped.Go(m.record)
	return m
}

// SetKeys replaces the budgets, by the names of keys. Calls that are admitted from now on have the new ones.
func (m *Meter) SetKeys(keys map[string]Key) { m.keys.Store(&keys) }

// Close records what is not recorded yet and stops the meter. No call may be made afterwards.
func (m *Meter) Close(ctx context.Context) error {
	err := m.Flush(ctx)
	m.pending.close()
	m.stopped.Wait()
	return err
}

// Run charges the reservations that expire, of all processes, until ctx is done.
func (m *Meter) Run(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		charged, err := m.ledger.Sweep(ctx, m.now())
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			m.log.Error("expired reservations of budgets were not charged", "code", lathe.CodeOf(err))
		case charged > 0:
			m.log.Warn("model calls of processes that ended were charged with what was reserved for them", "calls", charged)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// For returns the meter of the calls of one model.
func (m *Meter) For(model *Model) loop.Meter { return &modelMeter{m, *model} }

type modelMeter struct {
	*Meter
	model Model
}

var _ loop.Meter = (*modelMeter)(nil)

// Admit implements [loop.Meter].
func (m *modelMeter) Admit(ctx context.Context, run *lathe.RunInfo, req *lathe.Request, wire lathe.Wire) (*loop.Admission, error) {
	name := cmp.Or(run.Profile, run.Principal) // a caller with a token counts for the key whose rights it has
	key, known := (*m.keys.Load())[name]
	if !known {
		key = Key{Budget: store.NoBudget, GroupBudget: store.NoBudget}
	}
	k := store.UsageKey{Day: m.now().UTC().Format(time.DateOnly), Key: name, Group: key.Group, Model: m.model.Name}
	if key.Budget == store.NoBudget && key.GroupBudget == store.NoBudget {
		return &loop.Admission{Settle: func(_ context.Context, f *lathe.Finish, _ error) {
			if f != nil {
				m.pending.add(k, m.counts(f))
			}
		}}, nil
	}
	if m.model.Price == nil && (key.Budget.BoundsMoney() || key.GroupBudget.BoundsMoney()) {
		return nil, &lathe.Error{Code: lathe.CodePriceUnknown, Op: "budget: admit a model call", Err: &PriceError{Model: m.model.Name, Key: name}}
	}
	input, output, limit := m.most(req, wire)
	r := &store.Reservation{ID: fmt.Sprintf("%s-%d", m.process, m.serial.Add(1)), UsageKey: k, InputTokens: input, OutputTokens: output, Expires: m.now().Add(Lease),
		KeyDay: key.Budget.Day, KeyMonth: key.Budget.Month, GroupDay: key.GroupBudget.Day, GroupMonth: key.GroupBudget.Month}
	if m.model.Price != nil {
		r.Nanos = int64(m.model.Price.Most(input, output))
	}
	if err := m.ledger.Reserve(ctx, r); err != nil {
		if ctx.Err() != nil { // it may have been reserved, and no call is made
			m.settle(ctx, r.ID, store.Counts{})
		}
		var over *store.BudgetError
		if errors.As(err, &over) {
			over.Resets = over.Bound.Resets().Sub(m.now())
		}
		return nil, err
	}
	return &loop.Admission{MaxTokens: limit, Settle: func(ctx context.Context, f *lathe.Finish, err error) { m.settle(ctx, r.ID, m.used(r, f, err)) }}, nil
}

// settle settles a reservation, also if the run has ended. If the store cannot be reached, the reservation is charged in full when it
// expires.
func (m *Meter) settle(ctx context.Context, id string, used store.Counts) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	if err := m.ledger.Settle(ctx, id, used); err != nil {
		m.log.Error("what a model call used was not booked: its whole reservation will be", "code", lathe.CodeOf(err))
	}
}

// used returns what a call with a reservation is charged with.
func (m *modelMeter) used(r *store.Reservation, f *lathe.Finish, err error) store.Counts {
	switch {
	case f != nil && f.Usage.Total() > 0:
		return m.counts(f)
	case f == nil && notBilled(err):
		return store.Counts{}
	}
	c := r.Charged()
	if m.model.Price == nil {
		c.Unpriced = 1
	}
	return c
}

// notBilled reports whether a call failed with an answer that vendors do not ask money for, or was not made.
func notBilled(err error) bool {
	var up *lathe.UpstreamError
	if errors.As(err, &up) {
		return up.Connect || up.Status >= 400 && !up.InBand
	}
	code := lathe.CodeOf(err)
	return code == lathe.CodeInvalidRequest || code == lathe.CodeInvalidConfig
}

// counts returns what a call used.
func (m *modelMeter) counts(f *lathe.Finish) store.Counts {
	u := f.Usage
	c := store.Counts{Calls: 1, InputTokens: u.InputTokens, CachedTokens: u.CachedTokens, CacheWriteTokens: u.CacheWriteTokens, OutputTokens: u.OutputTokens, Tokens: u.Total()}
	switch {
	case m.model.Price != nil:
		c.Nanos = int64(m.model.Price.Cost(u))
	case f.ProviderCost != nil:
		c.Nanos = int64(price.FromDollars(*f.ProviderCost))
	default:
		c.Unpriced = 1
	}
	return c.Bounded()
}

// A PriceError says that a model without a price was called under a budget in money.
type PriceError struct{ Model, Key string }

// Error says which setting is missing.
func (e *PriceError) Error() string {
	return fmt.Sprintf("the model %s has no price, and key %s has a budget in US dollars: set models.%s.price", e.Model, e.Key, e.Model)
}
