package store

import "github.com/lathe-run/lathe/event"

// weightOf returns an estimate of the memory of an event, in bytes: the length of its texts and a constant.
func weightOf(e *event.Event) int64 {
	n := 512
	switch d := e.Data.(type) {
	case *event.RunStarted:
		for _, m := range d.Messages {
			n += m.Size()
		}
		n += len(d.Input)
		for k, v := range d.Labels {
			n += len(k) + len(v)
		}
	case *event.ModelCallFinished:
		n += len(d.ErrorMessage)
		if d.Message != nil {
			n += d.Message.Size()
		}
	case *event.ToolCallProposed:
		n += len(d.RawArgs)
	case *event.ToolCallParseError:
		n += len(d.RawExcerpt)
	case *event.ApprovalRequested:
		n += len(d.Arguments)
	case *event.ApprovalResolved:
		n += len(d.Arguments)
	case *event.ToolCallResult:
		n += len(d.Result)
		for _, b := range d.Blobs {
			n += b.Size()
		}
	case *event.RunFinished:
		n += len(d.Answer)
	default: // the constant is sufficient
	}
	return int64(n)
}
