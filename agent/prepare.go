package agent

import (
	"context"
	"iter"
	"slices"

	"github.com/lathe-run/lathe"
)

// prepared is a model whose requests begin with instructions and are changed by Options.Prepare.
type prepared struct {
	lathe.Model
	instructions string                                              // "": none
	prepare      func(ctx context.Context, req *lathe.Request) error // nil: no change
}

// Unwrap returns the model, for [lathe.ModelAs].
func (p prepared) Unwrap() lathe.Model { return p.Model }

// Generate implements [lathe.Model].
func (p prepared) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	own := *req
	own.Messages, own.Tools = slices.Clone(req.Messages), slices.Clone(req.Tools)
	if p.instructions != "" {
		own.Messages = instruct(p.instructions, own.Messages)
	}
	if p.prepare != nil {
		if err := p.prepare(ctx, &own); err != nil {
			return func(yield func(lathe.Delta, error) bool) { yield(lathe.Delta{}, err) }
		}
	}
	return p.Model.Generate(ctx, &own)
}

// instruct returns the messages with the instructions before them. They begin with one system message, since some servers refuse a second.
func instruct(instructions string, messages []lathe.Message) []lathe.Message {
	first := lathe.System(instructions)
	if len(messages) > 0 && messages[0].Role == lathe.RoleSystem {
		first.Parts = slices.Concat([]lathe.Part{lathe.Text{Text: instructions + "\n\n"}}, messages[0].Parts)
		messages = messages[1:]
	}
	return slices.Concat([]lathe.Message{first}, messages)
}
