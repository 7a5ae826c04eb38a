package tool

import (
	"context"
	"fmt"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// badOutput is stage 11: the output is JSON in UTF-8 and, where the tool declares it and has not
// failed, follows the output schema. An output without data counts as null.
func (w *Work) badOutput(ctx context.Context, c *call) (ended bool) {
	if c.noop {
		return false
	}
	if c.out == nil {
		return w.endOutput(ctx, c, "the tool returned no output", nil)
	}
	if c.out.IsError {
		c.toolCode = lathe.CodeExecutionFailed
		if c.out.Code != "" {
			c.toolCode = callCode(c.out.Code)
		}
	}
	c.size = len(c.out.Data)
	c.blobs = c.out.Blobs
	c.data = trim(c.out.Data)
	if len(c.data) == 0 {
		c.data = nil
		if !c.out.IsError {
			c.data = []byte("null")
		}
		return false
	}
	if err := rawjson.Check(c.data, rawjson.Limits{MaxDepth: w.limits.MaxJSONDepth, MaxKeys: w.limits.MaxJSONKeys}); err != nil {
		c.jsonError(w, err)
		return w.endOutput(ctx, c, "the output is not JSON within the limits on JSON", err)
	}
	if c.entry == nil || c.entry.output == nil || c.out.IsError || c.answered {
		return false
	}
	if violations := c.entry.output.Validate(c.data); violations != nil {
		return w.endOutput(ctx, c, "the output does not follow the output schema", fmt.Errorf("%v", violations))
	}
	return false
}

// endOutput ends the call with invalid_output. The cause is for operators; what is known beyond it may hold output, and
// only OnError gets it.
func (w *Work) endOutput(ctx context.Context, c *call, cause string, err error) (ended bool) {
	c.cause = cause
	w.tell(ctx, c, &CauseError{Cause: cause, Err: err})
	return c.end(lathe.CodeInvalidOutput)
}
