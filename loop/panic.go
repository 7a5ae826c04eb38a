package loop

import (
	"context"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/stack"
)

// A PanicError is the cause of the error of a run whose model panicked. It holds the functions on
// the stack and none of their values.
type PanicError struct{ Stack string }

// Error says that a model panicked.
func (*PanicError) Error() string { return "the model panicked" }

// generate has the model take its turn. A model that panics has failed, whatever it said before.
// A panic of the consumer of the events is passed on.
func (c *modelCall) generate(ctx context.Context) {
	req, settle, ok := c.admit(ctx)
	if !ok {
		return
	}
	defer settle() // after a panic, too
	defer func() {
		if c.run.out.delivering {
			return
		}
		if recover() != nil { // its value may hold content
			c.finish = nil
			c.err = &lathe.Error{Code: lathe.CodeInternal, Op: "loop: model call", Err: &PanicError{Stack: stack.Functions()}}
		}
	}()
	c.run.loop.model.Generate(ctx, req)(c.stream.delta)
}
