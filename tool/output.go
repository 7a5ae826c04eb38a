package tool

import (
	"context"
	"fmt"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// checkOutput is stage 11. The output must be JSON in UTF-8. If the tool declares an output schema and has not failed, the output must
// match it. An output without data counts as null.
func checkOutput(ctx context.Context, c *call) ending {
	if c.noop {
		return proceed
	}
	if c.out == nil {
		return refuseOutput(ctx, c, "the tool returned no output", nil)
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
		return proceed
	}
	if err := rawjson.Check(c.data, rawjson.Limits{MaxDepth: c.w.limits.MaxJSONDepth, MaxKeys: c.w.limits.MaxJSONKeys}); err != nil {
		c.jsonError(err)
		return refuseOutput(ctx, c, "the output is not JSON within the limits on JSON", err)
	}
	if c.entry == nil || c.entry.output == nil || c.out.IsError || c.source == fromApprover {
		return proceed
	}
	if violations := c.entry.output.Schema().Validate(c.data); violations != nil {
		return refuseOutput(ctx, c, "the output does not follow the output schema", fmt.Errorf("%v", violations))
	}
	return proceed
}

// refuseOutput ends the call with invalid_output. cause is for operators. err may contain output, and is passed only to OnError.
func refuseOutput(ctx context.Context, c *call, cause string, err error) ending {
	c.cause = cause
	reportError(ctx, c, lathe.CodeInvalidOutput, &CauseError{Cause: cause, Err: err})
	return fail(lathe.CodeInvalidOutput)
}
