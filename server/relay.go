package server

import (
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// A request that no tool of this server can have a part in, and that does not ask for an object `lathe`, is
// relayed: its client gets the bytes that the model server sent. The run is the same as any other: under the same limits, in the same log. From the
// first event on that a client could stumble over, the stream is written anew.

// relays reports whether the run of a request is relayed: the model's server speaks the client's wire, the
// run is one turn of it, and no tool of this server is offered.
func (c *access) relays(m *Model, to lathe.Wire, s *lathe.Settings, allow []string) bool {
	if m.Loop.Relays() != to || s.ToolUseMode != "" && s.ToolUseMode != lathe.ModeRelaxed {
		return false
	}
	return !c.hasTool(allow, func(t *lathe.ToolSpec) bool { return !t.Hidden })
}

// AppendRaw appends what the model server sent, or what it means.
func (a *chat) AppendRaw(dst []byte, raw *lathe.Raw) []byte {
	a.bytesSent, a.wroteText = true, true
	a.job.objects.relayed(raw.Bytes)
	if a.reencodes = a.reencodes || !raw.Sound; a.reencodes {
		for _, d := range raw.Deltas {
			if !a.finished { // what a server says after the finish reason is nothing that a client reads
				dst = a.writer.AppendDelta(dst, d)
			}
		}
		return dst
	}
	a.finished = raw.Finished
	b := a.writer.Pass(raw)
	if raw.UsageOnly && !a.req.IncludeUsage {
		return dst
	}
	return append(dst, b...)
}

// asItCame reports whether the client was given all of the model server's answer.
func (a *chat) asItCame(res *event.Result) bool {
	if a.reencodes || !a.bytesSent && a.whole == nil {
		return false
	}
	switch res.Reason {
	case lathe.ReasonAnswered, lathe.ReasonClientToolCalls, lathe.ReasonLength, lathe.ReasonContentFilter, lathe.ReasonInvalidAnswer, lathe.ReasonEmptyAnswer:
		return true
	default: // it was broken off here
		return false
	}
}
