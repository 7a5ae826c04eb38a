package server

import (
	"context"
	"time"

	"github.com/lathe-run/lathe/internal/gateway/admission"
)

// admitted returns the name and the rate limits of the key for the limiter of requests.
func (k *Key) admitted() *admission.Caller {
	return &admission.Caller{Name: k.Name, Profile: k.Profile, PerMinute: k.RequestsPerMinute, Concurrency: k.Concurrency}
}

// charger is the context key of a func(n int) *problem that counts n further requests of the caller.
type charger struct{}

// Charge counts n more requests against the rate limit of the key of a request. ctx must be the context of that request. A handler of
// [Options].MCP must call Charge for a batch of requests. If ok is false, nothing was counted, and the client may repeat the batch after
// wait. For any other ctx, Charge counts nothing and ok is true.
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

// withCharge returns a context in which Charge counts against the limits of the key.
func (g *Server) withCharge(ctx context.Context, k *Key) context.Context {
	return context.WithValue(ctx, charger{}, func(n int) *problem { return g.gate.usage.Charge(k.admitted(), n) })
}
