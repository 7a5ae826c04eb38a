package loop

import (
	"slices"

	"github.com/lathe-run/lathe"
)

// closing is the loop's own request for an answer: a synthetic user message, sent when the model's answer is blank or a limit
// is reached. It is the last message of the request, and it is removed from the history at the end of the run.
//
// Some chat templates refuse a user message after the result of a tool. The text then moves to the end of the message before:
//
//	tool "42", user "Answer now."  →  tool "42\n\nAnswer now."
//
// finish restores that message: moved holds it as it was, movedTo is its index.
type closing struct {
	run     *run
	asked   bool           // a blank answer was asked for again, which is done once
	moved   *lathe.Message // nil: none
	movedTo int
}

// askForAnswer adds the loop's own request for an answer, unless it has just been made.
func (k *closing) askForAnswer() {
	r := k.run
	if k.unanswered() {
		return
	}
	m := lathe.User(r.settings.FixEmptyFinalText)
	m.Synthetic = true
	r.req.Messages = append(r.req.Messages, m)
}

// unanswered reports whether the loop's own request for an answer is the last message, or stands in it.
func (k *closing) unanswered() bool {
	r := k.run
	n := len(r.req.Messages)
	return n > len(r.in.Messages) && (r.req.Messages[n-1].Synthetic || k.moved != nil && k.movedTo == n-1)
}

// moveQuestion puts the words of the loop's own request for an answer at the end of the message before it: servers
// whose templates want user and assistant in turn take no user message after the result of a tool. It returns
// false if the request is not the last message.
func (k *closing) moveQuestion() bool {
	r := k.run
	n := len(r.req.Messages)
	if n < 2 || k.moved != nil || !k.unanswered() {
		return false
	}
	before := r.req.Messages[n-2]
	kept, words := before, "\n\n"+r.req.Messages[n-1].Text()
	before.Parts = slices.Clone(before.Parts)
	switch {
	case before.Role == lathe.RoleTool && len(before.Parts) == 1:
		result, ok := before.Parts[0].(lathe.ToolResult)
		if !ok {
			return false
		}
		result.Content += words
		before.Parts[0] = result
	case before.Role == lathe.RoleUser:
		before.Parts = append(before.Parts, lathe.Text{Text: words})
	default:
		return false
	}
	r.req.Messages = append(r.req.Messages[:n-2:n-2], before) // a copy: events have shown the one before
	k.moved, k.movedTo = &kept, n-2
	r.prompt.Reset(r.loop.name)
	r.prompt.hashed = 0
	return true
}
