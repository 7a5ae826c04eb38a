package server_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/observe"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
)

// lines are those of the stored events, which must be dense from after.
func lines(t testing.TB, after int64, events []*told) (out []string) {
	t.Helper()
	for _, e := range events {
		if e.Num == 0 {
			continue
		}
		if after++; e.Num != after {
			t.Fatalf("event %d follows event %d", e.Num, after-1)
		}
		out = append(out, e.Line)
	}
	return out
}

func never(*told) bool { return false }

// A watcher whose connection breaks off after each event, and who goes on from there at another
// server each time, gets the run as one gets it who is never cut off.
func TestF15_WatcherIsCutAtEveryEvent(t *testing.T) {
	t.Parallel()
	kept := store.NewMemory(nil)
	h := open(t, func(s *setting) { s.store = kept })
	other := open(t, func(s *setting) { // which hears nothing of the run
		s.store = kept
		s.opts = func(o *server.Options) { o.Limits.KeepAlive = 5 * time.Millisecond }
	})
	h.model.step = make(chan struct{})
	r := h.begin("look {\"n\":1}\nlook {\"n\":2}\n\nlook {\"n\":3}")
	var got []*told
	after, ended := int64(0), false
	for !ended {
		at := []*runFixture{h, other}[after%2]
		part := at.watchUntil(r.ID, after, func(e *told) bool { return e.Num > 0 })
		last := part[len(part)-1]
		got = append(got, last)
		after, ended = last.Num, last.Type == "RunFinished"
		if last.Type == "ModelCallStarted" {
			h.model.step <- struct{}{} // what follows happens with or without a watcher
		}
	}
	want := h.export(r.ID)
	if cut := lines(t, 0, got); !slices.Equal(cut, want) {
		t.Errorf("the watcher that was cut off has %d events, the log %d", len(cut), len(want))
	}
	for k := range len(want) { // of a run that is over, from each event on
		if rest := lines(t, int64(k), h.watchUntil(r.ID, int64(k), never)); !slices.Equal(rest, want[k:]) {
			t.Errorf("after event %d there are %d events, want %d", k, len(rest), len(want)-k)
		}
	}
}

// Watchers come at any time, and all get the same run. The texts of their deltas are those of the
// messages, from the first delta of the turn in which they come.
func TestF15_WatchersJoinWithoutGapOrDouble(t *testing.T) {
	t.Parallel()
	h := open(t, nil)
	h.model.step = make(chan struct{})
	h.model.size = 500
	turns := testdata.Cases(20)
	r := h.begin(strings.TrimSuffix(strings.Repeat("look {\"n\":1}\nlook {\"n\":2}\n\n", turns), "\n\n"))
	var watchers sync.WaitGroup
	got := make([][]*told, turns+1)
	for i := range turns + 1 {
		x := h.tail(r.ID, 0, "")
		var all []*told
		for i == 0 && (len(all) == 0 || all[len(all)-1].Type != "ModelCallStarted") { // the first watcher gets the first delta, too
			all = append(all, x.next())
		}
		watchers.Go(func() {
			defer x.close()
			for e := x.next(); e != nil; e = x.next() {
				all = append(all, e)
			}
			got[i] = all
		})
		h.model.step <- struct{}{}
	}
	watchers.Wait()
	want := h.export(r.ID)
	for i, all := range got {
		if have := lines(t, 0, all); !slices.Equal(have, want) {
			t.Errorf("watcher %d has %d events, the log %d", i, len(have), len(want))
		}
		checkDeltas(t, all, i == 0)
	}
}

// checkDeltas holds the deltas of a watcher against what came of them. whole: it was there for all turns.
func checkDeltas(t *testing.T, all []*told, whole bool) {
	t.Helper()
	var last, n int64
	text, deltas := "", 0
	for _, e := range all {
		if e.Num > 0 {
			last = e.Num
		}
		switch e.Type {
		case "ModelCallStarted":
			n, text = 0, ""
		case "TextDelta":
			deltas++
			if e.After != last || e.N <= n {
				t.Fatalf("delta %d after %d follows delta %d of event %d", e.N, e.After, n, last)
			}
			if e.N != n+1 {
				t.Fatalf("delta %d follows delta %d", e.N, n)
			}
			n, text = e.N, text+e.Content.Text
		case "ModelCallFinished":
			if (whole || text != "") && text != e.Content.Message.Parts[0].Text {
				t.Errorf("the deltas said %d bytes, the message %d", len(text), len(e.Content.Message.Parts[0].Text))
			}
		}
	}
	if whole && deltas == 0 {
		t.Error("there were no deltas")
	}
}

