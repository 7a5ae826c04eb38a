package tool

import (
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// view is what one run has of the tools of its set, and of those of its client.
type view struct {
	r        *Runner
	run      *lathe.RunInfo
	maxDepth int // a run at this depth starts no other
	registry *registry
	allow    map[string]bool // nil: all
	client   map[string]*lathe.ToolSpec
	handOver bool        // unknown names are the client's
	shown    *advertised // nil: not asked for yet
	withheld []event.WithheldTool
}

// noRegistry is the state of a runner without a set.
var noRegistry = &registry{}

// open sets the view of a run; its slice of withheld tools is used again.
func (v *view) open(r *Runner, run *lathe.RunInfo, opts *RunOptions, maxDepth int) {
	*v = view{r: r, run: run, maxDepth: max(maxDepth, 0), withheld: v.withheld}
	if r.set != nil {
		v.registry = r.set.now.Load()
	} else {
		v.registry = noRegistry
	}
	if opts == nil {
		return
	}
	v.handOver = opts.HandOver
	if opts.Allow != nil {
		v.allow = make(map[string]bool, len(opts.Allow))
		for _, name := range opts.Allow {
			v.allow[name] = true
		}
	}
	if len(opts.ClientTools) == 0 {
		return
	}
	v.client = make(map[string]*lathe.ToolSpec, len(opts.ClientTools))
	for _, spec := range opts.ClientTools {
		if spec != nil && v.has(spec.Name) == nil {
			v.client[spec.Name] = spec
		}
	}
}

// Specs returns the definitions to send to the model: those of the client and those of the set that
// are not hidden, that the run may use and is not too deep for, and that the policy allows or asks
// for; sorted by name. The slice is the same each time and must not be changed.
func (w *Work) Specs() []*lathe.ToolSpec { return w.tools.advertise().specs }

// SpecsHash returns the hash of the definitions that [Work.Specs] returns, as [event.ToolsDigest] has it: 64 hex digits.
// Runs that offer the same definitions share it.
func (w *Work) SpecsHash() string { return w.tools.advertise().hash() }

// advertise decides which tools are offered, once for the run.
func (v *view) advertise() *advertised {
	if v.shown != nil {
		return v.shown
	}
	var space [32]*lathe.ToolSpec
	specs := space[:0]
	v.withheld = v.withheld[:0]
	for _, e := range v.registry.sorted {
		if e.spec.Hidden || !v.may(e.spec.Name) || !e.spec.For(v.run.Principal, v.run.Profile) {
			continue
		}
		if held := v.withhold(e); held.Reason != "" {
			v.withheld = append(v.withheld, held)
			continue
		}
		specs = append(specs, e.spec)
	}
	if len(v.client) > 0 {
		for _, spec := range v.client {
			specs = append(specs, spec)
		}
		slices.SortFunc(specs, func(a, b *lathe.ToolSpec) int { return strings.Compare(a.Name, b.Name) })
	}
	v.shown = v.r.advertised.get(v.registry, specs, len(v.client) > 0)
	return v.shown
}

// withhold returns why a tool is not offered, without a reason if it is. A tool that needs an approval is not offered
// if no approver is configured.
func (v *view) withhold(e *entry) event.WithheldTool {
	held := event.WithheldTool{Tool: e.spec.Name}
	switch {
	case v.tooDeep(e):
		held.Reason = event.WithheldDepth
		return held
	case e.spec.Owner == lathe.OwnerClient:
		return held
	}
	verdict := judgeTool(v.r.opts.Policy, v.run, e.spec)
	switch {
	case verdict.Decision == lathe.Allow, verdict.Decision == lathe.Ask && v.r.opts.Approver != nil:
		return held
	case verdict.Decision == lathe.Ask && e.spec.Effect == lathe.EffectUndeclared:
		held.Reason = event.WithheldUndeclared
	case verdict.Decision == lathe.Ask:
		held.Reason = event.WithheldApproval
	default:
		held.Reason = event.WithheldPolicy
	}
	held.Rule = verdict.Rule
	return held
}

// Withheld returns the registered tools that the run may use and that its model is not offered, sorted by name, with the
// reason.
func (w *Work) Withheld() []event.WithheldTool {
	w.tools.advertise()
	return slices.Clone(w.tools.withheld)
}

// has returns the tool of the set, as far as the principal of the run has it.
func (v *view) has(name string) *entry {
	if e := v.registry.byName[name]; e != nil && e.spec.For(v.run.Principal, v.run.Profile) {
		return e
	}
	return nil
}

// may reports whether the run may use the tool of the set at all.
func (v *view) may(name string) bool { return v.allow == nil || v.allow[name] }

// tooDeep reports whether the tool starts a run and the depth of this run allows none.
func (v *view) tooDeep(e *entry) bool { return e.startsRun && v.run.Depth >= v.maxDepth }
