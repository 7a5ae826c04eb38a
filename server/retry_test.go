package server_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/testkit/pgtest"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/store/postgres"
	"github.com/lathe-run/lathe/store/sqlite"
)

// A place is where a request fails after its mail was sent, and how its client comes to send it again.
type place struct {
	name  string
	model func(*mailer)
	// leave, when set, has the client leave: it is called once the place is reached.
	leave  bool
	inTool bool // the client leaves while the tool runs, else while the model is asked
	more   string
	answer string // of the retry; "": mailed
}

var places = []place{
	{name: "before the first byte", model: func(m *mailer) { m.fail.Store(1) }},
	{name: "in the stream", model: func(m *mailer) { m.fail.Store(1); m.text = "A moment." }},
	{name: "after some text", model: func(m *mailer) { m.fail.Store(1); m.spoken = true }},
	{name: "the client leaves in the tool", leave: true, inTool: true, answer: `it is not known whether it took effect. Check before you repeat it."}}`},
	{name: "the client leaves in the model call", leave: true},
	{name: "the client leaves and the run goes on", leave: true, more: `,"lathe":{"detach":true}`},
}

// A site is which process gets the retry.
type site struct {
	name string
	// open returns the store of the first process, and next, which returns that of the process that gets the retry:
	// nil where it is the same process.
	open func(t *testing.T) (first store.RunIndex, next func() store.RunIndex)
}

var sites = []site{
	{"memory", func(*testing.T) (store.RunIndex, func() store.RunIndex) { return newMortal(store.NewMemory(nil)), nil }},
	{"none", func(*testing.T) (store.RunIndex, func() store.RunIndex) { return nil, nil }},
	{"restart", func(t *testing.T) (store.RunIndex, func() store.RunIndex) {
		path := filepath.Join(t.TempDir(), "runs.db")
		s := openSQLite(t, path)
		return s, func() store.RunIndex {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return openSQLite(t, path)
		}
	}},
	{"cluster", func(t *testing.T) (store.RunIndex, func() store.RunIndex) {
		url := pgtest.URL(t)
		return openPostgres(t, url), func() store.RunIndex { return openPostgres(t, url) }
	}},
}