func TestWatchPositions(t *testing.T) {
	t.Parallel()
	h := open(t, nil)
	r := h.begin("write {\"n\":1}")
	parked := h.rest(r.ID)
	if parked.Reason != "awaiting_approval" {
		t.Fatalf("%+v", parked)
	}
	path := "/api/runs/" + r.ID + "/events"
	for _, header := range []string{"x", "-1", "1.5"} {
		h.refused("GET", path, "", 400, "invalid_request", "Last-Event-ID", header)
		h.refused("GET", path+"?after="+header, "", 400, "invalid_request")
	}
	if got := h.refused("GET", path+"?after=99", "", 409, "event_id_ahead"); got.Newest != parked.Last {
		t.Errorf("the newest event is %d, told is %d", parked.Last, got.Newest)
	}
	h.refused("GET", "/api/runs/run_none/events", "", 404, "run_not_found")
	if resp, body := h.do("GET", path+"?follow=false&after=1", ""); resp.StatusCode != 200 || strings.Count(body, "\ndata: ") != int(parked.Last)-1 || !strings.HasPrefix(body, "retry: 1000\n\n") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	if _, body := h.do("GET", path+"?follow=pause", ""); strings.Count(body, "\ndata: ") != int(parked.Last) {
		t.Errorf("up to the pause there are %s", body)
	}
	h.refused("GET", path+"?follow=perhaps", "", 400, "invalid_request")
	if status, body := h.answer(parked, "deny"); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	if _, body := h.do("GET", path+"?follow=pause", ""); !strings.Contains(body, "event: RunFinished") {
		t.Errorf("an earlier pause ended the stream: %s", body)
	}
	done := h.rest(r.ID)
	if resp, body := h.do("GET", path, "", "Last-Event-ID", fmt.Sprint(done.Last)); resp.StatusCode != http.StatusNoContent || body != "" {
		t.Errorf("a watcher that has everything gets %d %s", resp.StatusCode, body)
	}
	if resp, body := h.do("GET", path+"?after=3", "", "Last-Event-ID", fmt.Sprint(done.Last-1)); resp.StatusCode != 200 || strings.Count(body, "\ndata: ") != 1 {
		t.Errorf("the header does not go before the query: %s", body)
	}
}

// A run that waits keeps its watchers, who hear that they are not forgotten, and how it goes on.
func TestWatcherOutlastsAPause(t *testing.T) {
	t.Parallel()
	h := open(t, func(s *setting) { s.opts = func(o *server.Options) { o.Limits.KeepAlive = 5 * time.Millisecond } })
	r := h.begin("write {\"n\":1}")
	x := h.tail(r.ID, 0, "")
	defer x.close()
	var all []*told
	for e := x.next(); e != nil; e = x.next() {
		all = append(all, e)
		if e.Type == "RunPaused" {
			for x.pauses < 3 && x.sc.Scan() {
				if strings.HasPrefix(x.sc.Text(), ":") {
					x.pauses++
				}
			}
			if status, body := h.answer(h.show(r.ID), "approve"); status != 200 {
				t.Fatalf("%d %s", status, body)
			}
		}
	}
	if got := lines(t, 0, all); !slices.Equal(got, h.export(r.ID)) || all[len(all)-1].Type != "RunFinished" {
		t.Errorf("the watcher has %d events", len(got))
	}
	if h.log.wrote.Load() != 1 {
		t.Errorf("the tool wrote %d times", h.log.wrote.Load())
	}
}

// A watcher that hears nothing, because another process carries the run, still gets it from the store.
func TestF10_WatcherThatHearsNothing(t *testing.T) {
	t.Parallel()
	h := open(t, func(s *setting) {
		s.opts = func(o *server.Options) {
			o.Bus, o.Limits.KeepAlive = observe.NewBus(nil), 5*time.Millisecond
		}
	})
	h.model.step = make(chan struct{})
	r := h.begin("look {\"n\":1}")
	x := h.tail(r.ID, 0, "")
	defer x.close()
	var all []*told
	for e := x.next(); e != nil; e = x.next() {
		all = append(all, e)
		if e.Type == "ModelCallStarted" {
			h.model.step <- struct{}{}
		}
	}
	if got := lines(t, 0, all); !slices.Equal(got, h.export(r.ID)) {
		t.Errorf("the watcher has %d events", len(got))
	}
}

