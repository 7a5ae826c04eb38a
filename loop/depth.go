package loop

import (
	"context"

	"github.com/lathe-run/lathe"
)

// depthOf returns the depth of a run that is started under ctx: 1 more than the depth of the run whose tool call ctx belongs to, and 0
// outside of tool calls.
func depthOf(ctx context.Context) int {
	if m := lathe.CallMetaFrom(ctx); m != nil {
		return m.Depth + 1
	}
	return 0
}
