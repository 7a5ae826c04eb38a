package tool

import (
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/schema"
	"github.com/lathe-run/lathe/internal/text"
)

// maxViolations is the maximum number of violations in the error of one call.
const maxViolations = 20

// validate is stage 5. It checks the arguments against the tool's schema; the error lists all violations. Names that differ only in letter
// case are violations unless the schema declares both, because the policy and the tool could read different members.
func validate(c *call) ending {
	violations := c.entry.args.Schema().ValidateArguments(c.args)
	if len(violations) == 0 {
		return proceed
	}
	c.detailViolations(violations)
	return fail(lathe.CodeInvalidArguments)
}

func (f *failure) detailViolations(violations []schema.Violation) {
	member := func(head, value string) {
		f.detail = appendString(append(f.detail, head...), text.Cut(value, maxDetailBytes))
	}
	f.detail = append(f.detail, `,"errors":[`...)
	for i, v := range violations[:min(len(violations), maxViolations)] {
		if i > 0 {
			f.detail = append(f.detail, ',')
		}
		member(`{"pointer":`, v.Pointer)
		member(`,"keyword":`, v.Keyword)
		member(`,"message":`, v.Message)
		f.detail = append(f.detail, '}')
	}
	f.detail = append(f.detail, ']')
	if n := len(violations) - maxViolations; n > 0 {
		f.detailInt("more_errors", int64(n))
	}
}
