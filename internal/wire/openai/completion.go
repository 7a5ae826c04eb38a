package openai

import (
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// A Completion is a whole answer, as a server sends it to a client that does not stream.
type Completion struct {
	ID, Model string
	Created   int64
	Finish    *lathe.Finish
	Extra     []lathe.Member // further members of the object, after the known ones
}

func knownInCompletion(name string) bool {
	switch name {
	case "id", "object", "created", "model", "choices", "usage":
		return true
	}
	return false
}

// AppendCompletion appends the body of an answer.
func AppendCompletion(dst []byte, c *Completion) []byte {
	f := c.Finish
	if f == nil {
		f = &lathe.Finish{}
	}
	dst = append(dst, `{"id":`...)
	dst = rawjson.AppendQuote(dst, c.ID)
	dst = append(dst, `,"object":"chat.completion","created":`...)
	dst = strconv.AppendInt(dst, c.Created, 10)
	dst = wire.AppendText(dst, "model", c.Model)
	dst = append(dst, `,"choices":[{"index":0,"message":`...)
	dst = appendAnswer(dst, &f.Message)
	dst = append(dst, `,"logprobs":null`...)
	dst = wire.AppendText(dst, "finish_reason", wireReason(f.Reason))
	dst = append(dst, `}],"usage":`...)
	dst = appendUsage(dst, &f.Usage, f.ProviderCost)
	dst = wire.AppendExtra(dst, c.Extra, knownInCompletion)
	return append(dst, '}')
}

// appendAnswer appends the message of an answer: as in a request, with the members that an answer
// always has, and with its reasoning.
func appendAnswer(dst []byte, m *lathe.Message) []byte {
	answer := *m
	answer.Role, answer.Name = lathe.RoleAssistant, ""
	field := ReasoningSame
	has := shape(&answer)
	if has.reasoning {
		named := false
		for _, p := range answer.Parts {
			r, ok := p.(lathe.Reasoning)
			named = named || ok && r.Field != "" && !foreign(answer.Wire)
		}
		if !named {
			field = defaultReasoningField
		}
	}
	dst = appendMessage(dst, &answer, &EncodeOptions{ReasoningField: field}, true)
	if !has.refusal {
		dst = append(dst[:len(dst)-1], `,"refusal":null}`...)
	}
	return dst
}
