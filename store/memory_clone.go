package store

import (
	"maps"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// Copy returns a deep copy of e. It omits the Result of RunFinished and RunPaused, and the request of ModelCallStarted, which stores do not
// store.
func Copy(e event.Event) event.Event {
	switch d := e.Data.(type) {
	case *event.RunStarted:
		c := *d
		c.Messages, c.Tools.Withheld, c.Labels = cloneMessages(d.Messages), slices.Clone(d.Tools.Withheld), maps.Clone(d.Labels)
		c.Retention, c.Input = clonePointer(d.Retention), slices.Clone(d.Input)
		e.Data = &c
	case *event.ModelCallStarted:
		c := *d
		c.Request = nil // it would retain the conversation and the memory of the run
		e.Data = &c
	case *event.ModelCallFinished:
		c := *d
		c.Faults, c.Dropped = slices.Clone(d.Faults), slices.Clone(d.Dropped)
		c.ProviderCost, c.Cost = clonePointer(d.ProviderCost), clonePointer(d.Cost)
		if c.Message = clonePointer(d.Message); c.Message != nil {
			c.Message.Parts = slices.Clone(c.Message.Parts)
			cloneInner(c.Message)
		}
		e.Data = &c
	case *event.ToolCallProposed:
		e.Data = clonePointer(d)
	case *event.ToolCallParseError:
		e.Data = clonePointer(d)
	case *event.ToolCallPlanned:
		e.Data = clonePointer(d)
	case *event.ApprovalRequested:
		c := *d
		c.Arguments = slices.Clone(d.Arguments)
		e.Data = &c
	case *event.ApprovalResolved:
		c := *d
		c.Arguments = slices.Clone(d.Arguments)
		e.Data = &c
	case *event.ToolCallExecuted:
		c := *d
		c.RC, c.ChildUsage = clonePointer(d.RC), clonePointer(d.ChildUsage)
		e.Data = &c
	case *event.ToolsLoaded:
		c := *d
		c.Tools = slices.Clone(d.Tools)
		e.Data = &c
	case *event.ToolCallResult:
		c := *d
		c.Blobs = cloneBlobs(d.Blobs)
		e.Data = &c
	case *event.RunPaused:
		c := *d
		c.Pending, c.Result = slices.Clone(d.Pending), nil
		e.Data = &c
	case *event.RunResumed:
		c := *d
		c.Pending = slices.Clone(d.Pending)
		e.Data = &c
	case *event.RunFinished:
		c := *d
		c.Result = nil
		e.Data = &c
	default: // delta events, which are not stored
	}
	return e
}

func cloneMessages(ms []lathe.Message) []lathe.Message {
	out := slices.Clone(ms)
	for i := range out {
		out[i].Parts = slices.Clone(out[i].Parts)
		cloneInner(&out[i])
	}
	return out
}

// cloneInner replaces the data to which the members and parts of m refer by copies. It changes m.Parts.
func cloneInner(m *lathe.Message) {
	m.Extra = cloneMembers(m.Extra)
	for i, p := range m.Parts {
		switch p := p.(type) {
		case lathe.Blob:
			m.Parts[i] = cloneBlob(p)
		case lathe.ToolCall:
			if p.Extra != nil {
				p.Extra = cloneMembers(p.Extra)
				m.Parts[i] = p
			}
		case lathe.ToolResult:
			if p.Blobs != nil || p.Extra != nil {
				p.Blobs, p.Extra = cloneBlobs(p.Blobs), cloneMembers(p.Extra)
				m.Parts[i] = p
			}
		case lathe.Opaque:
			p.JSON = slices.Clone(p.JSON)
			m.Parts[i] = p
		case lathe.Text:
			if p.Extra != nil {
				p.Extra = cloneMembers(p.Extra)
				m.Parts[i] = p
			}
		case lathe.Reasoning, lathe.Refusal: // contain only strings
		}
	}
}

func cloneBlob(b lathe.Blob) lathe.Blob {
	b.Data = slices.Clone(b.Data)
	b.Raw = slices.Clone(b.Raw)
	return b
}

func cloneBlobs(bs []lathe.Blob) []lathe.Blob {
	out := slices.Clone(bs)
	for i := range out {
		out[i] = cloneBlob(out[i])
	}
	return out
}

func cloneMembers(ms []lathe.Member) []lathe.Member {
	out := slices.Clone(ms)
	for i := range out {
		out[i].Value = slices.Clone(out[i].Value)
	}
	return out
}
