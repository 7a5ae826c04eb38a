package tool

import (
	"cmp"
	"context"
	"slices"

	"github.com/lathe-run/lathe"
)

// A Scope limits a run that is started inside a tool call: the run may not have more tools or budget than the calling run.
type Scope struct {
	// Tools are the tools of the runner that the calling run offers its model, or lets it search for, sorted by name. They do not include
	// client tools. The slice must not be changed.
	Tools []*lathe.ToolSpec
	// Limits are those of the calling run, except that max_total_tool_calls, max_tokens_total and max_cost are the amounts that remain. If
	// Spent is not "", one of these amounts may be 0 or less. Do not start a run then: a limit of 0 would mean its default or no limit.
	Limits lathe.Limits
	// Spent is the key of a limit of which nothing remains, such as "max_cost"; "": no limit is used up.
	Spent string
}

type scopeKey struct{}

// ScopeFrom returns the scope of the tool call to which ctx belongs. It is nil unless the tool is a [RunStarter]. The caller must not
// change it.
func ScopeFrom(ctx context.Context) *Scope {
	s, _ := ctx.Value(scopeKey{}).(*Scope)
	return s
}

// Spent sets the totals that the run has spent on model calls so far, in tokens and US dollars. They replace those of an earlier call of
// Spent. [Scope] subtracts them from the limits of runs that tools start.
func (w *Work) Spent(usage lathe.Usage, cost float64) {
	w.usage, w.cost = usage, cost
}

// scopeFor returns the scope of calls of e, or nil if e starts no runs.
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
	l.MaxToolCalls -= w.next
	if l.MaxToolCalls <= 0 {
		s.Spent = keyMaxToolCalls
	}
	l.MaxTokensTotal -= w.usage.Total()
	if l.MaxTokensTotal <= 0 {
		s.Spent = "max_tokens_total"
	}
	if l.MaxCost > 0 { // 0 is no limit
		l.MaxCost -= w.cost
		if l.MaxCost <= 0 {
			s.Spent = "max_cost"
		}
	}
	return s
}

// addChild records the run that an attempt started; nil: none. The usage, cost and tools of runs of earlier attempts are added to its own.
func (c *call) addChild(run *lathe.ChildRun) {
	if run != nil && c.child != nil {
		sum := *run
		sum.Usage.Add(c.child.Usage)
		sum.Cost += c.child.Cost
		sum.Tools = slices.Concat(c.child.Tools, run.Tools)
		run = &sum
	}
	c.child = cmp.Or(run, c.child)
}

// countChild counts the tools of the run that the call started as tools of this run, because a policy that depends on what a run has read
// must include them.
func (w *Work) countChild(c *call, out *Outcome) {
	child := c.child
	if child == nil {
		return
	}
	out.ChildUsage.Add(child.Usage)
	out.ChildCost += child.Cost
	for _, name := range child.Tools {
		w.used.use(w.tools.known(name)).Calls++
	}
}
