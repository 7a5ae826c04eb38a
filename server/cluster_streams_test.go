package server_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/testkit/pgtest"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/store/postgres"
)

// A dictated model says each word when it comes, and is done when there are no more.
type dictated struct{ words chan string }

func (*dictated) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (m *dictated) Generate(ctx context.Context, _ *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		var text strings.Builder
		for {
			select {
			case w, ok := <-m.words:
				if !ok {
					yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: &lathe.Finish{Reason: lathe.FinishStop, Message: lathe.Assistant(text.String())}}, nil)
					return
				}
				text.WriteString(w)
				if !yield(lathe.Delta{Kind: lathe.DeltaText, Text: w}, nil) {
					return
				}
			case <-ctx.Done():
				yield(lathe.Delta{}, &lathe.Error{Code: lathe.CodeCancelled, Op: "dictated", Err: ctx.Err()})
				return
			}
		}
	}
}

// Two gateways have one database. Who watches at one a run that the other carries sees its text as it comes, between
// the stored events where it belongs; when the carrier is gone in the middle of it, the watcher sees the run go on
// where it watches, and no event is missing or told twice.
func TestDeltasCrossTheDatabase(t *testing.T) {
	t.Parallel()
	direct := pgtest.URL(t)
	line := pgtest.NewProxy(t, direct) // the first gateway's
	keep := func(url string) *postgres.Store {
		s, err := postgres.Open(t.Context(), url, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	carrier, own := keep(line.URL), keep(direct)
	first, second := &runFixture{}, &runFixture{}
	dictate, again := &dictated{make(chan string)}, &dictated{make(chan string)}
	first.join(t, carrier, func(s *setting) { s.model = dictate })
	second.join(t, own, func(s *setting) { s.model = again })

	r := first.begin("say something")
	first.advertise(t, carrier, r.ID)
	x := second.tail(r.ID, 0, "")
	defer x.close()
	heard := make(chan *told, 1000) // more than the run has
	go func() {
		defer close(heard)
		for e := x.next(); e != nil; e = x.next() {
			heard <- e
		}
	}()
	last, n := int64(0), int64(0)
	stored := func(e *told) {
		t.Helper()
		if last++; e == nil || e.Num != last {
			t.Fatalf("%+v follows event %d", e, last-1)
		}
	}
	said := func(e *told) {
		t.Helper()
		if e == nil || e.Type != "TextDelta" || e.After != last || n > 0 && e.N != n+1 {
			t.Fatalf("%+v follows %d.%d", e, last, n)
		}
		n = e.N
	}
	for last < 2 {
		stored(<-heard)
	}
	var e *told
	for e == nil { // what is said before the second gateway listens is lost: it is in the next stored event
		dictate.words <- "and "
		select {
		case e = <-heard:
		case <-time.After(20 * time.Millisecond): // each further word is another try
		}
	}
	said(e)
	for _, word := range []string{"so ", "it ", "goes ", "on "} {
		dictate.words <- word
		for e.Content.Text != word { // before the first of them may come what was a try
			e = <-heard
			said(e)
		}
	}

	line.Down() // the carrier reaches neither the database nor its watchers, and its lease passes
	first.cut()
	expire(t, direct)
	for _, word := range []string{"once ", "more"} {
		again.words <- word
	}
	close(again.words)
	text, whole := "", ""
	for e := range heard {
		switch {
		case e.Num > 0:
			stored(e)
			if e.Type == "ModelCallFinished" {
				whole = e.Content.Message.Parts[0].Text
			}
		case e.After != last:
			t.Errorf("after event %d a delta of %d: %s", last, e.After, e.Line)
		default:
			text += e.Content.Text
		}
	}
	if whole != "once more" || !strings.HasPrefix(whole, text) {
		t.Errorf("told %q of %q", text, whole)
	}
	if done := second.show(r.ID); done.Status != "completed" || done.Last != last || done.Answer != whole {
		t.Errorf("%+v, told %d events", done, last)
	}
	line.Up() // it finds that the run is not its own
}

// expire has all leases of the database pass.
func expire(t *testing.T, url string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	for _, statement := range []string{"UPDATE run SET lease_until = now() WHERE lease_until < 'infinity'", "UPDATE lease SET until = now()"} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}

// listening tells when the first hint has come.
type listening struct {
	*store.Memory
	heard chan struct{}
	once  sync.Once
}

func (l *listening) Watch(ctx context.Context, fn func(string)) error {
	return l.Memory.Watch(ctx, func(id string) {
		l.once.Do(func() { close(l.heard) })
		fn(id)
	})
}

// A watcher of a run that another process owns gets its events as soon as the store notifies, before the next poll.
func TestHintsWakeWatchers(t *testing.T) {
	t.Parallel()
	kept := store.NewMemory(nil)
	first, second := &runFixture{}, &runFixture{}
	first.join(t, kept)
	ear := &listening{Memory: kept, heard: make(chan struct{})}
	second.join(t, ear, func(s *setting) {
		s.opts = func(o *server.Options) { o.Limits.Poll, o.Limits.KeepAlive = time.Hour, time.Hour }
	})
	for i, heard := 0, false; !heard; i++ { // until it listens
		id := fmt.Sprintf("run_%d", i)
		if _, err := kept.Append(t.Context(), id, 0, event.Event{ID: 1, RunID: id, Time: time.Now(), Data: &event.RunStarted{}}); err != nil {
			t.Fatal(err)
		}
		select {
		case <-ear.heard:
			heard = true
		case <-time.After(time.Millisecond):
		}
	}
	first.model.step = make(chan struct{})
	r := first.begin("look {\"n\":1}\n\nlook {\"n\":2}")
	x := second.tail(r.ID, 0, "")
	defer x.close()
	var seen int64
	for range 3 {
		for e := x.next(); ; e = x.next() {
			if e == nil || e.Num != seen+1 {
				t.Fatalf("%+v follows %d", e, seen)
			}
			if seen = e.Num; e.Type == "ModelCallStarted" {
				break
			}
		}
		first.model.step <- struct{}{}
	}
	for e := x.next(); e != nil; e = x.next() {
		seen = e.Num
	}
	if done := first.show(r.ID); done.Status != "completed" || done.Last != seen {
		t.Errorf("%+v, told %d", done, seen)
	}
}
