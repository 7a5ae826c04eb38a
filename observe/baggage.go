package observe

import (
	"context"

	"go.opentelemetry.io/otel/baggage"

	"github.com/lathe-run/lathe/event"
)

// Baggage says which requests carry the W3C baggage of the caller. Callers write any text into it, such as names of users:
// only the operator can say which servers may read it.
type Baggage string

// The settings.
const (
	BaggageTools Baggage = "tools" // requests of tools, and not those to models
	BaggageAll   Baggage = "all"   // those to models too
)

// maxBaggage bounds the baggage that is passed on, in bytes. Longer baggage is left out, as is what is not well formed.
const maxBaggage = 4 << 10

// baggageOf returns the baggage of a context that is passed on.
func (t *Traces) baggageOf(ctx context.Context) string {
	text := event.RemoteTraceFrom(ctx).Baggage
	if t.baggage == "" || text == "" || len(text) > maxBaggage {
		return ""
	}
	b, err := baggage.Parse(text)
	if err != nil || len(b.String()) > maxBaggage {
		return ""
	}
	return b.String()
}
