package outside

import (
	"context"
	"iter"
	"sync/atomic"

	"github.com/lathe-run/lathe"
)

// A Counter is a model that counts the characters of the answers of another model.
type Counter struct {
	lathe.Model
	Characters atomic.Int64
}

// Unwrap returns the other model, so that lathe.ModelAs finds its optional interfaces.
func (c *Counter) Unwrap() lathe.Model { return c.Model }

// Generate passes on the turn of the other model and counts the characters of its text.
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
