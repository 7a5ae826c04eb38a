package server

import (
	"context"
	"time"

	"github.com/lathe-run/lathe/internal/gateway/admission"
)

// admitted returns the key as the limiter of requests counts it.
func (k *Key) admitted() *admission.Caller {
	return &admission.Caller{Name: k.Name, Profile: k.Profile, PerMinute: k.RequestsPerMinute, Concurrency: k.Concurrency}
}

// charger is the context key of a func(n int) *problem that counts n further requests of a caller.
type charger struct{}

// Charge counts n further requests against the rate limit of the key of the request whose context is ctx, so that each
// call of a batch counts. If ok is false, none was counted and the client may try again after wait. If ctx is not that of
// a request to [Options].MCP, Charge counts nothing and returns true.
func Charge(ctx context.Context, n int) (wait time.Duration, ok bool) {
	charge, _ := ctx.Value(charger{}).(func(int) *problem)
	if charge == nil {
		return 0, true
	}
	if p := charge(n); p != nil {
		return p.RetryAfter, false
	}
	return 0, true
}

func (g *Server) withCharge(ctx context.Context, k *Key) context.Context {
	return context.WithValue(ctx, charger{}, func(n int) *problem { return g.gate.usage.Charge(k.admitted(), n) })
}
