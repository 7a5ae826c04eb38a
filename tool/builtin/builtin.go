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

// Options configure [Tools].
type Options struct {
	Now func() time.Time // clock of get_current_time; nil: time.Now
}

// Tools returns the built-in tools that need no configuration, get_current_time and calculator. Both are read-only. opts may be nil.
func Tools(opts *Options) []lathe.Tool {
	now := time.Now
	if opts != nil && opts.Now != nil {
		now = opts.Now
	}
	return []lathe.Tool{currentTime(now), Calculator()}
}

// Names returns the names of all tools of this package, including those of a [Workspace], sorted.
func Names() []string {
	return []string{"calculator", "facts_commit", "get_current_time", "state_get", "state_patch"}
}
