package provider_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/provider"
)

// loads answers that it loads its model until a time, and is unreachable for the second second.
func loads(until time.Duration, then trip) trip {
	start := time.Now()
	return func(r *http.Request) (*http.Response, error) {
		switch since := time.Since(start); {
		case since >= until:
			return then(r)
		case since >= time.Second && since < 2*time.Second:
			return nil, syscall.ECONNREFUSED
		}
		accept(r)
		return &http.Response{StatusCode: 503, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(
			`{"error":{"message":"Loading model","type":"unavailable_error","code":503}}`))}, nil
	}
}

func TestLoadingServerIsWaitedFor(t *testing.T) {
	t.Parallel()
	answers := piped(func(w io.Writer) { _, _ = io.WriteString(w, hello()) })
	fails := trip(func(r *http.Request) (*http.Response, error) {
		accept(r)
		return &http.Response{StatusCode: 500, Header: http.Header{}, Body: http.NoBody}, nil
	})
	for _, c := range []struct {
		name     string
		until    time.Duration
		then     trip
		change   func(*provider.Options)
		within   [2]time.Duration
		kind     lathe.UpstreamKind
		attempts []int // that were reported as failed
	}{
		{"until it answers", 100 * time.Second, answers, func(o *provider.Options) { o.Retry.Attempts, o.Timeouts.Client = 1, 10*time.Second },
			[2]time.Duration{100 * time.Second, 105 * time.Second}, "", []int{1}},
		{"until loading_timeout", time.Hour, answers, nil, [2]time.Duration{2 * time.Minute, 2 * time.Minute}, lathe.UpstreamLoading, []int{1}},
		{"not, where it is turned off", time.Hour, answers, func(o *provider.Options) { o.Timeouts.Loading = -1 },
			[2]time.Duration{750 * time.Millisecond, time.Second}, lathe.UpstreamLoading, []int{1, 2}},
		{"and attempts count from its end on", 10 * time.Second, fails, nil, [2]time.Duration{10 * time.Second, 20 * time.Second}, lathe.Upstream5xx, []int{1, 2, 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				chat, start := open(t, loads(c.until, c.then), c.change), time.Now()
				a := ask(t, t.Context(), chat)
				if took := time.Since(start); took < c.within[0] || took > c.within[1] || a.kind() != c.kind {
					t.Errorf("after %v: %q, %v", took, a.text, a.err)
				}
				var told []int
				for _, r := range a.retries {
					told = append(told, r.Attempt)
				}
				if len(told) != len(c.attempts) {
					t.Fatalf("told %v, want %v", told, c.attempts)
				}
				var up *lathe.UpstreamError
				if !errors.As(a.retries[0].Err, &up) || up.Kind != lathe.UpstreamLoading || up.Detail != "Loading model" {
					t.Errorf("got %+v", up)
				}
			})
		})
	}
}

// A server that is not there at all is not taken for one that loads its model.
func TestRefusedConnectionIsNoLoading(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		chat, start := open(t, trip(func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNREFUSED }), nil), time.Now()
		a := ask(t, t.Context(), chat)
		if up := a.upstream(t); time.Since(start) > 5*time.Second || up.Detail != "connection refused" || !up.Connect {
			t.Errorf("after %v: %+v", time.Since(start), up)
		}
	})
}
