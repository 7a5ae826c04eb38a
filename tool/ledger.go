package tool

import (
	"maps"
	"slices"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// ledger keeps the last result of each tool, or of each tool and target where the tool says which
// of its arguments name what it acts on.
type ledger struct {
	failed  map[ledgerKey]bool
	success bool
}

// ledgerKey is a tool and a target. A call whose target could not be read stands under the empty
// target, and any success of the tool clears it.
type ledgerKey struct{ tool, target string }

func (l *ledger) add(c *call) {
	l.mark(ledgerKey{c.tool, c.target()}, c.code == "")
}

// mark notes the last result under key.
func (l *ledger) mark(key ledgerKey, ok bool) {
	if !ok {
		if l.failed == nil {
			l.failed = map[ledgerKey]bool{}
		}
		l.failed[key] = true
		return
	}
	l.success = true
	if l.failed != nil {
		delete(l.failed, key)
		delete(l.failed, ledgerKey{tool: key.tool})
	}
}

// target is the canonical text of the argument fields that name what the call acts on.
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

// Failed returns the names of the tools whose last result was an error, sorted. Calls to tools
// that there are not count as "unknown".
func (w *Work) Failed() []string {
	names := map[string]bool{}
	for key := range w.ledger.failed {
		names[key.tool] = true
	}
	if len(names) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(names))
}

// Succeeded reports whether any call was answered with a result that is no error.
func (w *Work) Succeeded() bool { return w.ledger.success }
