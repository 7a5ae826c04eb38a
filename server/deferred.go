package server

import (
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// A chat completion without a session and without `detach` need not survive this process. Its events are stored after the
// run has ended (deferred persistence), so its client does not wait for the store.

// due returns a function that reports whether an event of such a run must still be stored at once: a planned call of a
// server tool that may do more than read, an approval request, a suspension, and the end of a run that returns calls to the
// client after it has results of server tools. Those results are spliced in when the client sends the results of its calls.
// own are the tools of the client.
func (c *access) due(own []*lathe.ToolSpec) func(event.Data) bool {
	answered := false // the run has a result of a server tool
	return func(data event.Data) bool {
		switch d := data.(type) {
		case *event.ToolCallPlanned:
			return !slices.ContainsFunc(own, func(t *lathe.ToolSpec) bool { return t.Name == d.Tool }) && c.setup.mayWrite(d.Tool)
		case *event.ToolCallResult:
			answered = true
		case *event.ApprovalRequested, *event.RunPaused:
			return true
		case *event.RunFinished:
			return answered && d.Reason == lathe.ReasonClientToolCalls
		default: // no recovery depends on the other events
		}
		return false
	}
}

// unknownTool is the name in events of a tool that is not registered.
const unknownTool = "unknown"

// mayWrite reports whether a tool may do more than read. It returns true for a tool that has been removed from the
// configuration, because runs that began before may still call it.
func (s *Setup) mayWrite(tool string) bool {
	if s.Tools == nil || tool == unknownTool {
		return false
	}
	if spec := s.spec(tool); spec != nil {
		return spec.Effect != lathe.ReadOnly
	}
	return tool != searchTool
}

// tools returns the definitions of all tools of this server, sorted by name.
func (s *Setup) tools() []*lathe.ToolSpec {
	if s.Tools == nil {
		return nil
	}
	return s.Tools.Specs()
}

// spec returns the definition of a tool of this server; nil if none exists with that name.
func (s *Setup) spec(name string) *lathe.ToolSpec {
	specs := s.tools()
	at, has := slices.BinarySearchFunc(specs, name, func(t *lathe.ToolSpec, name string) int { return strings.Compare(t.Name, name) })
	if !has {
		return nil
	}
	return specs[at]
}

// searchTool is the name of the tool with which a model searches for other tools. It is not in Tools, and it only reads.
const searchTool = "tool_search"
