package observe

import (
	"context"

	"go.opentelemetry.io/otel/baggage"

	"github.com/lathe-run/lathe/event"
)

// Baggage selects the outgoing requests that carry the W3C baggage of a run, which the caller of the run has sent. A caller may put any
// text into it, such as names of users, so the operator decides which servers may receive it.
type Baggage string

// The values of Baggage. "": no request carries it.
const (
	BaggageTools Baggage = "tools" // requests of tools only
	BaggageAll   Baggage = "all"   // requests of tools and to models
)

// maxBaggage is the maximum size of baggage that is passed on, in bytes. Longer and malformed baggage is omitted.
const maxBaggage = 4 << 10

// baggageOf returns the baggage of ctx that is passed on, or "".
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
