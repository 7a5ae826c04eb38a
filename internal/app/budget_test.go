package app

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/store"
)

// A paidModel is a model server whose answers have 10 output tokens each.
type paidModel struct {
	*httptest.Server
	calls  atomic.Int64
	answer atomic.Pointer[func(w http.ResponseWriter)] // in place of the usual answer
	body   atomic.Pointer[string]                      // of the last request
}

func newPaidModel(t *testing.T) *paidModel {
	m := &paidModel{}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		body := string(b)
		m.body.Store(&body)
		m.calls.Add(1)
		if f := m.answer.Load(); f != nil {
			(*f)(w)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"id":"1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"hello"}}]}`+"\n\n"+
			`data: {"id":"1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\n"+
			`data: {"id":"1","object":"chat.completion.chunk","model":"m","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":10,"total_tokens":17}}`+"\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(m.Close)
	return m
}

// A budgetServer serves a configuration with budgets at a time of its own.
type budgetServer struct {
	*testing.T
	app    *App
	model  *paidModel
	now    atomic.Pointer[time.Time]
	serial atomic.Int64
}

const budgetKeys = `
keys:
  app: {key: "${APP}", group: team, %s}
  other: {key: "${OTHER}", group: team}
  boss: {key: "${BOSS}", admin: true}
groups: {team: {budget: {month: {cost: %s}}}}
`

// A token of an answer costs a tenth of a cent, and one of a request nothing.
func serveBudgets(t *testing.T, budget, ofGroup, more string) *budgetServer {
	t.Helper()
	s := &budgetServer{T: t, model: newPaidModel(t)}
	s.set(time.Date(2026, 11, 29, 23, 0, 0, 0, time.UTC))
	dir := t.TempDir()
	text := fmt.Sprintf("models:\n  paid: {base_url: %q, price: {input: 0, output: 1000}, max_attempts: 1}\n  unknown: {base_url: %q, max_attempts: 1}\n  free: {base_url: %q, price: {input: 0, output: 0}}\n"+
		"default_model: paid\nserve: {store: %q}\n", s.model.URL+"/v1", s.model.URL+"/v1", s.model.URL+"/v1", "sqlite:"+filepath.Join(dir, "runs.db")) + fmt.Sprintf(budgetKeys, budget, ofGroup) + more
	path := filepath.Join(dir, "lathe.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := LoadConfig(path, &LoadOptions{Environ: []string{"APP=app-0123456789abcdef", "OTHER=other-0123456789abcdef", "BOSS=boss-0123456789abcdef"}})
	if err != nil {
		t.Fatal(err)
	}
	if s.app, err = New(cfg, &Options{now: func() time.Time { return *s.now.Load() }}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.app.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *budgetServer) set(at time.Time) { s.now.Store(&at) }

// do sends a request as the key and returns its answer.
func (s *budgetServer) do(key, method, path, body string) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(s.Context(), method, "http://127.0.0.1"+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+key+"-0123456789abcdef")
	r.Header.Set("Content-Type", "application/json")
	s.app.Handler().ServeHTTP(rec, r)
	return rec
}

// ask sends a chat completion that no other one equals.
func (s *budgetServer) ask(key, model string) *httptest.ResponseRecorder {
	return s.do(key, http.MethodPost, "/v1/chat/completions", fmt.Sprintf(`{"model":%q,"max_tokens":100,"messages":[{"role":"user","content":"%d"}]}`, model, s.serial.Add(1)))
}

// want fails unless a key's calls are answered with the status.
func (s *budgetServer) want(key, model string, status int, code string) *httptest.ResponseRecorder {
	s.Helper()
	rec := s.ask(key, model)
	if rec.Code != status || code != "" && !strings.Contains(rec.Body.String(), `"`+code+`"`) {
		s.Fatalf("%s with %s: %d %s, want %d %s", key, model, rec.Code, rec.Body, status, code)
	}
	return rec
}

// balance returns what an account has spent and reserved, in tenths of cents.
func (s *budgetServer) balance(kind, name, period string) (spent, reserved int64) {
	s.Helper()
	b, err := s.app.store.(store.Ledger).Balances(s.Context(), []store.Account{{Kind: kind, Name: name, Period: period}})
	if err != nil {
		s.Fatal(err)
	}
	return b[0].SpentNanos / 1_000_000, b[0].ReservedNanos / 1_000_000
}

func (s *budgetServer) wantSpent(kind, name, period string, want int64) {
	s.Helper()
	if spent, reserved := s.balance(kind, name, period); spent != want || reserved != 0 {
		s.Errorf("%s %s in %s: %d spent and %d reserved, want %d and none", kind, name, period, spent, reserved, want)
	}
}

// A key that has used its budget is refused on every wire, in the wire's own form, and told when to come again; what it used
// is what its calls cost, and not what they could have cost.
func TestBudgetIsExhaustedOnEveryWire(t *testing.T) {
	t.Parallel()
	s := serveBudgets(t, "budget: {day: {cost: 0.125}}", "none", "")
	for range 3 {
		s.want("app", "paid", 200, "")
	}
	s.wantSpent(store.AccountKey, "app", "2026-11-29", 30)
	asked := s.model.calls.Load()
	for _, tt := range []struct{ name, path, body, want string }{
		{"chat completions", "/v1/chat/completions", `{"model":"paid","max_tokens":100,"messages":[{"role":"user","content":"hi"}]}`, `"code":"budget_exhausted"`},
		{"a stream of them", "/v1/chat/completions", `{"model":"paid","max_tokens":100,"stream":true,"messages":[{"role":"user","content":"hi"}]}`, `"type":"insufficient_quota"`},
		{"Responses", "/v1/responses", `{"model":"paid","max_output_tokens":100,"input":"hi"}`, `"code":"budget_exhausted"`},
		{"Messages", "/v1/messages", `{"model":"paid","max_tokens":100,"messages":[{"role":"user","content":"hi"}]}`, `"type":"rate_limit_error"`},
		{"a stream of them", "/v1/messages", `{"model":"paid","max_tokens":100,"stream":true,"messages":[{"role":"user","content":"hi"}]}`, `"type":"rate_limit_error"`},
		{"Gemini", "/v1beta/models/paid:generateContent", `{"generationConfig":{"maxOutputTokens":100},"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`, `"status":"RESOURCE_EXHAUSTED"`},
	} {
		rec := s.do("app", http.MethodPost, tt.path, tt.body)
		if rec.Code != http.StatusTooManyRequests || !strings.Contains(rec.Body.String(), tt.want) {
			t.Errorf("%s: %d %s, want 429 with %s", tt.name, rec.Code, rec.Body, tt.want)
		}
		if retry, again := rec.Header().Get("X-Should-Retry"), rec.Header().Get("Retry-After"); retry != "false" || again != "3600" {
			t.Errorf("%s: X-Should-Retry %q, Retry-After %q, want false and 3600", tt.name, retry, again)
		}
		for _, part := range []string{"the key app for 2026-11-29 (UTC)", "of 0.125 US dollars, 0.03 are spent and 0 are reserved", "could cost up to 0.1", "2026-11-30T00:00:00Z"} {
			if !strings.Contains(rec.Body.String(), part) {
				t.Errorf("%s: no %q in %s", tt.name, part, rec.Body)
			}
		}
	}
	rec := s.do("app", http.MethodPost, "/api/chat", `{"id":"c","model":"paid","messages":[{"id":"1","role":"user","parts":[{"type":"text","text":"hi"}]}]}`)
	if rec.Code != 200 && rec.Code != 429 || !strings.Contains(rec.Body.String(), "budget_exhausted") {
		t.Errorf("/api/chat: %d %s", rec.Code, rec.Body)
	}
	rec = s.do("app", http.MethodPost, "/api/runs", `{"model":"paid","messages":[{"role":"user","content":"hi"}]}`)
	var run struct {
		ID string `json:"run_id"`
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &run); err != nil || run.ID == "" {
		t.Fatalf("/api/runs: %d %s", rec.Code, rec.Body)
	}
	if rec = s.do("app", http.MethodGet, "/api/runs/"+run.ID+"/events?follow=true", ""); !strings.Contains(rec.Body.String(), `"reason":"budget_exhausted"`) {
		t.Errorf("the events of the run: %s", rec.Body)
	}
	if got := s.model.calls.Load(); got != asked {
		t.Errorf("the model was called %d times by calls that were refused", got-asked)
	}
	s.wantSpent(store.AccountKey, "app", "2026-11-29", 30)
}

