package responses

import (
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

// AppendAnswer implements [wire.Served]. The object is the one that ends the stream of the same answer.
func (Codec) AppendAnswer(dst []byte, a *wire.Answer) []byte {
	f := a.Finish
	if f == nil {
		f = &lathe.Finish{}
	}
	w := newWriter(&a.AnswerHead)
	if a.Completed != 0 {
		w.res.completed = a.Completed
	}
	var events []byte // not sent
	items := a.Items
	call := 0
	for i, p := range f.Message.Parts {
		for len(items) > 0 && items[0].Before <= i {
			events, items = w.appendItem(events[:0], &items[0]), items[1:]
		}
		switch p := p.(type) {
		case lathe.Text:
			kind := lathe.DeltaText
			if p.Commentary {
				kind = lathe.DeltaCommentary
			}
			events = w.AppendDelta(events[:0], lathe.Delta{Kind: kind, Text: p.Text})
		case lathe.Refusal:
			events = w.AppendDelta(events[:0], lathe.Delta{Kind: lathe.DeltaRefusal, Text: p.Text})
		case lathe.Reasoning:
			events = w.AppendDelta(events[:0], lathe.Delta{Kind: lathe.DeltaReasoning, Text: p.Text})
			events = w.AppendDelta(events[:0], lathe.Delta{Kind: lathe.DeltaReasoningData, Name: p.Field, ID: p.ID, Text: p.Data})
		case lathe.ToolCall:
			w.completeCall(w.call(call), &p)
			events = w.advance(events[:0])
			call++
		case lathe.Blob, lathe.ToolResult, lathe.Opaque: // have no delta
		}
	}
	for i := range items {
		events = w.appendItem(events[:0], &items[i])
	}
	events = events[:0]
	s := w.complete(&events, f)
	s.extra = a.Extra
	return w.res.append(dst, s)
}

// appendItem appends an item between the parts of an answer.
func (w *writer) appendItem(dst []byte, it *wire.Item) []byte {
	switch {
	case it.Call != nil:
		return w.AppendServerCall(dst, it.Call)
	case it.Approval != nil:
		return w.AppendApproval(dst, it.Approval)
	default:
		return w.AppendCarrier(dst, it.Carrier)
	}
}
