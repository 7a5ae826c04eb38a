package provider

import "github.com/lathe-run/lathe"

var (
	_ lathe.Relayer = (*Chat)(nil)
	_ lathe.Relayer = (*session)(nil)
)

// Relays reports true: what the server says is given as it is. See [lathe.Relayer].
func (c *Chat) Relays() bool { return true }

// Relays reports true.
func (s *session) Relays() bool { return true }

// asksWhole reports whether the answer is asked for in one piece.
func asksWhole(r *lathe.Request) bool { return r.Relay != nil && !r.Relay.Stream }

// shows reports whether somebody is shown an answer of that form.
func (a *attempt) shows(stream bool) bool { return a.relay != nil && a.relay.Stream == stream }

// show hands over the event that was just read, with all that stood before it. After it the call is not
// made again: what was shown cannot be taken back.
func (a *attempt) show(kind string, deltas []lathe.Delta) {
	v := a.v
	raw := &v.raw
	*raw = lathe.Raw{Bytes: v.events.Raw(), Sound: (v.answer.Sound() || a.relay.Opaque) && kind == "message", UsageOnly: v.answer.UsageOnly(),
		Finished: v.answer.Finished(), Deltas: deltas}
	raw.ID, raw.Model = v.answer.Names()
	if began := v.answer.AppendShown(nil); len(began) > 0 {
		raw.Deltas = append(began, deltas...)
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
