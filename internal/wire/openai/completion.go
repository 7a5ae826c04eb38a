package openai

import (
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// A Completion is a complete answer in the form for clients that do not stream.
type Completion struct {
	ID, Model string
	Created   int64
	Finish    *lathe.Finish
	Extra     []lathe.Member // additional members, written after the known ones
}

var knownInCompletion = rawjson.NewNames("id", "object", "created", "model", "choices", "usage").Has

// AppendCompletion appends the body of a complete answer.
func AppendCompletion(dst wire.JSON, c *Completion) wire.JSON {
	f := c.Finish
	if f == nil {
		f = &lathe.Finish{}
	}
	choice := wire.ObjectOf("index", 0, "message", appendAnswer(nil, &f.Message), "logprobs", wire.JSON("null"), "finish_reason", wireReason(f.Reason))
	return dst.Lit("{").Fields("id", c.ID, "object", "chat.completion", "created", c.Created, "model", c.Model, "choices", wire.ArrayOf(choice),
		"usage", appendUsage(nil, &f.Usage, f.ProviderCost)).Extra(c.Extra, knownInCompletion).Lit("}")
}

// appendAnswer appends the message of an answer. It has the form of a message in a request, with its reasoning and with the members that an
// answer always has.
func appendAnswer(dst wire.JSON, m *lathe.Message) wire.JSON {
	answer := *m
	answer.Role, answer.Name = lathe.RoleAssistant, ""
	field := ReasoningSame
	has := shape(&answer)
	isNamed := func(p lathe.Part) bool { r, ok := p.(lathe.Reasoning); return ok && r.Field != "" }
	if foreign(answer.Wire) || !slices.ContainsFunc(answer.Parts, isNamed) {
		field = defaultReasoningField
	}
	dst = appendMessage(dst, &answer, &EncodeOptions{ReasoningField: field}, toClient)
	if !has.refusal {
		dst = dst[:len(dst)-1].Lit(`,"refusal":null}`)
	}
	return dst
}
