package config

import (
	"time"

	"github.com/lathe-run/lathe/approval"
)

// Approval says how clients of chat completions learn that a run waits for an approval.
type Approval struct {
	WaitingText string
	Hold        time.Duration // 0: not
}

// keys returns the rows of approvals, bound to a.
func (a *Approval) keys() []key {
	return []key{
		{"approval.hold", "0s", duration(&a.Hold, 0), "How long the answer of a chat completion is held open while its run waits for an approval, at most 5m where it is not streamed; then the run goes on in the same answer. `0s`: the answer ends with `approval.waiting_text` at once.", "wait hold_open"},
		{"approval.waiting_text", approval.DefaultSentence, sentence(&a.WaitingText), "Sentence at the end of a chat completion whose run waits for an approval. `{run}` stands for the run and must be there once, `{tool}` for the tools, `{command}` for the command that answers. It is taken out of what the model sees.", "pending_text"},
	}
}

// sentence is the template of an [approval.Sentence].
func sentence(p *string) value {
	v := text(p).(*fn)
	v.setFn = func(s string) error {
		if _, err := approval.NewSentence(s); err != nil {
			return err
		}
		*p = s
		return nil
	}
	return v
}
