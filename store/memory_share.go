package store

import (
	"unique"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// minShared is the length of a text in bytes from which runs share it: for shorter ones a handle takes as much memory.
const minShared = 256

// share replaces the long texts of the messages that runs start with by equal ones that other runs hold: each run of a conversation starts
// with all messages before it. A text is shared while a run has one of the handles. A new text is copied: a run in progress has its own
// until it ends. The events must be copies of the store.
func share(events []event.Event) (held []unique.Handle[string]) {
	text := func(s *string) {
		if len(*s) >= minShared {
			h := unique.Make(*s)
			*s, held = h.Value(), append(held, h)
		}
	}
	for i := range events {
		d, ok := events[i].Data.(*event.RunStarted)
		if !ok {
			continue
		}
		for _, m := range d.Messages {
			for j, part := range m.Parts {
				switch p := part.(type) {
				case lathe.Text:
					text(&p.Text)
					m.Parts[j] = p
				case lathe.Reasoning:
					text(&p.Text)
					text(&p.Data)
					m.Parts[j] = p
				case lathe.ToolCall:
					text(&p.Arguments)
					m.Parts[j] = p
				case lathe.ToolResult:
					text(&p.Content)
					m.Parts[j] = p
				default: // has no text of the conversation
				}
			}
		}
	}
	return held
}
