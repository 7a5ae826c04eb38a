package event

// Clone returns e with data that the caller may keep. The data of a delta event, which is reused where a function says so, is
// copied; that of all others is not, since it may be kept anyway.
func (e Event) Clone() Event {
	switch d := e.Data.(type) {
	case *TextDelta:
		c := *d
		e.Data = &c
	case *ReasoningDelta:
		c := *d
		e.Data = &c
	case *CommentaryDelta:
		c := *d
		e.Data = &c
	case *ToolCallDelta:
		c := *d
		e.Data = &c
	default: // not reused
	}
	return e
}
