//go:build unix

package main

import (
	"context"
	"errors"
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

	"github.com/jackc/pgx/v5"

	"github.com/lathe-run/lathe/internal/testkit/pgtest"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/store/postgres"
)

const (
	budgetKeyText = "a-key-with-a-budget-0123456789"
	mostOfCall    = 100_000_000 // nano-dollars that are reserved for a call: 100 tokens at a tenth of a cent
	costOfCall    = 10_000_000  // what it costs: 10 tokens
	budgetOfKey   = 20 * mostOfCall
)

// A budgetTrial has two `lathe serve` on one database, and a model that holds each call until it is released.
type budgetTrial struct {
	*testing.T
	ctx     context.Context
	dir     string
	url     string
	month   string
	ledger  *postgres.Store
	arrived chan string // the text of a call that the model holds
	release atomic.Pointer[chan struct{}]
	serial  atomic.Int64
	clients sync.WaitGroup
}

// Two processes share the budget of a key under 64 concurrent runs, and one of them is killed: what is spent and reserved never exceeds
// the budget, what the killed process had reserved stays reserved and is charged when its lease ends, and the other process goes on.
func TestBudgetOfTwoProcessesOfWhichOneIsKilled(t *testing.T) {
	t.Parallel()
	for {
		x := newBudgetTrial(t)
		err := x.run()
		if err == nil {
			return
		}
		if x.month == time.Now().UTC().Format("2006-01") {
			t.Fatal(err)
		} // else the budget began again meanwhile
	}
}

func newBudgetTrial(t *testing.T) *budgetTrial {
	x := &budgetTrial{T: t, ctx: t.Context(), dir: t.TempDir(), url: pgtest.URL(t), month: time.Now().UTC().Format("2006-01"), arrived: make(chan string, 64)}
	x.hold()
	model := httptest.NewServer(http.HandlerFunc(x.answer))
	t.Cleanup(model.Close)
	t.Cleanup(x.clients.Wait)
	t.Cleanup(x.let)
	// The other gateways would resume the runs of the killed one, and call the model, if the test took longer than a lease.
	config := fmt.Sprintf("cluster: {lease: 10m}\nmodels: {paid: {base_url: '%s/v1', price: {input: 0, output: 1000}, max_attempts: 1}}\nkeys: {app: {key: '%s', tools: [], budget: {month: {cost: 2}}}}\n", model.URL, "${file:app.key}")
	for name, text := range map[string]string{"lathe.yaml": config, "app.key": budgetKeyText} {
		if err := os.WriteFile(filepath.Join(x.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return x
}

// answer is the model.
func (x *budgetTrial) answer(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	_, text, _ := strings.Cut(string(b), "call ")
	text, _, _ = strings.Cut(text, " end")
	held := *x.release.Load()
	select {
	case x.arrived <- text:
	case <-x.ctx.Done():
		return
	}
	select {
	case <-held:
	case <-r.Context().Done():
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, `data: {"id":"1","choices":[{"index":0,"delta":{"content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":10}}`+"\n\ndata: [DONE]\n\n")
}

// hold has the model hold the calls that arrive from now on. let releases them.
func (x *budgetTrial) hold() {
	c := make(chan struct{})
	x.release.Store(&c)
}

func (x *budgetTrial) let() {
	if c := x.release.Load(); c != nil {
		select {
		case <-*c:
		default:
			close(*c)
		}
	}
}

func (x *budgetTrial) serve() (p *proc, base string) {
	x.Helper()
	p = startProc(x.T, x.dir, "serve", "--addr", "127.0.0.1:0", "--store", x.url, "--log", "error")
	return p, strings.TrimSuffix(p.awaitLine(`http://\S+/v1`), "/v1")
}

// ask starts n calls at a process. Their outcomes are sent to answers: the status and the code, or 0 if the process ended.
func (x *budgetTrial) ask(base string, n int, answers chan<- string) {
	for range n {
		x.clients.Go(func() {
			body := fmt.Sprintf(`{"model":"paid","max_tokens":100,"messages":[{"role":"user","content":"call %d end"}]}`, x.serial.Add(1))
			r, err := http.NewRequestWithContext(x.ctx, http.MethodPost, base+"/v1/chat/completions", strings.NewReader(body))
			if err != nil {
				answers <- err.Error()
				return
			}
			r.Header.Set("Authorization", "Bearer "+budgetKeyText)
			r.Header.Set("Content-Type", "application/json")
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				answers <- "ended"
				return
			}
			defer resp.Body.Close()
			b, err := io.ReadAll(resp.Body)
			switch {
			case err != nil:
				answers <- "ended"
			case resp.StatusCode == 200:
				answers <- "answered"
			case resp.StatusCode == 429 && strings.Contains(string(b), `"budget_exhausted"`),
				resp.StatusCode == 503 && strings.Contains(string(b), `"overloaded"`): // the balance, which all wait for, was locked for too long
				answers <- "refused"
			default:
				answers <- fmt.Sprintf("%d %s", resp.StatusCode, b)
			}
		})
	}
}

// await waits until held calls have arrived at the model and the answers are those that are wanted.
func (x *budgetTrial) await(held int, answers <-chan string, want map[string]int) error {
	got, all := map[string]int{}, 0
	for _, n := range want {
		all += n
	}
	over := time.NewTimer(2 * time.Minute)
	defer over.Stop()
	for have := 0; have < held || all > 0; {
		select {
		case <-x.arrived:
			have++
		case a := <-answers:
			got[a]++
			all--
		case <-over.C:
			return fmt.Errorf("%d calls are held and the answers are %v, want %d and %v", have, got, held, want)
		}
	}
	for what, n := range want {
		if got[what] != n {
			return fmt.Errorf("the answers are %v, want %v", got, want)
		}
	}
	return nil
}

// balance returns what the key has spent and reserved.
func (x *budgetTrial) balance() (spent, reserved int64, err error) {
	b, err := x.ledger.Balances(x.ctx, []store.Account{{Kind: store.AccountKey, Name: "app", Period: x.month}})
	if err != nil {
		return 0, 0, err
	}
	return b[0].SpentNanos, b[0].ReservedNanos, nil
}

// want waits until the key has spent and reserved that much: a process books again what it could not book while the balance was locked.
func (x *budgetTrial) want(when string, spent, reserved int64) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(2 * time.Minute); ; <-tick.C {
		switch s, r, err := x.balance(); {
		case err != nil:
			return fmt.Errorf("%s: %w", when, err)
		case s == spent && r == reserved:
			return nil
		case time.Now().After(end):
			return fmt.Errorf("%s: %d are spent and %d reserved, want %d and %d", when, s, r, spent, reserved)
		}
	}
}

// watch reads the balance until it is stopped, and returns the most that was spent and reserved at a time.
func (x *budgetTrial) watch() (stop func() (most int64, err error)) {
	done, result := make(chan struct{}), make(chan struct{})
	var most int64
	var failed error
	go func() {
		defer close(result)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			spent, reserved, err := x.balance()
			if failed = err; err != nil {
				return
			}
			most = max(most, spent+reserved)
		}
	}()
	return func() (int64, error) {
		close(done)
		<-result
		return most, failed
	}
}

