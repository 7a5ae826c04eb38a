package tool

import (
	"maps"
	"slices"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// failures records which tools failed in their last call, by tool and, if the tool declares which of its arguments name the target of a
// call, by target.
type failures struct {
	failed  map[failureKey]bool
	success bool // a call succeeded
}

// failureKey is a tool and a target. A call whose target could not be read has the target "", which any success of the tool clears.
type failureKey struct{ tool, target string }

// mark stores the last result of key.
func (f *failures) mark(key failureKey, ok bool) {
	if !ok {
		if f.failed == nil {
			f.failed = map[failureKey]bool{}
		}
		f.failed[key] = true
		return
	}
	f.success = true
	delete(f.failed, key)
	delete(f.failed, failureKey{tool: key.tool})
}

// target returns the canonical text of the argument fields that name the target of the call.
func (c *call) target() string {
	if c.entry == nil || len(c.entry.spec.Target) == 0 || !c.parsed {
		return ""
	}
	var b []byte
	for _, field := range c.entry.spec.Target {
		b = append(b, '|')
		if raw, ok := rawjson.Get(c.args, field); ok {
			b, _ = rawjson.AppendCanonical(b, raw)
		}
	}
	return string(b)
}

// Failed returns the names of the tools whose last call failed, sorted; nil if no last call failed. A tool with a Target is listed if the
// last call for one of its targets failed. Calls of unknown tools count as the tool "unknown".
func (w *Work) Failed() []string {
	names := map[string]bool{}
	for key := range w.failures.failed {
		names[key.tool] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// Succeeded reports whether any call of this Work succeeded. Calls from before the run was resumed count, too.
func (w *Work) Succeeded() bool { return w.failures.success }
