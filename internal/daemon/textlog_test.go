package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// textLine returns the line of a record as slog.TextHandler writes it.
func textLine(tb testing.TB, r slog.Record) string {
	tb.Helper()
	var b bytes.Buffer
	if err := slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug}).Handle(tb.Context(), r); err != nil {
		tb.Fatal(err)
	}
	return b.String()
}

func TestTextLinesAreThoseOfTheStandardLibrary(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	h := newTextHandler(&b, slog.LevelDebug)
	text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[ -~]{0,20}`), rapid.SampledFrom([]string{"", "run started", "a=b", `c"d`, `e\f`, "\x7f", "é", "\u00a0", "\ufffd", "\xff", "a\nb", "🙂"}))
	place := time.FixedZone("", 5*3600+1800)
	rapid.Check(t, func(rt *rapid.T) {
		at := time.Unix(rapid.Int64Range(-63e9, 300e9).Draw(rt, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(rt, "nanos"))
		switch rapid.IntRange(0, 3).Draw(rt, "zone") {
		case 0:
			at = at.UTC()
		case 1:
			at = at.In(place)
		case 2:
			at = time.Time{}
		}
		r := slog.NewRecord(at, rapid.SampledFrom([]slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError, 1, -9}).Draw(rt, "level"), text.Draw(rt, "message"), 0)
		for range rapid.IntRange(0, 9).Draw(rt, "attributes") {
			key := text.Draw(rt, "key")
			r.AddAttrs(rapid.SampledFrom([]slog.Attr{slog.String(key, text.Draw(rt, "value")), slog.Int64(key, math.MinInt64), slog.Int(key, 7), slog.Uint64(key, math.MaxUint64), slog.Bool(key, true),
				slog.Any(key, errors.New(text.Draw(rt, "error"))), slog.Duration(key, time.Second), slog.Float64(key, 0.5), slog.Time(key, at), slog.Group(key, slog.Int("a", 1)), {}}).Draw(rt, "attribute"))
		}
		b.Reset()
		if err := h.Handle(t.Context(), r); err != nil {
			rt.Fatal(err)
		}
		if want := textLine(t, r); b.String() != want {
			rt.Fatalf("%q, want %q", b.String(), want)
		}
	})
}

// The attributes of a logger, its level and the error of its writer are as with slog.TextHandler.
func TestTextHandlerIsAsTheStandardLibrarys(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	log := slog.New(newTextHandler(&b, slog.LevelInfo))
	log.Debug("hidden")
	log.With("node", "n 1").WithGroup("g").Info("shown", "a", 1)
	log.Info("plain", "a", 1)
	if got := b.String(); strings.Contains(got, "hidden") || !strings.Contains(got, `msg=shown node="n 1" g.a=1`+"\n") || !strings.HasSuffix(got, " level=INFO msg=plain a=1\n") {
		t.Errorf("%q", got)
	}
	full := errors.New("the disk is full")
	failing := newTextHandler(writerFunc(func([]byte) (int, error) { return 0, full }), slog.LevelInfo)
	for _, r := range []slog.Record{slog.NewRecord(time.Unix(0, 0), slog.LevelInfo, "a", 0), slog.NewRecord(time.Time{}, slog.LevelInfo, "a", 0)} {
		if err := failing.Handle(t.Context(), r); !errors.Is(err, full) {
			t.Errorf("%v, want %v", err, full)
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// Lines of several goroutines are whole, whichever handler writes them, also where the writer is not for several goroutines.
func TestTextLinesOfSeveralGoroutinesAreWhole(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	log := slog.New(newTextHandler(&b, slog.LevelInfo))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for k := range 50 {
				if i%2 == 0 {
					log.Info("line", "of", fmt.Sprint(i, ".", k))
				} else {
					log.Info("line", "of", time.Duration(i*1000+k))
				}
			}
		})
	}
	all.Wait()
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(lines) != 400 {
		t.Fatalf("%d lines", len(lines))
	}
	for _, line := range lines {
		if !strings.HasPrefix(line, "time=") || strings.Count(line, "msg=line of=") != 1 {
			t.Errorf("%q", line)
		}
	}
}

func BenchmarkTextLine(b *testing.B) {
	r := slog.NewRecord(time.Unix(1_800_000_000, 123_456_789), slog.LevelInfo, "run finished", 0)
	r.AddAttrs(slog.String("run_id", "run_01KXYZ0123456789ABCDEFGHJK"), slog.String("request_id", "req_01KXYZ0123456789ABCDEFGHJK"), slog.Int("iteration", 1), slog.String("reason", "answered"),
		slog.String("status", "completed"), slog.Int("turns", 1), slog.Int("tool_calls", 0), slog.Int64("input_tokens", 100), slog.Int64("output_tokens", 50), slog.Int64("latency_ms", 12))
	for name, h := range map[string]slog.Handler{"here": newTextHandler(io.Discard, slog.LevelInfo), "slog": slog.NewTextHandler(io.Discard, nil)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := h.Handle(b.Context(), r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
