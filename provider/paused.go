package provider

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

// defaultContinuations is the default of Limits.MaxContinuations.
const defaultContinuations = 8

// pausing is implemented by codecs of wires on which a server may end an answer before the model has finished its turn. The client sends
// the content back, and the server continues the turn in another answer.
type pausing interface {
	Paused(f *lathe.Finish) bool
}

// A pausedTurn joins the answers of a turn that its server paused. The zero value contains no answer.
type pausedTurn struct {
	whole     *lathe.Finish // the answers so far, joined; nil before the first
	continued int           // number of requests after the first
	delta     bool          // a delta was yielded
	relayed   bool          // the client receives the bytes, and continues the turn itself
}

// join appends an answer to those before it. It returns the joined answers, and whether the server has paused the turn.
func (t *pausedTurn) join(c *Chat, f *lathe.Finish) (_ *lathe.Finish, again bool) {
	if before := t.whole; before != nil {
		f.Message.Parts = slices.Concat(before.Message.Parts, f.Message.Parts)
		f.Usage.Add(before.Usage)
		f.Dropped = before.Dropped
		f.Faults = sumFaults(before.Faults, f.Faults)
		f.ProviderCost = sumCosts(before.ProviderCost, f.ProviderCost)
	}
	p, ok := c.wire.(pausing)
	if !ok || t.relayed || !p.Paused(f) {
		return f, false
	}
	t.whole = f
	return f, true
}

// next returns the request that continues the turn of req. It returns an error after MaxContinuations requests.
func (t *pausedTurn) next(c *Chat, req *lathe.Request) (*lathe.Request, error) {
	if t.continued == c.opts.Limits.MaxContinuations {
		return nil, c.failure(c.protocol(0, fmt.Sprintf("the server paused the answer more than max_continuations (%d) times", t.continued), nil))
	}
	t.continued++
	more := *req
	more.Messages = append(slices.Clip(req.Messages), t.whole.Message)
	return &more, nil
}

// failed returns err, marked as Continued if an answer of the turn precedes it.
func (t *pausedTurn) failed(err *lathe.Error) *lathe.Error {
	var up *lathe.UpstreamError
	if t.whole != nil && errors.As(err, &up) {
		up.Continued = true
	}
	return err
}

// sumCosts returns the sum of two costs, of which nil is unknown; nil if both are.
func sumCosts(a, b *float64) *float64 {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	sum := *a + *b
	return &sum
}

// sumFaults returns the faults of two answers, with one sum for each kind.
func sumFaults(a, b []lathe.Fault) []lathe.Fault {
	sum := slices.Clone(a)
	for _, f := range b {
		sum = wire.CountFault(sum, f.Kind, f.Count)
	}
	return sum
}
