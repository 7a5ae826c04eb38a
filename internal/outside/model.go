package outside

import (
	"context"
	"iter"
	"sync/atomic"

	"github.com/lathe-run/lathe"
)

// A Counter is a decorator of a model: it counts the characters of its answers.
type Counter struct {
	lathe.Model
	Characters atomic.Int64
}

// Unwrap returns the model below, so that lathe.ModelAs finds its optional abilities.
func (c *Counter) Unwrap() lathe.Model { return c.Model }

// Generate passes the turn on and counts its text.
func (c *Counter) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		for d, err := range c.Model.Generate(ctx, req) {
			if d.Kind == lathe.DeltaText {
				c.Characters.Add(int64(len([]rune(d.Text))))
			}
			if !yield(d, err) {
				return
			}
		}
	}
}