func openSQLite(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func openPostgres(t *testing.T, url string) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// Wherever a request fails after its run has sent a mail, and whichever process gets the retry: the mail is sent once,
// and the retry gets the answer.
func TestRetrySendsOneMail(t *testing.T) {
	t.Parallel()
	for a, where := range sites {
		for b, place := range places {
			for i, stream := range []string{"stream", "whole", "stream then whole"} {
				if !testdata.All() && (a+b)%3 != i {
					continue // another of the three at each place
				}
				t.Run(strings.Join([]string{where.name, place.name, stream}, "/"), func(t *testing.T) {
					t.Parallel()
					if where.name == "none" && place.more != "" {
						t.Skip("no run goes on without its client here")
					}
					retryOnce(t, &where, &place, stream != "whole", stream == "stream")
				})
			}
		}
	}
}

func retryOnce(t *testing.T, where *site, place *place, first, second bool) {
	m, o := &mailer{}, &postOffice{}
	if place.model != nil {
		place.model(m)
	}
	if place.leave && place.inTool {
		o.slow, o.began = make(chan struct{}), make(chan struct{}, 1)
	} else if place.leave {
		m.hold, m.asked = make(chan struct{}), make(chan struct{}, 1)
	}
	kept, next := where.open(t)
	change := func(s *setting) {
		s.opts = func(opts *server.Options) {
			opts.Limits.Poll = 10 * time.Millisecond
			if where.name == "none" {
				opts.Index, opts.Supervisor = nil, nil
			}
		}
		s.nothing = where.name == "none"
	}
	r := serveRetries(t, m, o, kept, change)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	if place.leave {
		go func() {
			if place.inTool {
				<-o.began
			} else {
				<-m.asked
			}
			leave()
		}()
	}
	x := r.post(ctx, mailBody(first, place.more), nil)
	if x.err == nil && x.code == "" && x.status == http.StatusOK {
		t.Fatalf("the first request did not fail: %+v", x)
	}
	r.wantMails(1)
	if place.leave {
		r.idle() // before, the retry may attach to the run: see TestRetryAttaches
	}
	if m.hold != nil {
		close(m.hold)
	}
	if o.slow != nil {
		close(o.slow)
	}
	again := r
	if next != nil {
		r.stop()
		again = serveRetries(t, m, o, next(), change)
	}
	y := again.post(t.Context(), mailBody(second, place.more), nil)
	answer := place.answer
	if answer == "" {
		answer = mailed
	}
	again.wantAnswer(y, answer)
	again.wantMails(1)
	if m.text != "" && !strings.HasPrefix(y.text, m.text) {
		t.Errorf("the answer is %q and does not begin with what the run before said", y.text)
	}
	if place.more == "" && (y.report == nil || y.report.Continues == "" || y.report.RunID == y.report.Continues) {
		t.Errorf("the report is %+v", y.report)
	}

	// The answer was delivered: the same request on purpose is a request of its own.
	z := again.post(t.Context(), mailBody(second, place.more), nil)
	again.wantAnswer(z, mailed)
	again.wantMails(2)
	if z.report == nil || y.report == nil || z.report.Continues != "" || z.report.RunID == y.report.RunID {
		t.Errorf("the repetition on purpose: %+v after %+v", z.report, y.report)
	}
}

// With a repeat window the same request gets the answer that was delivered, in any form; X-Lathe-New-Run asks for a run.
func TestRepeatWindowRepeatsDeliveredAnswers(t *testing.T) {
	t.Parallel()
	for _, window := range []time.Duration{0, time.Hour} {
		o := &postOffice{}
		r := serveRetries(t, &mailer{text: "A moment. "}, o, newMortal(store.NewMemory(nil)), func(s *setting) {
			s.opts = func(opts *server.Options) { opts.Limits.RepeatWindow = window }
		})
		want := int64(1)
		for i, stream := range []bool{true, false, true} {
			if i > 0 && window == 0 {
				want++
			}
			x := r.post(t.Context(), mailBody(stream, ""), nil)
			r.wantAnswer(x, mailed)
			if !strings.HasPrefix(x.text, "A moment.") {
				t.Errorf("window %v: the answer is %q", window, x.text)
			}
			r.wantMails(want)
		}
		r.wantAnswer(r.post(t.Context(), mailBody(true, ""), nil, "X-Lathe-New-Run", "true"), mailed)
		r.wantMails(want + 1)
	}
}

// A client whose connection closes while the answer of a run that has ended is written has not received it: the same
// request gets that answer, without a repeat window and without a second mail.
func TestAnswerThatBreaksOffIsGivenAgain(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{true, false} {
		t.Run(fmt.Sprint("stream ", stream), func(t *testing.T) {
			t.Parallel()
			long := strings.Repeat("A long moment. ", 1<<16) // more than the buffers of a connection hold
			r := serveRetries(t, &mailer{text: long}, &postOffice{}, newMortal(store.NewMemory(nil)), func(s *setting) {
				s.narrow, s.opts = true, func(opts *server.Options) { opts.Limits.MaxBuffer = 1 << 30 }
			})
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/v1/chat/completions", strings.NewReader(mailBody(stream, "")))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := narrowClient(t).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			first := resp.Header.Get("X-Lathe-Run-Id")
			for r.status(first) != "completed" {
				time.Sleep(time.Millisecond)
			}
			leave()
			_ = resp.Body.Close()
			r.idle()
			x := r.post(t.Context(), mailBody(false, ""), nil)
			r.wantAnswer(x, mailed)
			if x.report == nil || x.report.RunID != first || x.report.Continues != "" || !strings.HasPrefix(x.text, long) {
				t.Errorf("the repetition was answered by %+v, want %s", x.report, first)
			}
			r.wantMails(1)
			r.wantAnswer(r.post(t.Context(), mailBody(false, ""), nil), mailed) // on purpose: the answer was delivered
			r.wantMails(2)
		})
	}
}

// narrowClient returns a client whose connections hold few bytes that it has not read.
func narrowClient(t *testing.T) *http.Client {
	transport := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return c, c.(*net.TCPConn).SetReadBuffer(4 << 10)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// A narrowListener accepts connections that hold few bytes that the client has not read.
type narrowListener struct{ net.Listener }

func (l narrowListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return c, c.(*net.TCPConn).SetWriteBuffer(4 << 10)
}

// status returns the status of a run of the store, "" if none exists.
func (r *retries) status(runID string) string {
	r.t.Helper()
	rows, _, err := r.index.Runs(r.t.Context(), &store.RunFilter{RunID: runID, Limit: 1})
	if err != nil || len(rows) == 0 {
		return ""
	}
	return rows[0].Status
}

// The order of members does not make another request, at any depth: Codex writes those of client_metadata in another order each
// time it sends a request again. Another value does.
func TestRetryWithMembersInAnotherOrder(t *testing.T) {
	t.Parallel()
	m, o := &mailer{}, &postOffice{}
	m.fail.Store(1)
	r := serveRetries(t, m, o, newMortal(store.NewMemory(nil)), nil)
	const input = `"input":[{"role":"user","content":"mail ann"}],"client_metadata":`
	if failed, text := r.respond(true, input+`{"turn":"1","window":{"a":1,"b":[{"c":1,"d":2}]}}`); failed == nil || failed.Status != "failed" {
		t.Fatal(text)
	}
	again, text := r.respond(true, input+`{ "window":{"b":[{"d":2,"c":1}],"a":1}, "turn":"1" }`)
	if again == nil || again.Status != "completed" || o.sent.Load() != 1 {
		t.Errorf("%d mails: %s", o.sent.Load(), text)
	}
	if other, text := r.respond(true, input+`{"turn":"2","window":{"a":1,"b":[{"c":1,"d":2}]}}`); other == nil || other.Status != "completed" || o.sent.Load() != 2 {
		t.Errorf("another request: %d mails: %s", o.sent.Load(), text)
	}
}
