package gateway_test

import (
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/gateway"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
)

// A run of which the store has removed content is not continued, and neither is its answer sent: the client would get
// less than the run had.
func TestRetryRefusesCompactedRun(t *testing.T) {
	t.Parallel()
	for _, mode := range []loop.RetentionMode{loop.MetricsOnly, loop.HashedSlice} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			m, o := &mailer{text: "A moment."}, &postOffice{}
			m.fail.Store(1)
			kept := store.NewMemory(nil)
			r := serveRetries(t, m, o, kept, nil)
			x := r.post(t.Context(), mailBody(false, ""), nil)
			id := x.header.Get("X-Lathe-Run-Id")
			keep := &loop.Retention{Mode: mode, MaxOutputBytes: 4}
			if err := kept.Compact(t.Context(), id, keep.CompactEvent); err != nil {
				t.Fatal(err)
			}
			r.wantGone(r.post(t.Context(), mailBody(false, ""), nil))
			r.wantGone(r.post(t.Context(), mailBody(true, ""), nil))
			r.wantMails(1)
			r.wantAnswer(r.post(t.Context(), mailBody(false, ""), nil, "X-Lathe-New-Run", "true"), mailed)
			r.wantMails(2)
		})
	}
}

// A run that was removed from the store is not continued, and its calls are not executed again.
func TestRetryRefusesRemovedRun(t *testing.T) {
	t.Parallel()
	m, o := &mailer{}, &postOffice{}
	m.fail.Store(1)
	kept := store.NewMemory(nil)
	r := serveRetries(t, m, o, kept, nil)
	r.post(t.Context(), mailBody(false, ""), nil)
	if err := kept.Trim(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	r.wantGone(r.post(t.Context(), mailBody(false, ""), nil))
	r.wantMails(1)
	r.wantAnswer(r.post(t.Context(), mailBody(false, ""), nil, "X-Lathe-New-Run", "true"), mailed)
	r.wantMails(2)
}

// Without a store that keeps runs, a record outlives what was kept of its run: the calls are not executed again.
func TestRetryRefusesForgottenRun(t *testing.T) {
	t.Parallel()
	m, o := &mailer{}, &postOffice{}
	m.fail.Store(1)
	r := serveRetries(t, m, o, nil, func(s *setting) {
		s.nothing = true
		s.opts = func(opts *gateway.Options) { opts.Index, opts.Crew, opts.Limits.MaxKeptBytes = nil, nil, 1 }
	})
	r.post(t.Context(), mailBody(false, ""), nil)
	r.wantGone(r.post(t.Context(), mailBody(false, ""), nil))
	r.wantMails(1)
}

// wantGone fails unless a repetition was refused in a way that client libraries do not repeat.
func (r *retries) wantGone(x *exchange) { r.t.Helper(); r.wantRefused(x, "retry_run_gone") }

func (r *retries) wantRefused(x *exchange, code lathe.Code) {
	r.t.Helper()
	if x.err != nil || x.status != 400 || x.code != string(code) || x.header.Get("X-Should-Retry") != "false" {
		r.t.Errorf("got %d, code %q, X-Should-Retry %q, %v, want 400 %s", x.status, x.code, x.header.Get("X-Should-Retry"), x.err, code)
	}
}
