package openai

import (
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

// A Completion is a complete answer in the form for clients that do not stream.
type Completion struct {
	ID, Model string
	Created   int64
	Finish    *lathe.Finish
	Extra     []lathe.Member // additional members, written after the known ones
}

func knownInCompletion(name string) bool {
	switch name {
	case "id", "object", "created", "model", "choices", "usage":
		return true
	}
	return false
}

// AppendCompletion appends the body of a complete answer.
func AppendCompletion(dst wire.JSON, c *Completion) wire.JSON {
	f := c.Finish
	if f == nil {
		f = &lathe.Finish{}
	}
	dst = dst.Lit(`{"id":`).Quote(c.ID).Lit(`,"object":"chat.completion","created":`).Int(c.Created).Str("model", c.Model).
		Lit(`,"choices":[{"index":0,"message":`)
	dst = appendAnswer(dst, &f.Message)
	dst = dst.Lit(`,"logprobs":null`).Str("finish_reason", wireReason(f.Reason)).Lit(`}],"usage":`)
	dst = appendUsage(dst, &f.Usage, f.ProviderCost)
	return dst.Extra(c.Extra, knownInCompletion).Lit("}")
}

// appendAnswer appends the message of an answer. It has the form of a message in a request, with its reasoning and with the members that an
// answer always has.
func appendAnswer(dst wire.JSON, m *lathe.Message) wire.JSON {
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
		dst = dst[:len(dst)-1].Lit(`,"refusal":null}`)
	}
	return dst
}