func TestBudgetsBeginAgain(t *testing.T) {
	t.Parallel()
	s := serveBudgets(t, "budget: {day: {cost: 0.1}, month: {cost: 0.119}}", "none", "")
	s.want("app", "paid", 200, "")
	s.want("app", "paid", 429, "budget_exhausted")
	s.set(time.Date(2026, 11, 29, 23, 59, 59, 999999999, time.UTC))
	s.want("app", "paid", 429, "budget_exhausted")
	s.set(time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC))
	s.want("app", "paid", 200, "")
	s.wantSpent(store.AccountKey, "app", "2026-11", 20)
	s.set(time.Date(2026, 11, 30, 23, 59, 59, 0, time.UTC))
	if rec := s.want("app", "paid", 429, "budget_exhausted"); rec.Header().Get("Retry-After") != "1" {
		t.Errorf("again after %s s", rec.Header().Get("Retry-After"))
	}
	s.set(time.Date(2026, 12, 1, 0, 0, 0, 0, time.FixedZone("CET", 3600))) // still November in UTC
	s.want("app", "paid", 429, "budget_exhausted")
	s.set(time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC))
	s.want("app", "paid", 200, "")
	s.wantSpent(store.AccountKey, "app", "2026-12", 10)
	s.wantSpent(store.AccountGroup, "team", "2026-11", 20)
}

