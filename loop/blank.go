package loop

import (
	"strings"

	"github.com/lathe-run/lathe"
)

// blank returns why the answer of a run that did not fail is blank, and the reasoning of the last message if that message contains nothing
// else. Both are "" if the answer is not blank or the run failed.
func (r *run) blank() (cause lathe.Blank, reasoning string) {
	dropped := r.call.finish == nil && unparsed(r.call.err)
	if !dropped && (r.call.finish == nil || !r.call.blank || len(r.call.asked) > 0) || strings.TrimSpace(r.result.Answer) != "" {
		return "", ""
	}
	switch status := r.reason.Status(); {
	case status == "completed", status == "limited", r.reason == lathe.ReasonEmptyAnswer:
	default:
		return "", ""
	}
	if dropped {
		return lathe.BlankOutputDropped, ""
	}
	reasoning = reasoningOf(&r.call.message)
	switch spent := r.call.finish.Usage; {
	case r.call.ignored > 0:
		return lathe.BlankCallsIgnored, reasoning
	case r.call.finish.Reason == lathe.FinishLength:
		return lathe.BlankLength, reasoning
	case reasoning != "":
		return lathe.BlankReasoning, reasoning
	case spent.OutputTokens > 1: // the end of the turn alone counts as one token
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
