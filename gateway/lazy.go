package gateway

import (
	"slices"

	"github.com/lathe-run/lathe"
)

// A chat completion that names no session and does not go on without its client asks for nothing that has
// to survive this process. It is stored when it is over, and its client does not wait for that.

// due says what of such a run is stored at once nevertheless: a call to a tool that may do more than read,
// before it is made; a question to a person; and that calls are handed over where the server has results
// which are joined when the client comes back. own are the tools of the client.
func (c *caller) due(own []*lathe.ToolSpec) func(lathe.EventData) bool {
	answered := false
	return func(data lathe.EventData) bool {
		switch d := data.(type) {
		case *lathe.ToolCallPlanned:
			return !slices.ContainsFunc(own, func(t *lathe.ToolSpec) bool { return t.Name == d.Tool }) && c.setup.mayWrite(d.Tool)
		case *lathe.ToolCallResult:
			answered = true
		case *lathe.ApprovalRequested, *lathe.RunPaused:
			return true
		case *lathe.RunFinished:
			return answered && d.Reason == lathe.ReasonClientToolCalls
		default: // whoever watches does not go by it
		}
		return false
	}
}

// unknownTool is what events call a tool that is not registered.
const unknownTool = "unknown"

// mayWrite reports whether a tool may do more than read. One that is not here any more may still be called by a
// run that began before.
func (s *Setup) mayWrite(tool string) bool {
	if s.Tools == nil || tool == unknownTool {
		return false
	}
	specs := s.Tools.Specs()
	i := slices.IndexFunc(specs, func(t *lathe.ToolSpec) bool { return t.Name == tool })
	return i < 0 || specs[i].Effect != lathe.ReadOnly
}
