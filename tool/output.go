package tool

import (
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// badOutput is stage 11: the output is JSON in UTF-8 and, where the tool declares it and has not
// failed, follows the output schema. An output without data counts as null.
func (w *Work) badOutput(c *call) (ended bool) {
	if c.noop {
		return false
	}
	if c.out == nil {
		return c.end(lathe.CodeInvalidOutput)
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
		return c.end(lathe.CodeInvalidOutput)
	}
	if c.entry != nil && c.entry.output != nil && !c.out.IsError && !c.answered && c.entry.output.Validate(c.data) != nil {
		return c.end(lathe.CodeInvalidOutput)
	}
	return false
}