func TestBudgetsOfTwoKeysAndTheirGroup(t *testing.T) {
	t.Parallel()
	s := serveBudgets(t, "budget: {day: {tokens: 6000}}", "0.125", "")
	s.want("app", "paid", 200, "")
	s.want("other", "paid", 200, "")
	s.want("boss", "paid", 200, "")
	s.want("boss", "unknown", 200, "")
	s.want("app", "paid", 200, "")
	s.want("other", "paid", 429, "budget_exhausted") // 0.03 of the group's budget are spent, and 0.1 do not fit
	s.want("boss", "paid", 200, "")
	s.wantSpent(store.AccountGroup, "team", "2026-11", 30)

	var report struct {
		Total   map[string]float64 `json:"total"`
		Data    []map[string]any   `json:"data"`
		Budgets []map[string]any   `json:"budgets"`
	}
	read := func(key string) string {
		t.Helper()
		rec := s.do(key, http.MethodGet, "/api/usage?since=2026-11-01", "")
		report.Total, report.Data, report.Budgets = nil, nil, nil
		if err := json.Unmarshal(rec.Body.Bytes(), &report); err != nil || rec.Code != 200 {
			t.Fatalf("usage of %s: %d %s", key, rec.Code, rec.Body)
		}
		var b strings.Builder
		for _, d := range report.Data {
			fmt.Fprintf(&b, "%v %v %v %v %v %v; ", d["key"], d["group"], d["model"], d["calls"], d["tokens"], d["cost"])
		}
		for _, d := range report.Budgets {
			fmt.Fprintf(&b, "%v %v %v %v %v; ", d["kind"], d["name"], d["period"], d["spent_tokens"], d["spent_cost"])
		}
		return b.String()
	}
	for key, want := range map[string]string{
		"app":   "app team paid 2 34 0.02; key app 2026-11-29 34 0.02; group team 2026-11 51 0.03; ",
		"other": "other team paid 1 17 0.01; group team 2026-11 51 0.03; ",
		"boss": "app team paid 2 34 0.02; boss <nil> paid 2 34 0.02; boss <nil> unknown 1 17 0; other team paid 1 17 0.01; " +
			"key app 2026-11-29 34 0.02; group team 2026-11 51 0.03; ",
	} {
		if got := read(key); got != want {
			t.Errorf("%s sees %s\nwant %s", key, got, want)
		}
	}
	if read("boss"); report.Total["cost"] != 0.05 || report.Total["calls"] != 6 || report.Total["unpriced_calls"] != 1 {
		t.Errorf("in all: %v", report.Total)
	}
	if got := s.do("other", http.MethodGet, "/api/keys", "").Body.String(); !strings.Contains(got, `"spent_cost":0.01`) || strings.Contains(got, `"app"`) {
		t.Errorf("its keys: %s", got)
	}
	for query, want := range map[string]string{
		"since=2026-11-29&until=2026-11-29":           `"total":{"calls":6,`, // the last day is included
		"since=2026-11-29&until=2026-11-29T05:00:00Z": `"total":{"calls":6,`,
		"since=2026-11-01&until=2026-11-28":           `"total":{"calls":0,`,
	} {
		if got := s.do("boss", http.MethodGet, "/api/usage?"+query, "").Body.String(); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	if rec := s.do("app", http.MethodGet, "/api/usage?key=other", ""); rec.Code != 400 {
		t.Errorf("a parameter that there is not: %d", rec.Code)
	}
}

func TestPricesThatBudgetsNeed(t *testing.T) {
	t.Parallel()
	s := serveBudgets(t, "budget: {day: {cost: 0}}", "none", "")
	if rec := s.want("app", "unknown", 403, "price_unknown"); rec.Header().Get("X-Should-Retry") != "false" {
		t.Error("clients try again")
	}
	s.want("app", "paid", 429, "budget_exhausted")
	s.want("app", "free", 200, "")
	s.want("other", "unknown", 200, "")
	tokens := serveBudgets(t, "budget: {day: {tokens: 3000}}", "none", "") // needs no price
	tokens.want("app", "unknown", 200, "")
}

// What a call used is charged if its server says it, all that was reserved if it does not, and nothing for an answer that vendors
// do not ask money for.
func TestWhatFailedCallsAreCharged(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		answer func(w http.ResponseWriter)
		want   int64
	}{
		{"refused", func(w http.ResponseWriter) { http.Error(w, `{"error":{"message":"no"}}`, http.StatusBadRequest) }, 0},
		{"failed", func(w http.ResponseWriter) { http.Error(w, "no", http.StatusInternalServerError) }, 0},
		{"without usage", func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, `data: {"id":"1","choices":[{"index":0,"delta":{"content":"hello"},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
		}, 100},
		{"broken off", func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, `data: {"id":"1","choices":[{"index":0,"delta":{"content":"hel"}}]}`+"\n\n")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, 100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := serveBudgets(t, "budget: {day: {cost: 1}}", "none", "")
			s.model.answer.Store(&tt.answer)
			s.ask("app", "paid")
			s.wantSpent(store.AccountKey, "app", "2026-11-29", tt.want)
		})
	}
}

// A request without a limit is sent with one under a budget, unless the longest answer of its model is known.
func TestBudgetsLimitAnswers(t *testing.T) {
	t.Parallel()
	s := serveBudgets(t, "budget: {day: {cost: 9}}", "none", "")
	bare := func(key string) string {
		t.Helper()
		if rec := s.do(key, http.MethodPost, "/v1/chat/completions", fmt.Sprintf(`{"model":"paid","messages":[{"role":"user","content":"%d"}]}`, s.serial.Add(1))); rec.Code != 200 {
			t.Fatalf("%d %s", rec.Code, rec.Body)
		}
		return *s.model.body.Load()
	}
	if got := bare("app"); !strings.Contains(got, `"max_tokens":8192`) {
		t.Errorf("sent %s", got)
	}
	if got := bare("boss"); strings.Contains(got, "max_tokens") {
		t.Errorf("without a budget, sent %s", got)
	}
	s.wantSpent(store.AccountKey, "app", "2026-11-29", 10)
}

// Calls at the same time never exceed a budget, and all that fit are made.
func TestBudgetsOfConcurrentCalls(t *testing.T) {
	t.Parallel()
	s := serveBudgets(t, "budget: {day: {cost: 0.55}}", "none", "")
	hold, checked := make(chan struct{}), make(chan struct{})
	arrived := make(chan struct{}, 64)
	usual := func(w http.ResponseWriter) {
		arrived <- struct{}{}
		<-hold
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"id":"1","choices":[{"index":0,"delta":{"content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":10}}`+"\n\ndata: [DONE]\n\n")
	}
	s.model.answer.Store(&usual)
	var all sync.WaitGroup
	var refused atomic.Int64
	for range 64 {
		all.Go(func() {
			rec := s.ask("app", "paid")
			switch {
			case rec.Code == 429 && strings.Contains(rec.Body.String(), "budget_exhausted"):
				if rec.Header().Get("Retry-After") != "5" || rec.Header().Get("X-Should-Retry") != "" {
					t.Errorf("calls in progress have the budget: %v", rec.Header())
				}
				if refused.Add(1) == 64-5 {
					<-checked
					close(hold)
				}
			case rec.Code != 200:
				t.Errorf("%d %s", rec.Code, rec.Body)
			}
		})
	}
	for range 5 { // 0.1 each
		<-arrived
	}
	if spent, reserved := s.balance(store.AccountKey, "app", "2026-11-29"); spent != 0 || reserved != 500 {
		t.Errorf("%d spent, %d reserved, want 500 reserved", spent, reserved)
	}
	close(checked)
	all.Wait()
	if got := refused.Load(); got != 64-5 || s.model.calls.Load() != 5 {
		t.Errorf("%d were refused and %d made, want 59 and 5", got, s.model.calls.Load())
	}
	s.wantSpent(store.AccountKey, "app", "2026-11-29", 50)
}

