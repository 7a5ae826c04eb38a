package agent

import (
	"context"
	"iter"
	"slices"

	"github.com/lathe-run/lathe"
)

// prepared is a model whose requests Options.Prepare changes.
type prepared struct {
	lathe.Model
	prepare func(ctx context.Context, req *lathe.Request) error
}

// Unwrap returns the model, for [lathe.ModelAs].
func (p prepared) Unwrap() lathe.Model { return p.Model }

// Generate implements [lathe.Model].
func (p prepared) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	own := *req
	own.Messages, own.Tools = slices.Clone(req.Messages), slices.Clone(req.Tools)
	if err := p.prepare(ctx, &own); err != nil {
		return func(yield func(lathe.Delta, error) bool) { yield(lathe.Delta{}, err) }
	}
	return p.Model.Generate(ctx, &own)
}
