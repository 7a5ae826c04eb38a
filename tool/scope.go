package tool

import (
	"context"

	"github.com/lathe-run/lathe"
)

// A Scope bounds a run that is started inside a tool call: it may not have more than the run that made the call.
type Scope struct {
	// Tools are those that the calling run offers its model, or lets it search for, and that Lathe executes, sorted by name.
	// Those of its client are not among them. The slice must not be changed.
	Tools []*lathe.ToolSpec
	// Limits are those of the calling run, with max_total_tool_calls, max_tokens_total and max_cost reduced to what is left.
	Limits lathe.Limits
	// Spent is the key of the limit of which nothing is left, "" while each has something left.
	Spent string
}

type scopeKey struct{}

// ScopeFrom returns the scope of the call that ctx belongs to, or nil. Only calls of a [RunStarter] have one. It must not
// be changed.
func ScopeFrom(ctx context.Context) *Scope {
	s, _ := ctx.Value(scopeKey{}).(*Scope)
	return s
}

// Spent records what the run has spent on model calls so far. Tools that start runs get what is left of the limits.
func (w *Work) Spent(usage lathe.Usage, cost float64) {
	w.usage, w.cost = usage, cost
}

// scopeFor returns the scope of calls to e, nil where e starts no runs.
func (w *Work) scopeFor(e *entry) *Scope {
	if !e.startsRun {
		return nil
	}
	s := &Scope{Limits: w.limits}
	for _, spec := range w.tools.callable() {
		if spec.Owner == lathe.OwnerServer && w.tools.client[spec.Name] == nil {
			s.Tools = append(s.Tools, spec)
		}
	}
	l := &s.Limits
	if l.MaxToolCalls -= w.next; l.MaxToolCalls <= 0 {
		s.Spent = keyMaxToolCalls
	}
	if l.MaxTokensTotal -= w.usage.Total(); l.MaxTokensTotal <= 0 {
		s.Spent = "max_tokens_total"
	}
	if l.MaxCost > 0 {
		if l.MaxCost -= w.cost; l.MaxCost <= 0 {
			s.Spent = "max_cost"
		}
	}
	return s
}

// countChild counts the tools that ran in a run which the call started as tools of this run: a policy that follows what a
// run has read must include them.
func (w *Work) countChild(c *call, out *Outcome) {
	child := c.child
	if child == nil {
		return
	}
	out.ChildUsage.Add(child.Usage)
	out.ChildCost += child.Cost
	for _, name := range child.Tools {
		name, spec := w.tools.known(name)
		w.used.use(name, spec).Calls++
	}
}
