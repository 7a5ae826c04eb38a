package budget_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/budget"
	"github.com/lathe-run/lathe/internal/price"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
)

var (
	noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	day  = store.Account{Kind: store.AccountKey, Name: "app", Period: "2026-11-23"}
)

// A bench has a meter of the key app with a budget in tokens and money that admits almost everything.
type bench struct {
	*testing.T
	ledger *store.Memory
	meter  *budget.Meter
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{T: t, ledger: store.NewMemory(nil)}
	b.meter = budget.New(b.ledger, &budget.Options{Now: func() time.Time { return noon }})
	t.Cleanup(func() {
		if err := b.meter.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	b.limit(store.Limit{Nanos: int64(1_000_000 * price.Dollar), Tokens: 1 << 40})
	return b
}

func (b *bench) limit(l store.Limit) {
	b.meter.SetKeys(map[string]budget.Key{"app": {Budget: store.Budget{Day: l, Month: store.NoLimit}, GroupBudget: store.NoBudget}})
}

// The price of a token is a thousandth of a cent for input, and ten times that for output.
func (b *bench) model() *budget.Model {
	return &budget.Model{Name: "m", Price: &price.Price{Input: 10 * price.Dollar, CachedInput: 10 * price.Dollar, CacheWrite: 10 * price.Dollar, Output: 100 * price.Dollar}, OutputLimit: 500}
}

func (b *bench) admit(m *budget.Model, req *lathe.Request) (*loop.Admission, error) {
	return b.meter.For(m).Admit(b.Context(), &lathe.RunInfo{Principal: "app"}, req, lathe.WireOpenAIChat)
}

func (b *bench) balance() store.Balance {
	b.Helper()
	all, err := b.ledger.Balances(b.Context(), []store.Account{day})
	if err != nil {
		b.Fatal(err)
	}
	return all[0]
}

// reserved returns the output tokens that are reserved for a request, from the money.
func (b *bench) reserved(req *lathe.Request) (input, output int64) {
	b.Helper()
	a, err := b.admit(b.model(), req)
	if err != nil {
		b.Fatal(err)
	}
	x := b.balance()
	a.Settle(b.Context(), nil, &lathe.Error{Code: lathe.CodeInvalidRequest})
	output = (x.ReservedNanos - x.ReservedTokens*10_000) / 90_000
	return x.ReservedTokens - output, output
}

func user(text string) []lathe.Message { return []lathe.Message{lathe.User(text)} }

func relayed(body string) *lathe.Request {
	return &lathe.Request{Messages: user("hi"), Relay: &lathe.Relay{Wire: lathe.WireOpenAIChat, Request: []byte(body)}}
}

// What a client writes in a request that is sent as it is cannot make the model answer more, or more often, than is reserved.
func TestReservationsHaveAllThatARequestAsksFor(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	hundred := 100
	limited := func(req *lathe.Request) *lathe.Request { req.Sampling.MaxTokens = &hundred; return req }
	for _, tt := range []struct {
		name string
		req  *lathe.Request
		want int64
	}{
		{"no limit", &lathe.Request{Messages: user("hi")}, 500},
		{"a limit", limited(&lathe.Request{Messages: user("hi")}), 100},
		{"several choices", limited(relayed(`{"messages":[],"n":3}`)), 300},
		{"written with an escape", limited(relayed(`{"messages":[],"\u006e":3}`)), 300},
		{"written as a fraction", limited(relayed(` {"messages":[],"n":3.0e0}`)), 300},
		{"twice", limited(relayed(`{"n":3,"messages":[],"n":1}`)), 300},
		{"of which one is chosen", limited(relayed(`{"messages":[],"best_of":4}`)), 400},
		{"two limits", limited(relayed(`{"messages":[],"max_completion_tokens":100,"max_tokens":9000}`)), 9000},
		{"the limit of another server", limited(relayed(`{"messages":[],"options":{"num_predict":700}}`)), 700},
		{"candidates", limited(relayed(`{"contents":[],"generationConfig":{"candidateCount":2,"maxOutputTokens":100}}`)), 200},
		{"in the other spelling", limited(relayed(`{"contents":[],"generation_config":{"candidate_count":2,"max_output_tokens":150}}`)), 300},
		{"members of the configuration", &lathe.Request{Messages: user("hi"), Overrides: []lathe.Member{{Name: "max_tokens", Value: []byte("40")}, {Name: "n", Value: []byte("2")}}}, 80},
		{"a predicted answer", limited(relayed(`{"messages":[],"prediction":"` + strings.Repeat("x", 998) + `"}`)), 1100},
		{"reasoning between calls", limited(&lathe.Request{Messages: user("hi"), Sampling: lathe.Sampling{ReasoningBudget: func() *int { n := 4000; return &n }()}}), 4100},
		{"more than there is", limited(relayed(`{"messages":[],"n":99999999999999999999,"max_tokens":1e300}`)), 1_000_000_000},
		{"nothing that counts", limited(relayed(`{"messages":[],"n":null,"best_of":0,"options":[7],"reasoning":"high","thinking":true}`)), 100},
		{"beyond what a number holds", limited(relayed(`{"messages":[],"max_tokens":1e400}`)), 1_000_000_000},
		{"null, which may be the server's own limit", limited(relayed(`{"messages":[],"max_tokens":100,"max_completion_tokens": null}`)), 500},
		{"null alone", &lathe.Request{Messages: user("hi"), Overrides: []lathe.Member{{Name: "max_tokens", Value: []byte("null")}}}, 500},
		{"thinking_budget", limited(relayed(`{"messages":[],"thinking_budget":700}`)), 800},
		{"thinking_token_budget", limited(relayed(`{"messages":[],"thinking_token_budget":700}`)), 800},
		{"thinking_budget_tokens", limited(relayed(`{"messages":[],"thinking_budget_tokens":700}`)), 800},
		{"reasoning_budget", limited(relayed(`{"messages":[],"reasoning_budget":700}`)), 800},
		{"reasoning.max_tokens", limited(relayed(`{"messages":[],"reasoning":{"effort":"high","max_tokens":700}}`)), 800},
		{"thinking.budget_tokens", limited(relayed(`{"messages":[],"thinking":{"type":"enabled","budget_tokens":700}}`)), 800},
		{"less thinking than output", limited(relayed(`{"messages":[],"thinking":{"budget_tokens":7}}`)), 107},
		{"thinking of a template", limited(relayed(`{"messages":[],"chat_template_kwargs":{"thinking_budget":700}}`)), 800},
		{"no thinking", limited(relayed(`{"messages":[],"thinking_budget":0,"reasoning_budget":null}`)), 100},
		{"thinking, passed on", limited(&lathe.Request{Messages: user("hi"), Overrides: []lathe.Member{{Name: "thinking_budget", Value: []byte("700")}}}), 800},
	} {
		if _, got := b.reserved(tt.req); got != tt.want {
			t.Errorf("%s: %d output tokens are reserved, want %d", tt.name, got, tt.want)
		}
	}
}

// A value that servers take as no limit is refused, however else the request limits its answer: it would lift what was reserved.
func TestALimitThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, name := range []string{"max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens", "max_new_tokens", "num_predict", "n_predict",
		"thinking_budget", "thinking_token_budget", "thinking_budget_tokens", "reasoning_budget", "reasoning.max_tokens", "thinking.budget_tokens",
		"options.num_predict", "generationConfig.maxOutputTokens", "best_of"} {
		outer, inner, nested := strings.Cut(name, ".")
		named := name
		if nested && outer != "reasoning" && outer != "thinking" {
			named = inner
		}
		for _, value := range []string{"-1", "0", "-1e400", `"5000"`, "true", "[]", "{}", "null"} {
			thinks := strings.Contains(name, "thinking") || strings.Contains(name, "reasoning")
			if value == "null" && !strings.Contains(name, "predict") && name != "max_new_tokens" {
				continue // absent
			}
			if value == "0" && (thinks || name == "best_of") || value == "-1" && name == "best_of" {
				continue // no thinking, and one answer
			}
			text := fmt.Sprintf("%q:%s", name, value)
			if nested {
				text = fmt.Sprintf("%q:{%q:%s}", outer, inner, value)
			}
			bodies := map[string]*lathe.Request{"relayed": relayed(`{"messages":[],"max_tokens":1,` + text + `}`), "twice": relayed(`{"messages":[],` + text + `,"max_tokens":1}`)}
			if !nested {
				bodies["passed on"] = &lathe.Request{Messages: user("hi"), Overrides: []lathe.Member{{Name: name, Value: []byte(value)}}}
			}
			for way, req := range bodies {
				_, err := b.admit(b.model(), req)
				if lathe.CodeOf(err) != lathe.CodeInvalidRequest || !strings.Contains(err.Error(), named+" must be a number above 0") {
					t.Errorf("%s, %s: %v", text, way, err)
				}
			}
		}
	}
	m := b.model()
	m.Overrides = []lathe.Member{{Name: "n_predict", Value: []byte("-1")}}
	if a, err := b.admit(m, &lathe.Request{Messages: user("hi"), Overrides: m.Overrides}); err != nil {
		t.Errorf("set by the operator: %v", err)
	} else {
		if x := b.balance(); (x.ReservedNanos-x.ReservedTokens*10_000)/90_000 != 500 {
			t.Errorf("set by the operator: %+v", x)
		}
		a.Settle(t.Context(), nil, nil)
	}
}

// The input of a request that is sent as it is has all of its bytes, also of members that are not read, but not those of images.
func TestReservationsHaveTheWholeInput(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	plain, _ := b.reserved(&lathe.Request{Messages: user("hi")})
	for _, tt := range []struct {
		name        string
		req         *lathe.Request
		least, most int64
	}{
		{"tools of another form", relayed(`{"messages":[],"functions":[{"name":"` + strings.Repeat("x", 100_000) + `"}]}`), 100_000, 105_000},
		{"a text", &lathe.Request{Messages: user(strings.Repeat("x", 100_000))}, 100_000, 105_000},
		{"an image", &lathe.Request{Messages: []lathe.Message{{Role: lathe.RoleUser, Parts: []lathe.Part{lathe.Blob{MediaType: "image/png", Data: make([]byte, 300_000)}}}}}, 48_169, 60_000},
		{"an image in a body", func() *lathe.Request {
			r := relayed(`{"messages":"` + strings.Repeat("A", 400_000) + `"}`)
			r.Messages = []lathe.Message{{Role: lathe.RoleUser, Parts: []lathe.Part{lathe.Blob{MediaType: "image/png", Data: make([]byte, 300_000)}}}}
			return r
		}(), 48_169, 60_000},
	} {
		if got, _ := b.reserved(tt.req); got < tt.least || got > tt.most+plain {
			t.Errorf("%s: %d input tokens are reserved, want %d to %d", tt.name, got, tt.least, tt.most)
		}
	}
}

// Under a budget in money, members for which vendors ask more than the list price are refused, unless the operator sets them.
func TestMembersThatChangeThePrice(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for member, refused := range map[string]string{
		`"service_tier":"priority"`:                           "service_tier",
		`"service_ti\u0065r":"PRIORITY"`:                      "service_tier",
		`"serviceTier":"priority"`:                            "serviceTier",
		`"service_tier":7`:                                    "service_tier",
		`"speed":"fast"`:                                      "speed",
		`"inference_geo":"us"`:                                "inference_geo",
		`"modalities":["text","audio"]`:                       "modalities",
		`"generationConfig":{"responseModalities":["IMAGE"]}`: "responseModalities",
		`"service_tier":"auto"`:                               "",
		`"service_tier":"flex","speed":"standard"`:            "",
		`"service_tier":null,"modalities":["text"]`:           "",
		`"generationConfig":{"responseModalities":["TEXT"]}`:  "",
		`"metadata":{"service_tier":"priority"}`:              "",
	} {
		a, err := b.admit(b.model(), relayed(`{"messages":[],`+member+`}`))
		if refused == "" {
			if err != nil {
				t.Errorf("%s: %v", member, err)
				continue
			}
			a.Settle(t.Context(), nil, nil)
			continue
		}
		var unpriced *budget.PriceError
		if lathe.CodeOf(err) != lathe.CodePriceUnknown || !errors.As(err, &unpriced) || unpriced.Member != refused || !strings.Contains(err.Error(), "models.m.request_overrides") {
			t.Errorf("%s: %v", member, err)
		}
	}
	priority := lathe.Member{Name: "service_tier", Value: []byte(`"priority"`)}
	req := relayed(`{"messages":[],"service_tier":"priority"}`)
	req.Overrides = []lathe.Member{priority}
	if _, err := b.admit(b.model(), req); lathe.CodeOf(err) != lathe.CodePriceUnknown {
		t.Errorf("passed on by the client: %v", err)
	}
	m := b.model()
	m.Overrides = []lathe.Member{priority}
	if a, err := b.admit(m, req); err != nil {
		t.Errorf("set by the operator: %v", err)
	} else {
		a.Settle(t.Context(), nil, nil)
	}
	b.limit(store.Limit{Nanos: -1, Tokens: 1 << 40})
	if a, err := b.admit(b.model(), relayed(`{"messages":[],"service_tier":"priority"}`)); err != nil {
		t.Errorf("under a budget in tokens: %v", err)
	} else {
		a.Settle(t.Context(), nil, nil)
	}
}

// A run whose key was removed from the configuration has no budget, and makes no call where others have one.
func TestRunsOfRemovedKeysAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	admit := func() error {
		a, err := b.meter.For(b.model()).Admit(t.Context(), &lathe.RunInfo{Principal: "https://id.example#7", Profile: "gone"}, &lathe.Request{Messages: user("hi")}, "")
		if err == nil {
			a.Settle(t.Context(), nil, nil)
		}
		return err
	}
	if err := admit(); lathe.CodeOf(err) != lathe.CodeBudgetExhausted || !strings.Contains(err.Error(), `"gone"`) {
		t.Errorf("%v", err)
	}
	b.meter.SetKeys(map[string]budget.Key{"app": {Budget: store.NoBudget, GroupBudget: store.NoBudget}})
	if err := admit(); err != nil {
		t.Errorf("without any budget: %v", err)
	}
}

