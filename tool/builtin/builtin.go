// Package builtin holds the tools that come with Lathe: the time, exact arithmetic, and a small
// state to read and change, which evaluations use.
//
// They do no I/O. What they refuse, they explain to the model with tool.Fail.
package builtin

import (
	"time"

	"github.com/lathe-run/lathe"
)

// origin is the Origin of all tools of this package.
const origin = "builtin"

// Options of [Tools].
type Options struct {
	Now func() time.Time // time.Now
}

// Tools returns the built-in tools that need nothing from their surroundings: get_current_time and
// calculator. Both only read.
func Tools(opts *Options) []lathe.Tool {
	now := time.Now
	if opts != nil && opts.Now != nil {
		now = opts.Now
	}
	return []lathe.Tool{currentTime(now), Calculator()}
}

// Names returns the names of all tools of this package, those of a [Workspace] among them, sorted. It
// makes none of them.
func Names() []string {
	return []string{"calculator", "facts_commit", "get_current_time", "state_get", "state_patch"}
}
