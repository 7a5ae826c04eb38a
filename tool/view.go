package tool

import (
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// view is what one run has of the tools of its set, and of those of its client.
type view struct {
	r          *Runner
	run        *lathe.RunInfo
	maxDepth   int // a run at this depth starts no other
	deferral   deferral
	unsearched unsearched // why the run defers nothing
	registry   *registry
	allow      map[string]bool // nil: all
	client     map[string]*lathe.ToolSpec
	aliases    map[string]string // names of the client's tools by how their aliases are spelled, "" for several; nil: no tool has aliases
	handOver   bool              // unknown names are the client's
	shown      *advertised       // nil: not asked for yet
	withheld   []event.WithheldTool
}

// noRegistry is the state of a runner without a set.
var noRegistry = &registry{}

// open sets the view of a run.
func (v *view) open(r *Runner, run *lathe.RunInfo, opts *RunOptions, settings *lathe.Settings, limits *lathe.Limits) {
	*v = view{r: r, run: run, maxDepth: max(limits.MaxDepth, 0), registry: noRegistry}
	if r.set != nil {
		v.registry = r.set.now.Load()
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
	if len(opts.ClientTools) > 0 {
		v.client = make(map[string]*lathe.ToolSpec, len(opts.ClientTools))
		for _, spec := range opts.ClientTools {
			if spec != nil && (v.has(spec.Name) == nil || spec.Disallowed && !v.may(spec.Name)) {
				v.client[spec.Name] = spec
			}
		}
		if slices.ContainsFunc(opts.ClientTools, func(spec *lathe.ToolSpec) bool { return spec != nil && len(spec.Aliases) > 0 }) {
			v.aliases = make(map[string]string, len(v.client))
			for _, spec := range v.client {
				v.alias(spec)
			}
		}
	}
	if opts.Defer && r.set != nil && r.set.search.Mode != SearchOff {
		if v.client[SearchName] != nil {
			v.unsearched = searchTaken
			return
		}
		v.begin(opts, settings, limits)
	}
}

// Specs returns the definitions to send to the model: those of the client and those of the set that
// are not hidden, that the run may use and is not too deep for, and that the policy allows or asks
// for; sorted by name. If the run defers tools, their definitions are missing, that of the search is there, and those of loaded
// tools follow in load order: what was returned before is a prefix of what is returned later, as long as the set does not
// change. The slice is the same until a tool is loaded or the set has changed, and must not be changed.
func (w *Work) Specs() []*lathe.ToolSpec { return w.tools.advertise().specs }

// SpecsHash returns the hash of the definitions that [Work.Specs] returns, as [event.ToolsDigest] has it: 64 hex digits.
// Runs that offer the same definitions share it.
func (w *Work) SpecsHash() string { return w.tools.advertise().hash() }

// Offered returns the definition of that exact name, or alias, among [Work.Specs], or nil.
func (w *Work) Offered(name string) *lathe.ToolSpec {
	return w.tools.advertise().find(w.tools.canonical(name))
}

// advertise decides which tools are offered, once for the run.
func (v *view) advertise() *advertised {
	if v.shown != nil {
		return v.shown
	}
	specs := v.judged()
	if v.deferral.on {
		v.shown = v.resent(specs)
	} else {
		v.shown = v.list(specs)
	}
	return v.shown
}

// list returns the list of the definitions and those of the client.
func (v *view) list(specs []*lathe.ToolSpec) *advertised {
	if len(v.client) > 0 {
		specs = v.withClient(specs)
	}
	return v.r.advertised.get(v.registry, specs, len(v.client) > 0)
}

// withClient appends the definitions of the client, and sorts all by name.
func (v *view) withClient(specs []*lathe.ToolSpec) []*lathe.ToolSpec {
	for _, spec := range v.client {
		specs = append(specs, spec)
	}
	return sortedByName(specs)
}

// sortedByName sorts the definitions and returns them.
func sortedByName(specs []*lathe.ToolSpec) []*lathe.ToolSpec {
	slices.SortFunc(specs, func(a, b *lathe.ToolSpec) int { return strings.Compare(a.Name, b.Name) })
	return specs
}

// judged returns the definitions of the tools of the set that may be offered, sorted by name, and sets which ones are withheld.
func (v *view) judged() []*lathe.ToolSpec {
	specs := make([]*lathe.ToolSpec, 0, len(v.registry.sorted))
	v.withheld = nil
	for _, e := range v.registry.sorted {
		may := v.may(e.spec.Name)
		if e.spec.Hidden || !may && v.client[e.spec.Name] == nil || !e.spec.For(v.run.Principal, v.run.Profile) {
			continue
		}
		held := v.withhold(e)
		switch {
		case may && held.Reason == "":
			specs = append(specs, e.spec)
		case may:
			v.withheld = append(v.withheld, held)
		case held.Reason != "": // a disallowed tool is not shown either
			delete(v.client, e.spec.Name)
		}
	}
	return specs
}

// withhold returns why a tool is not offered, without a reason if it is. A tool that needs an approval is not offered
// if no approver is configured.
func (v *view) withhold(e *entry) event.WithheldTool {
	held := event.WithheldTool{Tool: e.spec.Name}
	if v.tooDeep(e) {
		held.Reason = event.WithheldDepth
		return held
	}
	if e.spec.Owner == lathe.OwnerClient {
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
