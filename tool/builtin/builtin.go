// Package builtin contains the tools that come with Lathe: the time, exact arithmetic, and a small state to read and change, which
// evaluations use.
//
// The tools do no I/O. They explain refusals to the model by tool.Fail.
package builtin

import (
	"time"

	"github.com/lathe-run/lathe"
)

// origin is the origin of all tools of this package.
const origin = "builtin"

// Options of [Tools].
type Options struct {
	Now func() time.Time // nil: time.Now
}

// Tools returns the built-in tools that need no configuration: get_current_time and calculator. Both only read.
func Tools(opts *Options) []lathe.Tool {
	now := time.Now
	if opts != nil && opts.Now != nil {
		now = opts.Now
	}
	return []lathe.Tool{currentTime(now), Calculator()}
}

// Names returns the names of all tools of this package, with those of a [Workspace], sorted. It makes no tools.
func Names() []string {
	return []string{"calculator", "facts_commit", "get_current_time", "state_get", "state_patch"}
}
