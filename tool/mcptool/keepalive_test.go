package mcptool

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

func TestKeepAlive(t *testing.T) {
	t.Parallel()
	hangs := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	answers := func(context.Context) error { return nil }
	refuses := func(context.Context) error { return &jsonrpc.Error{Code: rpcMethodNotFound} }
	breaks := func(context.Context) error { return errors.New("broken") }
	type ping = func(context.Context) error
	for _, tc := range []struct {
		name   string
		pings  []ping // the last one again and again
		busy   func(n int) bool
		silent bool
	}{
		{"answers", []ping{answers}, nil, false},
		{"answers that it knows no ping", []ping{refuses}, nil, false},
		{"falls silent", []ping{answers, hangs}, nil, true},
		{"falls silent after it reported that it knows no ping", []ping{refuses, hangs}, nil, true},
		{"breaks", []ping{answers, breaks}, nil, true},
		{"misses two", []ping{answers, hangs, hangs, answers, hangs, hangs, answers}, nil, false},
		{"never answers", []ping{hangs}, nil, false},
		{"is busy now and then", []ping{answers, hangs}, func(n int) bool { return n%3 == 0 }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				asked, looked := 0, 0
				p := startKeepAlive(t.Context(), time.Minute, func() bool {
					looked++
					return tc.busy != nil && tc.busy(looked)
				}, func(ctx context.Context) error {
					asked++
					return tc.pings[min(asked, len(tc.pings))-1](ctx)
				})
				time.Sleep(30*time.Minute + time.Second)
				synctest.Wait()
				silent := false
				select {
				case <-p.silent:
					silent = true
				default:
				}
				p.stop()
				if silent != tc.silent {
					t.Errorf("silent %v after %d questions", silent, asked)
				}
			})
		})
	}
}