// A watcher for whom too much waits is not told from the queue but from the store.
func TestWatcherLagsBehind(t *testing.T) {
	t.Parallel()
	h := open(t, func(s *setting) { s.bus = &observe.BusOptions{Buffer: 1} })
	h.model.step = make(chan struct{})
	r := h.begin(strings.TrimSuffix(strings.Repeat("look {\"n\":1}\nlook {\"n\":2}\n\n", 20), "\n\n"))
	x := h.tail(r.ID, 0, "")
	defer x.close()
	go func() {
		for range 21 {
			h.model.step <- struct{}{}
		}
	}()
	var all []*told
	for e := x.next(); e != nil; e = x.next() {
		all = append(all, e)
	}
	if got := lines(t, 0, all); !slices.Equal(got, h.export(r.ID)) {
		t.Errorf("the watcher has %d events", len(got))
	}
}

// A watcher that reads nothing is disconnected, delays no other client, and can resume the stream later.
func TestT18_SlowWatcherIsCutAndGoesOn(t *testing.T) {
	t.Parallel()
	cut := make(chan string, 1)
	kept := store.NewMemory(nil)
	h := open(t, func(s *setting) {
		s.store = kept
		s.opts = func(o *server.Options) {
			o.Limits.WriteTimeout = 250 * time.Millisecond
			o.Log = slog.New(&onWatch{Handler: slog.DiscardHandler, ended: cut})
		}
	})
	h.model.size = 2 << 20 // more than the buffers of two sockets hold
	r := h.begin("look {\"n\":1}\n\nlook {\"n\":2}\n\nlook {\"n\":3}\n\nlook {\"n\":4}")
	_, _, _ = h.crew.Wait(t.Context(), r.ID)
	later := open(t, func(s *setting) { s.store = kept }) // it gives a reader that has no processor for a moment more time
	done := later.show(r.ID)
	if done.Status != "completed" {
		t.Fatalf("%+v", done)
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "GET /api/runs/"+r.ID+"/events HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if code := <-cut; code != "slow_reader" {
		t.Errorf("the watcher that does not read ended %q", code)
	}
	whole := later.watchUntil(r.ID, done.Last-2, never)
	if len(lines(t, done.Last-2, whole)) != 2 {
		t.Errorf("a later watcher got %d events", len(whole))
	}
}

// An onWatch tells with which code each watcher ended.
type onWatch struct {
	slog.Handler
	ended chan string
}

func (o *onWatch) Enabled(context.Context, slog.Level) bool { return true }

func (o *onWatch) Handle(_ context.Context, rec slog.Record) error {
	route, code := "", ""
	rec.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "route":
			route = a.Value.String()
		case "code":
			code = a.Value.String()
		}
		return true
	})
	if route == "GET /api/runs/{id}/events" {
		o.ended <- code
	}
	return nil
}

// A server that is about to stop sends watchers away; its runs are not touched by that.
func TestDrainEndsWatches(t *testing.T) {
	t.Parallel()
	h := open(t, nil)
	r := h.rest(h.begin("write {\"n\":1}").ID)
	x := h.tail(r.ID, 0, "")
	defer x.close()
	for e := x.next(); e.Type != "RunPaused"; e = x.next() { //nolint:revive // it reads up to there
	}
	h.gateway.Drain(t.Context())
	if e := x.next(); e == nil || e.Type != "server_draining" || e.ID != "" || e.Line != `{"type":"server_draining","reconnect_ms":1000}` {
		t.Errorf("%+v at the drain", e)
	}
	if e := x.next(); e != nil {
		t.Errorf("%s after the drain", e.Type)
	}
	h.refused("POST", "/api/runs", `{"model":"sim/any","prompt":"hi"}`, 503, "draining")
	if got := h.show(r.ID); got.Status != "parked" || got.Last != r.Last {
		t.Errorf("%+v", got)
	}
}
