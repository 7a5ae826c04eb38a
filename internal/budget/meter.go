// Package budget admits model calls under the budgets of keys and groups, and records their usage in a [store.Ledger].
//
// A call under a budget is reserved before it is made, with the most that it can use: the size of its request in bytes, which no tokenizer
// exceeds, and the longest answer. After the call the reservation is replaced by the usage that the server reports. If the usage is
// unknown, because the answer was interrupted or has no usage, the whole reservation is charged. Each repeated attempt gets a new
// reservation. A call with tools of the vendor, a continuation or a document can use more than was reserved: it is charged with its usage,
// which can exceed the budget. Calls without a budget are only counted, in the background.
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
	"github.com/lathe-run/lathe/internal/price"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
)

// Lease is the lifetime of a reservation. When it ends, the reservation of a killed process is reported as spent; the reserved amount
// counts in full before and after. A call that takes longer than Lease is still settled.
const Lease = 15 * time.Minute

// settleTimeout limits the time in which the store settles a call whose run has ended.
const settleTimeout = 10 * time.Second

// A Key has the budgets that limit the calls of one API key.
type Key struct {
	Budget store.Budget
	Group  string // name of the group; "": none
	// GroupBudget is the budget of the group.
	GroupBudget store.Budget
}

// A Model has the properties of a model that the meter needs.
type Model struct {
	Name  string       // name in reports: that of the configuration entry
	Price *price.Price // nil: unknown
	// OutputLimit is the number of output tokens to which the model's server limits a request without a limit; 0: unknown.
	OutputLimit int64
	// MaxTokens limits the answer to a call under a budget if the request has no limit and OutputLimit is unknown.
	MaxTokens int
	// Overrides are the members that the configuration sets in each request. Price includes their effect.
	Overrides []lathe.Member
}

// Options are the options of [New]. The zero value is usable.
type Options struct {
	Log *slog.Logger     // nil: discards
	Now func() time.Time // nil: time.Now
}

// A Meter admits and counts the model calls of a process. Its methods may be called from several goroutines at once. The caller must call
// Close.
type Meter struct {
	ledger  store.Ledger
	log     *slog.Logger
	now     func() time.Time
	process string // random part of the ids of this process
	serial  atomic.Int64
	keys    atomic.Pointer[keySet]
	pending pending
	stopped sync.WaitGroup
}

// New returns a meter that records in the ledger. Until [Meter.SetKeys] is called, no call has a budget.
func New(ledger store.Ledger, opts *Options) *Meter {
	if opts == nil {
		opts = &Options{}
	}
	m := &Meter{ledger: ledger, log: cmp.Or(opts.Log, slog.New(slog.DiscardHandler)), now: opts.Now, process: rand.Text()}
	if m.now == nil {
		m.now = time.Now
	}
	m.keys.Store(&keySet{})
	m.pending.init()
	m.stopped.Go(m.record)
	return m
}

// A keySet has the budgets of a configuration by the names of keys.
type keySet struct {
	of      map[string]Key
	bounded bool // at least one budget has a limit
}

// SetKeys replaces the budgets, by the names of keys, for calls that are admitted from now on. If any budget has a limit, calls of runs
// whose key is not in keys are refused, because their budget is unknown.
func (m *Meter) SetKeys(keys map[string]Key) {
	set := &keySet{of: keys}
	for _, k := range keys {
		set.bounded = set.bounded || k.Budget != store.NoBudget || k.GroupBudget != store.NoBudget
	}
	m.keys.Store(set)
}

// Close records the pending usage and stops the meter. No call may be made afterwards.
func (m *Meter) Close(ctx context.Context) error {
	err := m.Flush(ctx)
	m.pending.close()
	m.stopped.Wait()
	return err
}

// Run charges the expired reservations of all processes at the interval every, until ctx is done.
func (m *Meter) Run(ctx context.Context, every time.Duration) {
	tick := time.Tick(every)
	for {
		charged, err := m.ledger.Sweep(ctx, m.now())
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			m.log.Error("expired reservations of budgets were not charged", "code", lathe.CodeOf(err))
		case charged > 0:
			m.log.Warn("model calls of processes that ended were charged with what was reserved for them", "calls", charged)
			continue // the store charges a limited number in one call
		}
		select {
		case <-tick:
		case <-ctx.Done():
			return
		}
	}
}

// For returns a meter for the calls of one model.
func (m *Meter) For(model *Model) loop.Meter { return &modelMeter{m, *model} }

type modelMeter struct {
	*Meter
	model Model
}

