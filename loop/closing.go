package loop

import (
	"github.com/lathe-run/lathe"
)

// closing is the loop's own request for an answer: a synthetic user message, sent when the model's answer is blank or a limit
// is reached. It is the last message of the request, and it is removed from the history at the end of the run.
type closing struct {
	run   *run
	asked bool // a blank answer was asked for again, which is done once
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

// unanswered reports whether the loop's own request for an answer is the last message.
func (k *closing) unanswered() bool {
	r := k.run
	n := len(r.req.Messages)
	return n > len(r.in.Messages) && r.req.Messages[n-1].Synthetic
}
