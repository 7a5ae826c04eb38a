package provider

import (
	"bytes"
	"slices"

	"github.com/lathe-run/lathe"
)

// Relays returns the wire of the model server: a [lathe.Relay] receives its bytes. It is the method of loop.Relayer.
func (c *Chat) Relays() lathe.Wire { return c.wire.Wire() }

// asksWhole reports whether the request asks for an answer that is not streamed.
func asksWhole(r *lathe.Request) bool { return r.Relay != nil && !r.Relay.Stream }

// relaysStream reports whether the request has a relay for a stream.
func (a *attempt) relaysStream() bool { return a.relay != nil && a.relay.Stream }

// maxOpening and maxOpeningBytes limit the events that are buffered at the beginning of a relayed stream.
const (
	maxOpening      = 8
	maxOpeningBytes = 1 << 20 // the first event of Responses repeats the instructions and the tools
)

// opening are the types of the events that open a stream, on wires whose events have types. They contain nothing of an answer, and an
// overloaded server may send them before it reports an error.
var opening = map[string]bool{"response.created": true, "response.in_progress": true, "response.queued": true, "message_start": true, "ping": true}

// opens reports whether the event contains nothing of the answer.
func (a *attempt) opens(event string, deltas []lathe.Delta) bool {
	if a.call.chat.wire.Wire() != lathe.WireOpenAIChat && !opening[event] {
		return false
	}
	return !slices.ContainsFunc(deltas, func(d lathe.Delta) bool { return d.Kind != lathe.DeltaText || d.Text != "" })
}

// relayEvent passes the event that was read, and all events before it, to the relay. The events that open the stream are buffered until the
// answer begins, so that the call can be repeated if the server fails before. Once an event was passed on, the call is not repeated.
func (a *attempt) relayEvent(event string, deltas []lathe.Delta) {
	raw := &a.raw
	*raw = lathe.Raw{Bytes: a.events.Raw(), Sound: a.answer.Sound() || a.relay.Opaque, Finished: a.answer.Finished(), Deltas: deltas}
	raw.ID, raw.Model = a.answer.Names()
	if c, ok := a.answer.(chunked); ok {
		raw.UsageOnly = c.UsageOnly()
		if began := c.AppendShown(nil); len(began) > 0 {
			raw.Deltas = append(began, deltas...)
		}
	}
	fits := len(a.held) < maxOpening && a.heldBytes+len(raw.Bytes) <= maxOpeningBytes
	if !a.visible && fits && !raw.Finished && a.opens(event, raw.Deltas) {
		a.heldBytes += len(raw.Bytes)
		raw.Bytes, raw.Deltas = bytes.Clone(raw.Bytes), slices.Clone(raw.Deltas)
		a.held = append(a.held, *raw)
		return
	}
	a.relayHeld()
	a.visible = true
	a.relay.Take(raw)
}

// relayHeld passes the buffered events to the relay.
func (a *attempt) relayHeld() {
	for i := range a.held {
		a.visible = true
		a.relay.Take(&a.held[i])
	}
	a.held = nil
}

// relayRest passes the bytes after the last event to the relay.
func (a *attempt) relayRest(b []byte) {
	if !a.relaysStream() {
		return
	}
	a.relayHeld()
	if len(b) > 0 {
		a.relay.Take(&lathe.Raw{Bytes: b, Sound: true})
	}
}