// An attempt that a vendor may ask money for is charged in full when it is repeated, and the next one is reserved again.
func TestRepeatedAttemptsAreReservedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	hundred := 100
	req := &lathe.Request{Messages: user("hi"), Sampling: lathe.Sampling{MaxTokens: &hundred}}
	upstream := func(e lathe.UpstreamError) error { return &lathe.Error{Code: lathe.CodeUpstream, Err: &e} }
	a, err := b.admit(b.model(), req)
	if err != nil {
		t.Fatal(err)
	}
	one := b.balance()
	for name, free := range map[string]error{"not connected": upstream(lathe.UpstreamError{Connect: true}), "refused": upstream(lathe.UpstreamError{Status: 503})} {
		if err := a.Repeat(t.Context(), free); err != nil {
			t.Fatal(err)
		}
		if got := b.balance(); got != one {
			t.Errorf("%s: %+v, want %+v", name, got, one)
		}
	}
	for name, costs := range map[string]error{"broken off": upstream(lathe.UpstreamError{}), "an error within the answer": upstream(lathe.UpstreamError{Status: 500, InBand: true}),
		"an error after a part of the answer": upstream(lathe.UpstreamError{Status: 500, Continued: true})} {
		before := b.balance()
		if err := a.Repeat(t.Context(), costs); err != nil {
			t.Fatal(err)
		}
		if got := b.balance(); got.SpentNanos != before.SpentNanos+one.ReservedNanos || got.ReservedNanos != one.ReservedNanos {
			t.Errorf("%s: %+v after %+v", name, got, before)
		}
	}
	spent := b.balance()
	b.limit(store.Limit{Nanos: spent.SpentNanos + spent.ReservedNanos, Tokens: -1}) // counts from the next admission on
	a.Settle(t.Context(), &lathe.Finish{Usage: lathe.Usage{InputTokens: 1, OutputTokens: 1}}, nil)
	if got := b.balance(); got.SpentNanos != spent.SpentNanos+110_000 || got.ReservedNanos != 0 {
		t.Errorf("settled: %+v", got)
	}
	if a, err = b.admit(b.model(), req); err == nil || a != nil {
		t.Errorf("110,000 nano-dollars too many were admitted")
	}
	b.limit(store.Limit{Nanos: b.balance().SpentNanos + one.ReservedNanos, Tokens: -1})
	if a, err = b.admit(b.model(), req); err != nil {
		t.Fatal(err)
	}
	if err := a.Repeat(t.Context(), upstream(lathe.UpstreamError{})); lathe.CodeOf(err) != lathe.CodeBudgetExhausted {
		t.Errorf("a second attempt that the budget does not admit: %v", err)
	}
	a.Settle(t.Context(), nil, fmt.Errorf("ended"))
	if got := b.balance(); got.ReservedNanos != 0 || got.SpentNanos != spent.SpentNanos+110_000+one.ReservedNanos {
		t.Errorf("%+v", got)
	}
}

