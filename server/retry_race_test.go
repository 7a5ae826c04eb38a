package server_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/testkit/pgtest"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
)

// A finder counts the requests that were looked up in a store.
type finder struct {
	store.Shared
	store.RequestStore
	found *atomic.Int64
	seen  *sync.Map // contexts: each request has its own
}

func (f *finder) FindRequest(ctx context.Context, d store.RequestDigest) (store.RequestRecord, error) {
	r, err := f.RequestStore.FindRequest(ctx, d)
	if _, again := f.seen.LoadOrStore(ctx, true); !again {
		f.found.Add(1)
	}
	return r, err
}

// Many equal requests at once, on two processes, before a run of any has done anything: one run sends the mail, the others
// end before, and each request gets the answer.
func TestFirstRequestsAtOnceSendOneMail(t *testing.T) {
	t.Parallel()
	type kept = func(t *testing.T) (first, second store.RunIndex)
	for name, open := range map[string]kept{"memory": sharedMemory, "postgres": sharedPostgres, "none": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const requests = 64
			var here sync.WaitGroup
			here.Add(requests)
			var once atomic.Int64
			m, o := &mailer{}, &postOffice{}
			m.first = func() { // the runs are all there before one goes on
				if once.Add(1) <= requests {
					here.Done()
					here.Wait()
				}
			}
			change := func(s *setting) {
				s.opts = func(opts *server.Options) {
					opts.Limits.Poll = 10 * time.Millisecond
					if s.nothing {
						opts.Index, opts.Supervisor = nil, nil
					}
				}
				s.nothing = open == nil
			}
			var nodes []*retries
			if open == nil {
				one := serveRetries(t, m, o, nil, change)
				nodes = []*retries{one, one}
			} else {
				one, two := open(t)
				nodes = []*retries{serveRetries(t, m, o, one, change), serveRetries(t, m, o, two, change)}
			}
			got := make([]*exchange, requests)
			var all sync.WaitGroup
			for i := range requests {
				all.Go(func() { got[i] = nodes[i%2].post(t.Context(), mailBody(i%4 < 2, ""), nil) })
			}
			all.Wait()
			runs := map[string]bool{}
			for _, x := range got {
				nodes[0].wantAnswer(x, mailed)
				if x.report != nil {
					runs[x.report.RunID] = true
				}
			}
			if len(runs) != 1 {
				t.Errorf("the requests were answered by the runs %v, want one", runs)
			}
			nodes[0].wantMails(1)
			nodes[0].wantAnswer(nodes[1].post(t.Context(), mailBody(false, ""), nil), mailed) // on purpose
			nodes[0].wantMails(2)
		})
	}
}

func sharedMemory(*testing.T) (first, second store.RunIndex) {
	s := store.NewMemory(nil)
	return s, s
}

func sharedPostgres(t *testing.T) (first, second store.RunIndex) {
	url := pgtest.URL(t)
	return openPostgres(t, url), openPostgres(t, url)
}

// Many equal requests at once, on two processes, after a run that has sent a mail and failed: one of them continues
// that run, the others get its answer, and no further mail is sent.
func TestRetriesAtOnceSendOneMail(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) (first, second store.RunIndex){
		"memory": sharedMemory, "postgres": sharedPostgres,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const requests = 64
			m, o := &mailer{}, &postOffice{}
			m.fail.Store(1)
			change := func(s *setting) {
				s.opts = func(opts *server.Options) { opts.Limits.Poll = 10 * time.Millisecond }
			}
			one, two := open(t)
			var found atomic.Int64
			var seen sync.Map
			nodes := []*retries{serveRetries(t, m, o, &finder{one.(store.Shared), one.(store.RequestStore), &found, &seen}, change),
				serveRetries(t, m, o, &finder{two.(store.Shared), two.(store.RequestStore), &found, &seen}, change)}
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

// A lateRun is a store whose log of a run appears a while after the record of its request.
type lateRun struct {
	store.Shared
	store.RequestStore
	age   time.Duration // since the record
	hides atomic.Int64  // how often a read of the log does not find it
}

func (s *lateRun) FindRequest(ctx context.Context, d store.RequestDigest) (store.RequestRecord, error) {
	r, err := s.RequestStore.FindRequest(ctx, d)
	r.Age = s.age
	return r, err
}

func (s *lateRun) Read(ctx context.Context, runID string, after int64) iter.Seq2[event.Event, error] {
	if s.hides.Add(-1) >= 0 {
		return func(yield func(event.Event, error) bool) {
			yield(event.Event{}, &lathe.Error{Code: lathe.CodeNotFound, Op: "late run: read", Err: errors.New("there is no such run")})
		}
	}
	return s.Shared.Read(ctx, runID, after)
}

// A repetition waits for a run that another process has recorded and whose log is not there yet, as long as a busy database may take for it.
// It is refused if the run was removed.
func TestRepetitionWaitsForTheLogOfItsRun(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		age   time.Duration
		hides int64
		code  string
	}{{10 * time.Second, 3, ""}, {2 * time.Minute, 1 << 30, "retry_run_gone"}} {
		m, o := &mailer{}, &postOffice{}
		kept := store.NewMemory(nil)
		late := &lateRun{Shared: kept, RequestStore: kept, age: tc.age}
		first, second := serveRetries(t, m, o, kept, nil), serveRetries(t, m, o, late, nil)
		m.fail.Store(1)
		if x := first.post(t.Context(), mailBody(false, ""), nil); x.status == 200 {
			t.Fatalf("the first request did not fail: %+v", x)
		}
		first.idle()
		late.hides.Store(tc.hides)
		x := second.post(t.Context(), mailBody(false, ""), nil)
		if tc.code == "" {
			second.wantAnswer(x, mailed)
		} else if x.code != tc.code {
			t.Errorf("a record of %v: %d %q", tc.age, x.status, x.code)
		}
		second.wantMails(1)
	}
}

// A stream of which its client has got text cannot change to another run: it ends with an error, and sends no mail.
func TestFirstRequestsAtOnceAfterTextSendOneMail(t *testing.T) {
	t.Parallel()
	m, o := &mailer{text: "A moment."}, &postOffice{}
	r := serveRetries(t, m, o, store.NewMemory(nil), nil)
	var here, shown sync.WaitGroup
	here.Add(2)
	shown.Add(2)
	m.first = func() {
		here.Done()
		here.Wait()
	}
	m.said = func() { shown.Wait() } // both clients have the text
	got := make([]*exchange, 2)
	var all sync.WaitGroup
	for i := range got {
		all.Go(func() {
			var once sync.Once
			got[i] = r.post(t.Context(), mailBody(true, ""), func(line string) bool {
				if strings.Contains(line, "A moment.") {
					once.Do(shown.Done)
				}
				return true
			})
		})
	}
	all.Wait()
	codes := map[string]int{}
	for _, x := range got {
		codes[x.code]++
		if x.code == "" {
			r.wantAnswer(x, mailed)
		}
	}
	if codes[""] != 1 || codes["retry_run_active"] != 1 {
		t.Errorf("the streams ended with %v, want one answer and one retry_run_active", codes)
	}
	r.wantMails(1)
}