// An agent's calls count for the key whose run called the agent.
func TestAgentsUseTheBudgetOfTheirCaller(t *testing.T) {
	t.Parallel()
	s := serveBudgets(t, "budget: {day: {cost: 20}}", "none", "tools: {builtin: [], run: {helper: {description: helps, model: paid, effect: read_only}}}\n")
	var turn atomic.Int64
	answer := func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/event-stream")
		delta, reason := `{"content":"hello"}`, "stop"
		if turn.Add(1) == 1 {
			delta, reason = `{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"helper","arguments":"{\"task\":\"help\"}"}}]}`, "tool_calls"
		}
		fmt.Fprintf(w, `data: {"id":"1","choices":[{"index":0,"delta":%s,"finish_reason":%q}],"usage":{"prompt_tokens":7,"completion_tokens":10}}`+"\n\ndata: [DONE]\n\n", delta, reason)
	}
	s.model.answer.Store(&answer)
	s.want("app", "paid", 200, "")
	if got := turn.Load(); got != 3 {
		t.Fatalf("the model was called %d times, want 3: %s", got, *s.model.body.Load())
	}
	s.wantSpent(store.AccountKey, "app", "2026-11-29", 30)
}

// New budgets apply at once after a reload. A server without a store refuses them.
func TestReloadChangesBudgets(t *testing.T) {
	t.Parallel()
	s := serveBudgets(t, "concurrency: 0", "none", "")
	s.want("app", "paid", 200, "")
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) { // what no budget bounds is written after the answer
		if spent, _ := s.balance(store.AccountKey, "app", "2026-11-29"); spent == 10 {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("%d spent, want 10", spent)
		}
	}
	cfg := *s.app.current.cfg
	key := *cfg.Keys["app"]
	key.Budget.Day.Cost = 109_999_999 // 0.01 is spent
	keys := cfg.Keys
	cfg.Keys = map[string]*config.APIKey{"app": &key, "other": keys["other"], "boss": keys["boss"]}
	if err := s.app.Reload(&cfg); err != nil {
		t.Fatal(err)
	}
	s.want("app", "paid", 429, "budget_exhausted") // what was used before the budget counts
	if _, err := New(&cfg, &Options{NoStore: true}); err == nil || !strings.Contains(err.Error(), "no store keeps what they use") {
		t.Errorf("without a store: %v", err)
	}
}
