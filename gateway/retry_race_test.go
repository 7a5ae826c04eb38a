package gateway_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/gateway"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/store/postgres/pgtest"
)

// A finder counts the requests that were looked up in a store.
type finder struct {
	lathe.SharedStore
	lathe.RequestStore
	found *atomic.Int64
	seen  *sync.Map // contexts: each request has its own
}

func (f *finder) FindRequest(ctx context.Context, d lathe.RequestDigest) (lathe.RequestRecord, error) {
	r, err := f.RequestStore.FindRequest(ctx, d)
	if _, again := f.seen.LoadOrStore(ctx, true); !again {
		f.found.Add(1)
	}
	return r, err
}

// Many equal requests at once, on two processes, after a run that has sent a mail and failed: one of them continues
// that run, the others get its answer, and no further mail is sent.
func TestRetriesAtOnceSendOneMail(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) (first, second lathe.RunIndex){
		"memory": func(*testing.T) (first, second lathe.RunIndex) {
			s := store.NewMemory(nil)
			return s, s
		},
		"postgres": func(t *testing.T) (first, second lathe.RunIndex) {
			url := pgtest.URL(t)
			return openPostgres(t, url), openPostgres(t, url)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const requests = 64
			m, o := &mailer{}, &postOffice{}
			m.fail.Store(1)
			change := func(s *setting) {
				s.opts = func(opts *gateway.Options) { opts.Limits.Poll = 10 * time.Millisecond }
			}
			one, two := open(t)
			var found atomic.Int64
			var seen sync.Map
			nodes := []*retries{serveRetries(t, m, o, &finder{one.(lathe.SharedStore), one.(lathe.RequestStore), &found, &seen}, change),
				serveRetries(t, m, o, &finder{two.(lathe.SharedStore), two.(lathe.RequestStore), &found, &seen}, change)}
			if x := nodes[0].post(t.Context(), mailBody(false, ""), nil); x.status == 200 {
				t.Fatalf("the first request did not fail: %+v", x)
			}
			nodes[0].idle()
			m.hold, m.asked = make(chan struct{}), make(chan struct{}, 1)
			got := make([]*exchange, requests)
			var all sync.WaitGroup
			for i := range requests {
				all.Go(func() { got[i] = nodes[i%2].post(t.Context(), mailBody(i%4 < 2, ""), nil) })
			}
			<-m.asked
			for found.Load() < requests+1 { // the answer is not there before all have asked
				time.Sleep(time.Millisecond)
			}
			close(m.hold)
			all.Wait()
			runs := map[string]int{}
			for _, x := range got {
				nodes[0].wantAnswer(x, mailed)
				if x.report != nil {
					runs[fmt.Sprint(x.report.RunID, " continues ", x.report.Continues != "")]++
				}
			}
			if len(runs) != 1 {
				t.Errorf("the requests were answered by %v, want one run", runs)
			}
			nodes[0].wantMails(1)
		})
	}
}
