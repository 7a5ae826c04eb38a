package loop

import (
	"context"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/stack"
)

// A PanicError is wrapped by the error of a run whose model panicked. Stack lists the functions on the stack, without arguments.
type PanicError struct{ Stack string }

// Error returns a fixed text, without the value of the panic.
func (*PanicError) Error() string { return "the model panicked" }

// generate calls the model and processes its deltas. If the model panics, the attempt has failed, whatever the model returned before. A
// panic of the consumer of the events is passed on.
func (c *modelCall) generate(ctx context.Context) {
	req, settle, ok := c.admit(ctx)
	if !ok {
		return
	}
	defer settle() // also after a panic
	defer func() {
		if c.run.out.delivering {
			return
		}
		if recover() != nil { // the value of the panic may contain content
			c.finish = nil
			c.err = lathe.CodeInternal.Wrap("loop: model call", &PanicError{Stack: stack.Functions()})
		}
	}()
	c.run.loop.model.Generate(ctx, req)(c.stream.delta)
}
