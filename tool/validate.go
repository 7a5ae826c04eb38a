package tool

import (
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/schema"
)

// maxViolations bounds the violations that a model is told of one call.
const maxViolations = 20

// invalid is stage 5: the arguments against the tool's schema, all violations at once. Names that differ only in letter case are
// violations unless the schema declares them: the policy and the tool could read different members.
func (w *Work) invalid(c *call) (ended bool) {
	violations := c.entry.args.ValidateArguments(c.args)
	if len(violations) == 0 {
		return false
	}
	c.detailViolations(violations)
	return c.end(lathe.CodeInvalidArguments)
}

func (c *call) detailViolations(violations []schema.Violation) {
	c.detail = append(c.detail, `,"errors":[`...)
	for i, v := range violations[:min(len(violations), maxViolations)] {
		if i > 0 {
			c.detail = append(c.detail, ',')
		}
		c.detail = append(c.detail, `{"pointer":`...)
		c.detail = appendString(c.detail, clip(v.Pointer, maxDetailBytes))
		c.detail = append(c.detail, `,"keyword":`...)
		c.detail = appendString(c.detail, clip(v.Keyword, maxDetailBytes))
		c.detail = append(c.detail, `,"message":`...)
		c.detail = appendString(c.detail, clip(v.Message, maxDetailBytes))
		c.detail = append(c.detail, '}')
	}
	c.detail = append(c.detail, ']')
	if n := len(violations) - maxViolations; n > 0 {
		c.detailInt("more_errors", int64(n))
	}
}
