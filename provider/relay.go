package provider

import "github.com/lathe-run/lathe"

// Relays returns the wire of the bytes that a [lathe.Relay] of a request receives.
func (c *Chat) Relays() lathe.Wire { return c.wire.Wire() }

// asksWhole reports whether the answer is asked for in one piece.
func asksWhole(r *lathe.Request) bool { return r.Relay != nil && !r.Relay.Stream }

// shows reports whether the request has a relay that takes answers of that form: a stream, or a whole body.
func (a *attempt) shows(stream bool) bool { return a.relay != nil && a.relay.Stream == stream }

// show hands over the event that was just read, with all that stood before it. After it the call is not
// made again: what was shown cannot be taken back.
func (a *attempt) show(deltas []lathe.Delta) {
	v := a.v
	raw := &v.raw
	*raw = lathe.Raw{Bytes: v.events.Raw(), Sound: v.answer.Sound() || a.relay.Opaque, Finished: v.answer.Finished(), Deltas: deltas}
	raw.ID, raw.Model = v.answer.Names()
	if c, ok := v.answer.(chunked); ok {
		raw.UsageOnly = c.UsageOnly()
		if began := c.AppendShown(nil); len(began) > 0 {
			raw.Deltas = append(began, deltas...)
		}
	}
	a.begun = true
	a.relay.Take(raw)
	*raw = lathe.Raw{}
}

// showRest hands over what follows the last event.
func (a *attempt) showRest(b []byte) {
	if len(b) > 0 && a.shows(true) {
		a.relay.Take(&lathe.Raw{Bytes: b, Sound: true})
	}
}
