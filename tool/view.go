package tool

import (
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// view contains the tools of the set and of the client as one run sees them.
//
// open sets the first group of fields, which then remain, except that judgeTools and beginDeferral may remove tools from client.
//
// The second group depends on registry, the state of the set. It is computed by open for a run that may defer tools (beginDeferral), and
// otherwise by the first call of advertise. After that it changes in two places only: load adds the tools that a search has found to shown
// and deferral; Refresh replaces registry and sets shown to nil, so that advertise computes the group again, and restores the whole group if
// the new tools exceed a limit of the run.
type view struct {
	r          *Runner
	run        *lathe.RunInfo
	maxDepth   int             // a run at this depth may start no other
	unsearched unsearched      // the reason why the run defers nothing although the set has a search
	allow      map[string]bool // nil: all
	client     map[string]*lathe.ToolSpec
	aliases    map[string]string // names of the client's tools by spelling of their aliases, "" if several share one; nil: no tool has aliases
	handOver   bool              // unknown names are client tools

	registry *registry
	shown    *advertised // the definitions to send; nil: not computed
	withheld []event.WithheldTool
	deferral deferral
}

// noRegistry is the registry of a runner without a set.
var noRegistry = &registry{}

// open sets the view for a run.
func (v *view) open(r *Runner, run *lathe.RunInfo, opts *RunOptions, settings *lathe.Settings, limits *lathe.Limits) {
	*v = view{r: r, run: run, maxDepth: max(limits.MaxDepth, 0), registry: noRegistry}
	if r.set != nil {
		v.registry = r.set.now.Load()
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
			if spec == nil {
				continue
			}
			if len(spec.Aliases) > 0 {
				v.aliases = map[string]string{} // filled below
			}
			replacesTool := spec.Disallowed && !v.allows(spec.Name)
			if replacesTool || v.ofSet(spec.Name) == nil {
				v.client[spec.Name] = spec
			}
		}
		if v.aliases != nil {
			for _, spec := range v.client {
				v.addAliases(spec)
			}
		}
	}
	if opts.Defer && r.set != nil && r.set.search.Mode != SearchOff {
		if v.client[SearchName] != nil {
			v.unsearched = searchTaken
			return
		}
		v.beginDeferral(opts, settings, limits)
	}
}

// Specs returns the tool definitions to send to the model, sorted by name: those of the client, and those of the set that the run may use,
// that are not hidden, and that the policy neither denies nor withholds for lack of an approver. If the run defers tools (see [Search]), the
// search tool replaces the deferred ones, and loaded tools follow at the end in load order, so that each result is a prefix of the next one.
// The result changes only when a tool is loaded or the set changes. The slice must not be changed.
func (w *Work) Specs() []*lathe.ToolSpec { return w.tools.advertise().specs }

// SpecsHash returns a hash of the definitions in [Work.Specs] as 64 hexadecimal digits, for [event.ToolsDigest]. Equal definitions have
// equal hashes.
func (w *Work) SpecsHash() string { return w.tools.advertise().hash() }

// Offered returns the definition in [Work.Specs] with this name, or the definition of the client tool with this alias. It returns nil if
// there is neither.
func (w *Work) Offered(name string) *lathe.ToolSpec {
	return w.tools.advertise().find(w.tools.canonical(name))
}

// advertise returns the list of offered tools. The first call for a state of the set computes it.
func (v *view) advertise() *advertised {
	if v.shown != nil {
		return v.shown
	}
	specs := v.judgeTools()
	if v.deferral.on {
		v.updateSent(specs)
	} else {
		v.shown = v.list(specs)
	}
	return v.shown
}

// list returns the list of specs and the client's definitions.
func (v *view) list(specs []*lathe.ToolSpec) *advertised {
	if len(v.client) == 0 {
		return v.r.advertised.get(v.registry, specs)
	}
	specs = v.withClient(specs)
	return v.r.advertised.getMixed(specs, len(specs))
}

// withClient appends the client's definitions, and sorts all by name.
func (v *view) withClient(specs []*lathe.ToolSpec) []*lathe.ToolSpec {
	for _, spec := range v.client {
		specs = append(specs, spec)
	}
	slices.SortFunc(specs, func(a, b *lathe.ToolSpec) int { return strings.Compare(a.Name, b.Name) })
	return specs
}

// judgeTools decides about each tool of the set. It returns the definitions that may be offered, sorted by name, and sets withheld to the
// others that the run may use. It removes a client tool that replaces a tool which would be withheld.
func (v *view) judgeTools() []*lathe.ToolSpec {
	specs := make([]*lathe.ToolSpec, 0, len(v.registry.sorted))
	v.withheld = nil
	for _, e := range v.registry.sorted {
		if e.spec.Hidden || !e.spec.For(v.run.Principal, v.run.Profile) {
			continue
		}
		name := e.spec.Name
		isAllowed, isReplaced := v.allows(name), v.client[name] != nil
		if !isAllowed && !isReplaced {
			continue
		}
		held := v.whyWithheld(e)
		switch {
		case !isAllowed && held.Reason != "":
			delete(v.client, name)
		case isAllowed && held.Reason != "":
			v.withheld = append(v.withheld, held)
		case isAllowed:
			specs = append(specs, e.spec)
		}
	}
	return specs
}

// whyWithheld returns why a tool is not offered. Reason is "" if it is offered. A tool that requires an approval is not offered if no approver
// is configured.
func (v *view) whyWithheld(e *entry) event.WithheldTool {
	withheld := event.WithheldTool{Tool: e.spec.Name}
	if v.tooDeep(e) {
		withheld.Reason = event.WithheldDepth
		return withheld
	}
	if e.spec.Owner == lathe.OwnerClient {
		return withheld
	}
	verdict := judgeTool(v.r.opts.Policy, v.run, e.spec)
	switch {
	case verdict.Decision == lathe.Allow, verdict.Decision == lathe.Ask && v.r.opts.Approver != nil:
		return withheld
	case verdict.Decision == lathe.Ask && e.spec.Effect == lathe.EffectUndeclared:
		withheld.Reason = event.WithheldUndeclared
	case verdict.Decision == lathe.Ask:
		withheld.Reason = event.WithheldApproval
	default:
		withheld.Reason = event.WithheldPolicy
	}
	withheld.Rule = verdict.Rule
	return withheld
}

// Withheld returns the tools of the set that the run may use but whose definitions are not sent to its model, because of the policy or of
// max_depth, sorted by name, with reasons.
func (w *Work) Withheld() []event.WithheldTool {
	w.tools.advertise()
	return slices.Clone(w.tools.withheld)
}

// ofSet returns the tool of the set with this name if the principal of the run may use it, or nil.
func (v *view) ofSet(name string) *entry {
	if e := v.registry.byName[name]; e != nil && e.spec.For(v.run.Principal, v.run.Profile) {
		return e
	}
	return nil
}

// allows reports whether Allow permits the tool of the set.
func (v *view) allows(name string) bool { return v.allow == nil || v.allow[name] }

// tooDeep reports whether the tool starts a run but the depth of this run does not allow one.
func (v *view) tooDeep(e *entry) bool { return e.startsRun && v.run.Depth >= v.maxDepth }
