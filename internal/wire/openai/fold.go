package openai

import (
	"encoding/json"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

// A fold joins the chunks of an answer that is not streamed to one message, as a client of the stream would.
type fold struct {
	head                        *wire.AnswerHead
	content, reasoning, refusal strings.Builder
	annotations                 []json.RawMessage
	calls                       []lathe.ToolCall
	args                        []byte // arguments of the last call
}

// text returns the builder for the text in a member of the message.
func (f *fold) text(member string) *strings.Builder {
	switch member {
	case "content":
		return &f.content
	case "refusal":
		return &f.refusal
	}
	return &f.reasoning
}

// endCall sets the arguments of the last call and clears args.
func (f *fold) endCall() {
	f.calls[len(f.calls)-1].Arguments = string(f.args)
	f.args = f.args[:0]
}

// append appends the body of the answer.
func (f *fold) append(dst wire.JSON, fin *lathe.Finish, extra []lathe.Member) wire.JSON {
	answer := *fin
	answer.Message = lathe.Message{Role: lathe.RoleAssistant}
	m := &answer.Message
	m.Parts = make([]lathe.Part, 0, 3+len(f.calls))
	if f.reasoning.Len() > 0 {
		m.Parts = append(m.Parts, lathe.Reasoning{Text: f.reasoning.String()})
	}
	if f.content.Len() > 0 {
		m.Parts = append(m.Parts, lathe.Text{Text: f.content.String()})
	}
	if f.refusal.Len() > 0 {
		m.Parts = append(m.Parts, lathe.Refusal{Text: f.refusal.String()})
	}
	for _, c := range f.calls {
		m.Parts = append(m.Parts, c)
	}
	if len(f.annotations) > 0 {
		m.Extra = []lathe.Member{{Name: "annotations", Value: json.RawMessage(wire.ArrayOf(f.annotations...))}}
	}
	return AppendCompletion(dst, &Completion{ID: completionID(f.head), Model: f.head.Model, Created: f.head.Created, Finish: &answer, Extra: extra})
}
