package observe

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lathe-run/lathe/event"
)

// emitSpans makes n spans.
func emitSpans(tr *Traces, n int) {
	for i := range n {
		tr.Emit(context.Background(), event.Event{RunID: "run_1", Time: time.Unix(int64(i), 0), Data: &event.RunStarted{}})
		tr.Emit(context.Background(), event.Event{RunID: "run_1", Time: time.Unix(int64(i)+1, 0), Data: &event.RunFinished{Reason: "answered"}})
	}
}

// Each span that no collector receives is counted: those beyond the queue, and those refused.
func TestLostSpansAreCounted(t *testing.T) {
	t.Parallel()
	var lost atomic.Int64
	received, release := make(chan struct{}, 1), make(chan struct{})
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case received <- struct{}{}:
		default: // a later batch
		}
		<-release
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer collector.Close()
	tr := newTraces(t, &TracesOptions{Endpoint: collector.URL, Queue: 600, Lost: func(n int) { lost.Add(int64(n)) }})
	emitSpans(tr, 512) // a whole batch, which is sent at once
	<-received
	emitSpans(tr, 100)
	if n := lost.Load(); n != 12 {
		t.Errorf("%d spans are lost while 600 wait, want 12", n)
	}
	close(release)
	if err := tr.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := lost.Load(); n != 612 {
		t.Errorf("%d spans are lost, want the 12 and the 600 that were refused", n)
	}
}

// Spans that wait when the time to close is over are lost, and counted once.
func TestSpansThatWaitAtTheEndAreLost(t *testing.T) {
	t.Parallel()
	var lost atomic.Int64
	release := make(chan struct{})
	answered := make(chan struct{})
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-release
		w.WriteHeader(http.StatusServiceUnavailable)
		close(answered)
	}))
	defer collector.Close()
	tr := newTraces(t, &TracesOptions{Endpoint: collector.URL, Lost: func(n int) { lost.Add(int64(n)) }})
	emitSpans(tr, 7)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := tr.Close(over); !errors.Is(err, context.Canceled) {
		t.Errorf("closing: %v", err)
	}
	if n := lost.Load(); n != 7 {
		t.Errorf("%d spans are lost, want 7", n)
	}
	close(release)
	<-answered
	if n := lost.Load(); n != 7 {
		t.Errorf("%d spans are lost after the late answer, want 7", n)
	}
}

type brokenHandler struct{ slog.Handler }

func (brokenHandler) Enabled(context.Context, slog.Level) bool { return true }

func (brokenHandler) Handle(_ context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn {
		return nil
	}
	return errors.New("no space left on the device")
}
func (h brokenHandler) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h brokenHandler) WithGroup(string) slog.Handler      { return h }

// Each line that the log cannot write is counted, also of loggers that were made of it.
func TestLostLinesAreCounted(t *testing.T) {
	t.Parallel()
	lost := 0
	log := slog.New(CountLostLines(brokenHandler{}, func(n int) { lost += n }))
	log.Info("written")
	log.Warn("lost")
	log.With("a", 1).Warn("lost")
	log.WithGroup("g").With("a", 1).Error("lost")
	NewSlog(log).Emit(t.Context(), event.Event{RunID: "run_1", Data: &event.RunFinished{Status: "failed"}})
	if lost != 4 {
		t.Errorf("%d lines are lost, want 4", lost)
	}
}
