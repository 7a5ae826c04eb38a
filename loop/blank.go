package loop

import (
	"strings"

	"github.com/lathe-run/lathe"
)

// blank returns why the answer of a run that did not fail is blank, and the reasoning of the last message if that message contains nothing
// else. Both are "" if the answer is not blank or the run failed.
func (r *run) blank() (cause lathe.Blank, reasoning string) {
	status := r.reason.Status()
	failed := status != "completed" && status != "limited" && r.reason != lathe.ReasonEmptyAnswer
	if failed || strings.TrimSpace(r.result.Answer) != "" {
		return "", ""
	}
	c := &r.call
	if c.finish == nil && unparsed(c.err) {
		return lathe.BlankOutputDropped, ""
	}
	if c.finish == nil || !c.blank || len(c.asked) > 0 {
		return "", ""
	}
	reasoning = reasoningOf(&c.message)
	switch {
	case c.ignored > 0:
		return lathe.BlankCallsIgnored, reasoning
	case c.finish.Reason == lathe.FinishLength:
		return lathe.BlankLength, reasoning
	case reasoning != "":
		return lathe.BlankReasoning, reasoning
	case c.finish.Usage.OutputTokens > 1: // the end of the turn alone counts as one token
		return lathe.BlankOutputDropped, ""
	}
	return lathe.BlankEmpty, ""
}

// reasoningOf returns the reasoning in m.
func reasoningOf(m *lathe.Message) string {
	var b strings.Builder
	for _, p := range m.Parts {
		if t, ok := p.(lathe.Reasoning); ok {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}
