package server

import (
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// A request is relayed if no tool of this server is offered in its run and it does not ask for an object `lathe`: its
// client gets the bytes of the model server unchanged. The run is like any other, with the same limits and the same log.
// From the first event that could break a client, the server encodes the stream itself.

// relays reports whether the run of a request is relayed: the model server uses the client's wire, the run is one turn, and
// no tool of this server is offered.
func (c *access) relays(m *Model, to lathe.Wire, s *lathe.Settings, allow []string) bool {
	if m.Loop.Relays() != to || s.ToolUseMode != "" && s.ToolUseMode != lathe.ModeRelaxed {
		return false
	}
	return !c.hasTool(allow, func(t *lathe.ToolSpec) bool { return !t.Hidden })
}

// AppendRaw implements [stream.RawEncoder]. It appends the bytes of the model server. From the first event on that cannot be passed on
// unchanged, it appends the encoded deltas instead.
func (a *chat) AppendRaw(dst []byte, raw *lathe.Raw) []byte {
	a.bytesSent, a.wroteText = true, true
	a.job.objects.addRelayed(raw.Bytes)
	a.reencodes = a.reencodes || !raw.Sound
	if a.reencodes {
		for _, d := range raw.Deltas {
			if !a.finished { // clients do not read what follows the finish reason
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

// asItCame reports whether the client gets the answer of the model server unchanged and complete.
func (a *chat) asItCame(res *event.Result) bool {
	if a.reencodes || !a.bytesSent && a.whole == nil {
		return false
	}
	switch res.Reason {
	case lathe.ReasonAnswered, lathe.ReasonClientToolCalls, lathe.ReasonLength, lathe.ReasonContentFilter, lathe.ReasonInvalidAnswer, lathe.ReasonEmptyAnswer:
		return true
	default: // this server ended the run, so the answer is incomplete
		return false
	}
}
