package wire

import (
	"cmp"
	"iter"
	"slices"

	"github.com/lathe-run/lathe"
)

// An Answer is a complete answer of one turn.
type Answer struct {
	AnswerHead
	Finish *lathe.Finish
}

// AppendAnswer appends the body of an answer that is not streamed. It contains what the events of the stream would contain.
func AppendAnswer(dst []byte, codec Served, a *Answer) []byte {
	head := a.AnswerHead
	head.Whole = true
	w := codec.NewWriter(&head)
	f := cmp.Or(a.Finish, &lathe.Finish{})
	dst = w.AppendStart(dst)
	for d := range Deltas(&f.Message) {
		dst = w.AppendDelta(dst, d)
	}
	return w.AppendFinish(dst, f, nil)
}

// Deltas yields the smallest number of deltas from which an [Assembler] assembles the message.
func Deltas(m *lathe.Message) iter.Seq[lathe.Delta] {
	return func(yield func(lathe.Delta) bool) {
		calls := 0
		for i, p := range m.Parts {
			more := true
			switch p := p.(type) {
			case lathe.Text:
				more = yieldText(m, i, p, yield)
			case lathe.Refusal:
				more = yield(lathe.Delta{Kind: lathe.DeltaRefusal, Text: p.Text})
			case lathe.Reasoning:
				more = yield(lathe.Delta{Kind: lathe.DeltaReasoning, Text: p.Text}) &&
					(p.Data == "" || yield(lathe.Delta{Kind: lathe.DeltaReasoningData, Name: p.Field, ID: p.ID, Text: p.Data}))
			case lathe.ToolCall:
				more = yield(lathe.Delta{Kind: lathe.DeltaCallStart, Index: calls, ID: p.ID, Name: p.Name}) &&
					yield(lathe.Delta{Kind: lathe.DeltaCallArgs, Index: calls, Text: p.Arguments}) &&
					yield(lathe.Delta{Kind: lathe.DeltaCallEnd, Index: calls, Incomplete: p.Incomplete})
				calls++
			case lathe.Opaque, lathe.Blob:
				more = yield(lathe.Delta{Kind: lathe.DeltaPart, Name: string(m.Wire), Part: p})
			case lathe.ToolResult: // answers contain no tool results
			}
			if !more {
				return
			}
		}
	}
}

// yieldText yields the deltas of t, which is part i of m. It returns false if yield did.
func yieldText(m *lathe.Message, i int, t lathe.Text, yield func(lathe.Delta) bool) bool {
	if t.Unreadable {
		return true
	}
	kind := lathe.DeltaText
	if t.Commentary {
		kind = lathe.DeltaCommentary
	}
	if i > 0 && isTextPart(m.Parts[i-1]) && !yield(lathe.Delta{Kind: lathe.DeltaTextEnd, Name: string(m.Wire)}) {
		return false
	}
	if !yield(lathe.Delta{Kind: kind, Text: t.Text}) {
		return false
	}
	t.Extra = textExtra(m, i)
	return len(t.Extra) == 0 || yield(lathe.Delta{Kind: lathe.DeltaTextEnd, Name: string(m.Wire), Part: t})
}

// textExtra returns the additional members of the text that is part i of m. On chat completions they are members of the message and belong
// to its last text.
func textExtra(m *lathe.Message, i int) []lathe.Member {
	t, _ := m.Parts[i].(lathe.Text)
	if m.Wire != "" && m.Wire != lathe.WireOpenAIChat {
		return t.Extra
	}
	if slices.ContainsFunc(m.Parts[i+1:], isTextPart) {
		return nil
	}
	for _, x := range m.Extra {
		if x.Name == annotations {
			return []lathe.Member{x}
		}
	}
	return nil
}

func isTextPart(p lathe.Part) bool { _, ok := p.(lathe.Text); return ok }
