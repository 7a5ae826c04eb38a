package store

import "github.com/lathe-run/lathe"

// weightOf estimates what an event holds, in bytes: its texts, and a round sum for the rest.
func weightOf(e *lathe.Event) int64 {
	n := 512
	switch d := e.Data.(type) {
	case *lathe.RunStarted:
		for i := range d.Messages {
			n += d.Messages[i].Size()
		}
		n += len(d.Input)
		for k, v := range d.Labels {
			n += len(k) + len(v)
		}
	case *lathe.ModelCallFinished:
		n += len(d.ErrorMessage)
		if d.Message != nil {
			n += d.Message.Size()
		}
	case *lathe.ToolCallProposed:
		n += len(d.RawArgs)
	case *lathe.ToolCallParseError:
		n += len(d.RawExcerpt)
	case *lathe.ApprovalRequested:
		n += len(d.Arguments)
	case *lathe.ApprovalResolved:
		n += len(d.Arguments)
	case *lathe.ToolCallResult:
		n += len(d.Result)
		for i := range d.Blobs {
			n += d.Blobs[i].Size()
		}
	case *lathe.RunFinished:
		n += len(d.Answer)
	default: // the round sum covers them
	}
	return int64(n)
}