func (x *budgetTrial) run() (err error) {
	a, atA := x.serve()
	_, atB := x.serve()
	if x.ledger, err = postgres.Open(x.ctx, x.url, nil); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.ledger.Close()) }()
	stop := x.watch()
	defer func() {
		most, failed := stop()
		if err = errors.Join(err, failed); most > budgetOfKey {
			err = errors.Join(err, fmt.Errorf("%d were spent and reserved at a time, of %d", most, budgetOfKey))
		}
	}()

	// 64 at once at both: as many are admitted as fit, and the others are refused.
	answers := make(chan string, 64)
	x.ask(atA, 32, answers)
	x.ask(atB, 32, answers)
	if err := x.await(20, answers, map[string]int{"refused": 44}); err != nil {
		return err
	}
	if err := x.want("64 calls", 0, budgetOfKey); err != nil {
		return err
	}
	x.let()
	if err := x.await(0, answers, map[string]int{"answered": 20}); err != nil {
		return err
	}
	spent := int64(20 * costOfCall)
	if err := x.want("20 answers", spent, 0); err != nil {
		return err
	}

	// 9 are held for one process and 9 for the other, and 46 more are refused. One process is killed.
	x.hold()
	ofA, ofB := make(chan string, 64), make(chan string, 64)
	x.ask(atA, 9, ofA)
	if err := x.await(9, ofA, nil); err != nil {
		return err
	}
	x.ask(atB, 55, ofB)
	if err := x.await(9, ofB, map[string]int{"refused": 46}); err != nil {
		return err
	}
	a.kill()
	if err := x.await(0, ofA, map[string]int{"ended": 9}); err != nil {
		return err
	}
	if err := x.want("one process is killed", spent, 18*mostOfCall); err != nil {
		return err
	}
	x.ask(atB, 1, ofB)
	if err := x.await(0, ofB, map[string]int{"refused": 1}); err != nil {
		return fmt.Errorf("while the calls of the killed process count: %w", err)
	}
	x.let()
	if err := x.await(0, ofB, map[string]int{"answered": 9}); err != nil {
		return err
	}
	spent += 9 * costOfCall
	if err := x.want("the other process goes on", spent, 9*mostOfCall); err != nil {
		return err
	}

	// The leases end. A process charges what the killed one had reserved, and the rest of the budget is there for both.
	if err := x.expire(); err != nil {
		return err
	}
	_, atC := x.serve()
	spent += 9 * mostOfCall
	if err := x.want("the leases have ended", spent, 0); err != nil {
		return err
	}
	x.hold()
	fits := int((budgetOfKey - spent) / mostOfCall)
	x.ask(atB, 32, answers)
	x.ask(atC, 32, answers)
	if err := x.await(fits, answers, map[string]int{"refused": 64 - fits}); err != nil {
		return err
	}
	x.let()
	if err := x.await(0, answers, map[string]int{"answered": fits}); err != nil {
		return err
	}
	return x.want("at the end", spent+int64(fits)*costOfCall, 0)
}

// expire has the leases of all reservations end.
func (x *budgetTrial) expire() error {
	conn, err := pgx.Connect(x.ctx, x.url)
	if err != nil {
		return err
	}
	tag, err := conn.Exec(x.ctx, "UPDATE ledger_reservation SET expires = '2000-01-01' WHERE state = 'open'")
	if err == nil && tag.RowsAffected() != 9 {
		err = fmt.Errorf("%d reservations are open, want those of the 9 calls of the killed process", tag.RowsAffected())
	}
	return errors.Join(err, conn.Close(x.ctx))
}
