package gateway_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/gateway"
	"github.com/lathe-run/lathe/store"
)

// The client can ask for a run of its own, and the operator can turn the recognition off: then a repetition executes
// the calls again.
func TestRetryBeginsAnewWhenAsked(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		window time.Duration
		header []string
	}{
		"header": {header: []string{"X-Lathe-New-Run", "true"}},
		"off":    {window: -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, o := &mailer{}, &postOffice{}
			m.fail.Store(1)
			r := serveRetries(t, m, o, nil, func(s *setting) {
				s.opts = func(opts *gateway.Options) { opts.Limits.RetryWindow = tt.window }
			})
			r.post(t.Context(), mailBody(false, ""), nil)
			y := r.post(t.Context(), mailBody(false, ""), nil, tt.header...)
			r.wantAnswer(y, mailed)
			r.wantMails(2)
			if y.report == nil || y.report.Continues != "" {
				t.Errorf("the report is %+v", y.report)
			}
		})
	}
}

// A repetition after the window is a request of its own; one within it is not.
func TestRetryEndsWithWindow(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		after time.Duration
		mails int64
	}{"within": {9 * time.Minute, 1}, "after": {11 * time.Minute, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, o := &mailer{}, &postOffice{}
			m.fail.Store(1)
			var shift atomic.Int64
			r := serveRetries(t, m, o, nil, func(s *setting) {
				s.now = func() time.Time { return time.Now().Add(time.Duration(shift.Load())) }
			})
			r.post(t.Context(), mailBody(false, ""), nil)
			shift.Store(int64(tt.after))
			r.wantAnswer(r.post(t.Context(), mailBody(false, ""), nil), mailed)
			r.wantMails(tt.mails)
		})
	}
}

// A request that fails each time is continued a bounded number of times, and never sends a second mail.
func TestRetryRefusesTooManyRepetitions(t *testing.T) {
	t.Parallel()
	m, o := &mailer{}, &postOffice{}
	m.fail.Store(1000)
	r := serveRetries(t, m, o, nil, nil)
	var x *exchange
	for range 110 {
		if x = r.post(t.Context(), mailBody(false, ""), nil); x.status == http.StatusBadRequest {
			break
		}
	}
	r.wantRefused(x, "retry_limit")
	r.wantMails(1)
}

// An unsteady store cannot be asked for records while it is away, and refuses events while it is full.
type unsteady struct {
	lathe.RunIndex
	lathe.FactStore
	lathe.RequestStore
	away, full atomic.Bool
}

var errAway = &lathe.Error{Code: lathe.CodeUnavailable, Op: "test", Err: errors.New("the store is away")}

func (u *unsteady) FindRequest(ctx context.Context, d lathe.RequestDigest) (lathe.RequestRecord, error) {
	if u.away.Load() {
		return lathe.RequestRecord{}, errAway
	}
	return u.RequestStore.FindRequest(ctx, d)
}

func (u *unsteady) Append(ctx context.Context, runID string, last int64, events ...lathe.Event) (int64, error) {
	if u.full.Load() {
		return 0, errAway
	}
	return u.RunIndex.Append(ctx, runID, last, events...)
}

// While the store cannot say whether a request is a repetition, no call that may write is executed; afterwards the
// repetition is recognised again.
func TestRetryNeedsStoreForWrites(t *testing.T) {
	t.Parallel()
	m, o := &mailer{}, &postOffice{}
	m.fail.Store(1)
	kept := store.NewMemory(nil)
	u := &unsteady{RunIndex: kept, FactStore: kept, RequestStore: kept}
	r := serveRetries(t, m, o, u, nil)
	r.post(t.Context(), mailBody(false, ""), nil)
	u.away.Store(true)
	if x := r.post(t.Context(), mailBody(false, ""), nil); x.err != nil || x.status < 400 {
		t.Errorf("the repetition is answered %+v", x)
	}
	r.wantMails(1)
	u.away.Store(false)
	r.wantAnswer(r.post(t.Context(), mailBody(false, ""), nil), mailed)
	r.wantMails(1)
}

// A request whose record was stored and whose run was not is withdrawn: its repetition is no retry.
func TestRetryForgetsRunThatWasNotStored(t *testing.T) {
	t.Parallel()
	m, o := &mailer{}, &postOffice{}
	kept := store.NewMemory(nil)
	u := &unsteady{RunIndex: kept, FactStore: kept, RequestStore: kept}
	r := serveRetries(t, m, o, u, nil)
	u.full.Store(true)
	if x := r.post(t.Context(), mailBody(false, ""), nil); x.err != nil || x.status < 400 {
		t.Errorf("the request is answered %+v", x)
	}
	r.wantMails(0)
	u.full.Store(false)
	r.wantAnswer(r.post(t.Context(), mailBody(false, ""), nil), mailed)
	r.wantMails(1)
}

// A client that leaves while it waits for the run of another client changes nothing for that client.
func TestRetryThatLeavesKeepsRun(t *testing.T) {
	t.Parallel()
	m, o := &mailer{hold: make(chan struct{}), asked: make(chan struct{}, 1)}, &postOffice{}
	kept := store.NewMemory(nil)
	var found atomic.Int64
	var seen sync.Map
	r := serveRetries(t, m, o, &finder{kept, kept, &found, &seen}, nil)
	first, second := make(chan *exchange, 1), make(chan *exchange, 1)
	go func() { first <- r.post(t.Context(), mailBody(true, ""), nil) }()
	<-m.asked
	ctx, leave := context.WithCancel(t.Context())
	go func() { second <- r.post(ctx, mailBody(true, ""), nil) }()
	for found.Load() < 2 { // it waits, or is about to
		time.Sleep(time.Millisecond)
	}
	leave()
	<-second
	close(m.hold)
	r.wantAnswer(<-first, mailed)
	r.wantMails(1)
}

// Where the process dies between an effect and its result, the run that continues it tells the model that the call was
// interrupted, and does not repeat it.
func TestRetryAfterCrashInTool(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/runs.db"
	m, o := &mailer{}, &postOffice{slow: make(chan struct{}), began: make(chan struct{}, 1)}
	file := openSQLite(t, path)
	kept := newMortal(file)
	r := serveRetries(t, m, o, kept, nil)
	go func() {
		<-o.began
		kept.dead.Store(true)
		close(o.slow)
	}()
	if x := r.post(t.Context(), mailBody(false, ""), nil); x.err == nil && x.status == http.StatusOK {
		t.Fatalf("the first request did not fail: %+v", x)
	}
	r.wantMails(1)
	r.stop()
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	again := serveRetries(t, m, o, openSQLite(t, path), nil)
	again.wantAnswer(again.post(t.Context(), mailBody(false, ""), nil), `it is not known whether it took effect. Check before you repeat it."}}`)
	again.wantMails(1)
}
