package provider

import (
	"slices"

	"github.com/lathe-run/lathe"
)

// Relays returns the wire of the bytes that a [lathe.Relay] of a request receives.
func (c *Chat) Relays() lathe.Wire { return c.wire.Wire() }

// asksWhole reports whether the answer is asked for in one piece.
func asksWhole(r *lathe.Request) bool { return r.Relay != nil && !r.Relay.Stream }

// shows reports whether the request has a relay that takes answers of that form: a stream, or a whole body.
func (a *attempt) shows(stream bool) bool { return a.relay != nil && a.relay.Stream == stream }

// maxOpening and maxOpeningBytes bound the events that are held back at the beginning of a relayed stream.
const (
	maxOpening      = 8
	maxOpeningBytes = 1 << 20 // the first event of Responses repeats the instructions and the tools
)

// opening are the events that open a stream, on wires whose events have types. A server that is overloaded may send them before it
// says so, and nothing of an answer is in them.
var opening = map[string]bool{"response.created": true, "response.in_progress": true, "response.queued": true, "message_start": true, "ping": true}

// opens reports whether the event has nothing of the answer.
func (a *attempt) opens(event string, deltas []lathe.Delta) bool {
	if a.v.c.wire.Wire() != lathe.WireOpenAIChat && !opening[event] {
		return false
	}
	return !slices.ContainsFunc(deltas, func(d lathe.Delta) bool { return d.Kind != lathe.DeltaText || d.Text != "" })
}

// show hands over the event that was just read, with all that stood before it. The events that open the stream are held back until
// the answer begins, so that the call can be made again if the server fails before that. After the first event that was handed
// over it is not made again: what was shown cannot be taken back.
func (a *attempt) show(event string, deltas []lathe.Delta) {
	v := a.v
	raw := &v.relayed.raw
	*raw = lathe.Raw{Bytes: v.events.Raw(), Sound: v.answer.Sound() || a.relay.Opaque, Finished: v.answer.Finished(), Deltas: deltas}
	raw.ID, raw.Model = v.answer.Names()
	if c, ok := v.answer.(chunked); ok {
		raw.UsageOnly = c.UsageOnly()
		if began := c.AppendShown(nil); len(began) > 0 {
			raw.Deltas = append(began, deltas...)
		}
	}
	if !a.begun && len(v.relayed.held) < maxOpening && v.relayed.heldBytes()+len(raw.Bytes) <= maxOpeningBytes && !raw.Finished && a.opens(event, raw.Deltas) {
		v.relayed.hold(raw)
	} else {
		a.showHeld()
		a.begun = true
		a.relay.Take(raw)
	}
	*raw = lathe.Raw{}
}

// A relayed is what a conversation needs to relay streams.
type relayed struct {
	raw  lathe.Raw
	held []lathe.Raw // events at the beginning of the stream that were not handed over; their memory is used again
}

// heldBytes returns the size of the events that are held back.
func (r *relayed) heldBytes() (n int) {
	for i := range r.held {
		n += len(r.held[i].Bytes)
	}
	return n
}

// forget releases the events, and memory above the usual size.
func (r *relayed) forget() {
	for i := range r.held {
		if cap(r.held[i].Bytes) > maxKept {
			r.held[i].Bytes = nil
		}
	}
	r.held = r.held[:0]
}

// hold keeps an event.
func (r *relayed) hold(raw *lathe.Raw) {
	n := len(r.held)
	if n == cap(r.held) {
		r.held = append(r.held, lathe.Raw{})
	}
	r.held = r.held[:n+1]
	kept := &r.held[n]
	bytes, deltas := append(kept.Bytes[:0], raw.Bytes...), append(kept.Deltas[:0], raw.Deltas...)
	*kept = *raw
	kept.Bytes, kept.Deltas = bytes, deltas
}

// showHeld hands over the events that were held back.
func (a *attempt) showHeld() {
	held := a.v.relayed.held
	for i := range held {
		a.begun = true
		a.relay.Take(&held[i])
	}
	a.v.relayed.held = held[:0]
}

// showRest hands over what follows the last event.
func (a *attempt) showRest(b []byte) {
	if !a.shows(true) {
		return
	}
	a.showHeld()
	if len(b) > 0 {
		a.relay.Take(&lathe.Raw{Bytes: b, Sound: true})
	}
}