// A countingLedger counts batches.
type countingLedger struct {
	store.Ledger
	batches int
}

func (l *countingLedger) Record(ctx context.Context, id string, at time.Time, rows []store.UsageRow) error {
	l.batches++
	return l.Ledger.Record(ctx, id, at, rows)
}

// Calls without a budget are recorded at most once a second, since a store keeps a row for each batch, and at once for a report.
func TestUsageIsRecordedInBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &countingLedger{Ledger: store.NewMemory(nil)}
		m := budget.New(l, nil)
		begun := time.Now()
		for range 1000 { // 10 s
			a, err := m.For(&budget.Model{Name: "m"}).Admit(t.Context(), &lathe.RunInfo{Principal: "app"}, &lathe.Request{}, "")
			if err != nil {
				t.Fatal(err)
			}
			a.Settle(t.Context(), &lathe.Finish{Usage: lathe.Usage{InputTokens: 1}}, nil)
			time.Sleep(10 * time.Millisecond)
		}
		synctest.Wait()
		if l.batches < 5 || l.batches > 11 {
			t.Errorf("%d batches in %s, want about 10", l.batches, time.Since(begun))
		}
		at := time.Now()
		rows, err := m.Reports().Usage(t.Context(), &store.UsageFilter{})
		if err != nil || len(rows) != 1 || rows[0].Calls != 1000 || time.Since(at) != 0 {
			t.Errorf("%+v, %v after %s", rows, err, time.Since(at))
		}
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// All reservations of a process that was killed are charged when they expire, however many there are.
func TestSweepGoesOnUntilNothingIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &sweptLedger{left: 3}
		m := budget.New(l, nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			m.Run(ctx, time.Minute)
		}()
		synctest.Wait()
		if l.sweeps != 4 {
			t.Errorf("%d sweeps, want 4 at once", l.sweeps)
		}
		cancel()
		<-done
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A sweptLedger charges one reservation at once.
type sweptLedger struct {
	store.Ledger
	left, sweeps int
}

func (l *sweptLedger) Sweep(context.Context, time.Time) (int, error) {
	l.sweeps++
	if l.left == 0 {
		return 0, nil
	}
	l.left--
	return 1, nil
}