// Admit implements [loop.Meter].
func (m *modelMeter) Admit(ctx context.Context, run *lathe.RunInfo, req *lathe.Request, wire lathe.Wire) (*loop.Admission, error) {
	name := cmp.Or(run.Profile, run.Principal) // a caller with a token uses the budget of the key whose rights it has
	keys := m.keys.Load()
	key, known := keys.of[name]
	if !known {
		if keys.bounded {
			return nil, lathe.CodeBudgetExhausted.Wrap("budget: admit a model call", &KeyError{Key: name})
		}
		key = Key{Budget: store.NoBudget, GroupBudget: store.NoBudget}
	}
	if key.Budget == store.NoBudget && key.GroupBudget == store.NoBudget {
		return &loop.Admission{Settle: func(_ context.Context, f *lathe.Finish, _ error) {
			if f != nil {
				m.pending.add(m.usageKey(name, &key), m.counts(f))
			}
		}}, nil
	}
	a := m.asks(req)
	if key.Budget.BoundsMoney() || key.GroupBudget.BoundsMoney() {
		if m.model.Price == nil || a.surcharge != "" {
			return nil, lathe.CodePriceUnknown.Wrap("budget: admit a model call", &PriceError{Model: m.model.Name, Key: name, Member: a.surcharge})
		}
	}
	if a.unbounded != "" {
		return nil, lathe.CodeInvalidRequest.Errorf("budget: admit a model call", "%s must be a number above 0 under a budget, or be left out", a.unbounded)
	}
	input, output, limit := m.most(req, &a, wire)
	c := &admitted{meter: m, key: &key, name: name, input: input, output: output}
	if err := c.reserve(ctx); err != nil {
		return nil, err
	}
	return &loop.Admission{MaxTokens: limit, Repeat: c.repeat, Settle: c.settle}, nil
}

// usageKey returns the ledger key for a call that is made now.
func (m *modelMeter) usageKey(name string, key *Key) store.UsageKey {
	return store.UsageKey{Day: m.now().UTC().Format(time.DateOnly), Key: name, Group: key.Group, Model: m.model.Name}
}

// An admitted call is a call under a budget.
type admitted struct {
	meter         *modelMeter
	key           *Key
	name          string
	input, output int64
	open          *store.Reservation // reservation of the attempt in progress; nil: none
}

// reserve reserves the most that one attempt can use. It returns a [store.BudgetError] if a budget is exhausted.
func (c *admitted) reserve(ctx context.Context) error {
	m, b := c.meter, c.key
	r := &store.Reservation{ID: fmt.Sprintf("%s-%d", m.process, m.serial.Add(1)), UsageKey: m.usageKey(c.name, b), InputTokens: c.input, OutputTokens: c.output,
		Expires: m.now().Add(Lease), KeyDay: b.Budget.Day, KeyMonth: b.Budget.Month, GroupDay: b.GroupBudget.Day, GroupMonth: b.GroupBudget.Month}
	if m.model.Price != nil {
		r.Nanos = int64(m.model.Price.Most(c.input, c.output))
	}
	err := m.ledger.Reserve(ctx, r)
	if err == nil {
		c.open = r
		return nil
	}
	if ctx.Err() != nil { // the reservation may exist, and no call is made: release it
		m.book(ctx, r.ID, store.Counts{})
	}
	var over *store.BudgetError
	if errors.As(err, &over) {
		over.Resets = over.Bound.Resets().Sub(m.now())
	}
	return err
}

// repeat implements [loop.Admission].Repeat. It charges the failed attempt in full if the vendor may charge for it, and then reserves the
// next attempt.
func (c *admitted) repeat(ctx context.Context, err error) error {
	if notBilled(err) {
		return nil
	}
	c.settle(ctx, nil, err)
	return c.reserve(ctx)
}

// settle implements [loop.Admission].Settle.
func (c *admitted) settle(ctx context.Context, f *lathe.Finish, err error) {
	if r := c.open; r != nil {
		c.open = nil
		c.meter.book(ctx, r.ID, c.meter.used(r, f, err))
	}
}

// book settles a reservation, even if the run has ended. If the store is not reachable, the whole reservation is charged when it expires.
func (m *Meter) book(ctx context.Context, id string, used store.Counts) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	if err := m.ledger.Settle(ctx, id, used); err != nil {
		m.log.Error("what a model call used was not booked: its whole reservation will be", "code", lathe.CodeOf(err))
	}
}

// used returns the usage with which a reserved call is charged: the reported usage, nothing if the vendor does not bill the call, else the
// reservation.
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

// notBilled reports whether a call was not made, or failed with a response for which vendors do not charge.
func notBilled(err error) bool {
	var up *lathe.UpstreamError
	if errors.As(err, &up) {
		return up.Connect || up.Status >= 400 && !up.InBand && !up.Continued
	}
	code := lathe.CodeOf(err)
	return code == lathe.CodeInvalidRequest || code == lathe.CodeInvalidConfig
}

// counts returns the usage and the cost of a finished call.
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

// A PriceError means that a model call has no known price although its budget is in money.
type PriceError struct {
	Model, Key string
	// Member of the request that changes the price; "": the model has no price.
	Member string
}

// Error names the missing setting.
func (e *PriceError) Error() string {
	if e.Member != "" {
		return fmt.Sprintf("%s of the request changes the price of the model %s, and key %s has a budget in US dollars: leave it out, or set it in models.%s.request_overrides, and the price with it in models.%s.price",
			e.Member, e.Model, e.Key, e.Model, e.Model)
	}
	return fmt.Sprintf("the model %s has no price, and key %s has a budget in US dollars: set models.%s.price", e.Model, e.Key, e.Model)
}

// A KeyError means that the key of a run is not in the configuration.
type KeyError struct{ Key string }

// Error contains the name of the key.
func (e *KeyError) Error() string {
	return fmt.Sprintf("the key %.64q of the run is not in the configuration, so the run has no budget", e.Key)
}
