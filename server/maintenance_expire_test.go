package server_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lathe-run/lathe/internal/testkit/storetest"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
)

// If no approver answers, the run resumes when the request has expired: in the process that asked, and in a later one.
func TestF12_ExpiredApprovalsOfAnyProcess(t *testing.T) {
	t.Parallel()
	t.Run("shared", func(t *testing.T) {
		t.Parallel()
		expiresAnywhere(t, store.NewMemory(nil))
	})
	t.Run("alone", func(t *testing.T) {
		t.Parallel()
		expiresAnywhere(t, alone{store.NewMemory(nil)})
	})
}

// An alone is a store that one process uses at a time.
type alone struct{ storetest.SignalIndex }

func expiresAnywhere(t *testing.T, kept store.RunIndex) {
	t.Helper()
	with := func(s *setting) {
		s.store = kept
		s.opts = func(o *server.Options) { o.Limits.Expiry, o.Limits.Claim = time.Millisecond, time.Millisecond }
	}
	first, second := open(t, with), &runFixture{}
	r := first.rest(first.begin("write {\"n\":1}").ID)
	left := first.rest(first.begin("write {\"n\":2}").ID)
	var tending sync.WaitGroup
	defer tending.Wait()
	defer first.gateway.Drain(t.Context())
	tending.Go(func() { first.gateway.Maintain(t.Context()) })
	if status, body := first.answer(left, "deny"); status != 200 && status != 202 { // the run may be looked at just then
		t.Fatalf("%d %s", status, body)
	}
	first.clock.add(time.Hour)
	events := first.watchUntil(r.ID, 0, never)
	if last := events[len(events)-1]; last.Type != "RunFinished" || !strings.Contains(last.Content.Answer, "approval_expired") {
		t.Errorf("%s", last.Line)
	}

	third := open(t, with) // which asks, and does not tend
	r = third.rest(third.begin("write {\"n\":3}").ID)
	second.fixture = serve(t, second.setting(with))
	second.clock.add(time.Hour)
	defer second.gateway.Drain(t.Context())
	tending.Go(func() { second.gateway.Maintain(t.Context()) })
	events = second.watchUntil(r.ID, 0, never)
	if last := events[len(events)-1]; last.Type != "RunFinished" || !strings.Contains(last.Content.Answer, "approval_expired") {
		t.Errorf("%s", last.Line)
	}
	if n := first.log.wrote.Load() + second.log.wrote.Load() + third.log.wrote.Load(); n != 0 {
		t.Errorf("the tool wrote %d times", n)
	}
}
