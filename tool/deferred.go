package tool

import (
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/policy"
)

// A deferral is what a run that defers tools has besides its view. The definitions that were sent never change their order:
// those that a search finds are appended, so that a server which keeps the prompt of the last model call can use it again.
type deferral struct {
	on       bool // else nothing is deferred, and nothing below is set
	search   *Search
	full     *advertised     // what can be found: the tools of the set that the model may be offered
	spec     *lathe.ToolSpec // of the search, the same for the whole run
	entry    *entry          // the search over full, as of the last load
	sent     *advertised     // what was sent last
	deferred int             // tools whose definitions were not sent when the run began
	limits   lathe.Limits    // of the run
}

// builtinOrigin is the origin of the tools of package builtin.
const builtinOrigin = "builtin"

// begin decides whether the run defers its tools, and lists its definitions.
func (v *view) begin(opts *RunOptions, settings *lathe.Settings, limits *lathe.Limits) {
	specs := v.judged()
	search := &v.r.set.search
	full := v.r.advertised.get(v.registry, specs, false)
	if search.Mode == SearchAuto && len(specs) <= min(search.AboveTools, limits.MaxTools) && full.size() <= min(search.AboveBytes, limits.MaxToolsBytes) {
		v.shown = v.list(specs)
		return
	}
	spec := full.searchSpec()
	if held := v.withholdSearch(spec); held.Reason != "" {
		v.withheld = append(v.withheld, held)
		slices.SortFunc(v.withheld, func(a, b event.WithheldTool) int { return strings.Compare(a.Tool, b.Tool) })
		v.shown = v.list(specs)
		return
	}
	base := v.base(full, spec, opts, settings, limits)
	if len(base) == len(specs) {
		v.shown = v.list(specs)
		return
	}
	v.deferral = deferral{on: true, search: search, full: full, spec: spec, deferred: len(specs) - len(base), limits: *limits}
	// Conversations begin with many different lists: only the last is kept, as of lists with tools of a client, so that they do not
	// replace the lists of the set, whose indexes are worth keeping.
	v.send(v.r.advertised.get(v.registry, v.withClient(append(base, spec)), true))
	if opts.Resumed != nil {
		v.append(opts.Resumed.Loaded)
	}
}

// withholdSearch returns why the search is not offered, without a reason if it is.
func (v *view) withholdSearch(spec *lathe.ToolSpec) event.WithheldTool {
	verdict := judgeTool(v.r.opts.Policy, v.run, spec)
	held := event.WithheldTool{Tool: spec.Name, Rule: verdict.Rule}
	switch verdict.Decision {
	case lathe.Allow:
		return event.WithheldTool{}
	case lathe.Ask:
		held.Reason = event.WithheldApproval
	default:
		held.Reason = event.WithheldPolicy
	}
	return held
}

// base returns the definitions of the set that the run sends from its first model call on. Of the tools whose
// calls are in the history it has the last ones, as far as the limits on loaded tools and on definitions go.
func (v *view) base(full *advertised, search *lathe.ToolSpec, opts *RunOptions, settings *lathe.Settings, limits *lathe.Limits) []*lathe.ToolSpec {
	s := &v.r.set.search
	chosen := ""
	if settings.ToolChoice.Mode == lathe.ChoiceFunction {
		_, _, chosen = v.lookup(settings.ToolChoice.Name)
	}
	always := func(spec *lathe.ToolSpec) bool {
		return spec.Origin == builtinOrigin || spec.Name == chosen ||
			slices.ContainsFunc(s.Always, func(pattern string) bool { return policy.Match(pattern, spec.Name) })
	}
	var base []*lathe.ToolSpec
	space := capacity{tools: limits.MaxTools - len(v.client), bytes: limits.MaxToolsBytes}
	space.take(search)
	for _, spec := range v.client {
		space.bytes -= definitionSize(spec)
	}
	for _, spec := range full.specs {
		if always(spec) {
			base = append(base, spec)
			space.take(spec)
		}
	}
	space.tools = min(space.tools, s.MaxLoaded)
	history := opts.History
	if r := opts.Resumed; r != nil && r.Started > 0 {
		history = history[:min(r.Started, len(history))]
	}
	for _, m := range slices.Backward(history) {
		for _, p := range slices.Backward(m.Parts) {
			c, ok := p.(lathe.ToolCall)
			if !ok || space.tools < 1 {
				continue
			}
			_, _, name := v.lookup(c.Name)
			if spec := full.find(name); spec != nil && !slices.Contains(base, spec) && space.take(spec) {
				base = append(base, spec)
			}
		}
	}
	return base
}

// A capacity is what the limits on definitions leave for further ones.
type capacity struct{ tools, bytes int }

// take reports whether the definition fits, and subtracts its size if it does.
func (r *capacity) take(spec *lathe.ToolSpec) bool {
	size := definitionSize(spec)
	if r.tools < 1 || size > r.bytes {
		return false
	}
	r.tools--
	r.bytes -= size
	return true
}

// capacity returns what the limits leave for tools to load.
func (d *deferral) capacity() capacity {
	loaded := len(d.sent.specs) - d.sent.sorted
	return capacity{tools: min(d.search.MaxLoaded-loaded, d.limits.MaxTools-len(d.sent.specs)), bytes: d.limits.MaxToolsBytes - d.sent.size()}
}

// send makes the list the one that is sent from now on.
func (v *view) send(list *advertised) {
	d := &v.deferral
	v.shown, d.sent = list, list
	d.entry = &entry{tool: &searcher{spec: d.spec, full: d.full, sent: list, capacity: d.capacity(), limits: d.limits}, spec: d.spec, args: searchArguments(), show: showAll}
}

// append sends the definitions of the named tools, too, in that order. It skips names that cannot be found and those that are
// sent already.
func (v *view) append(names []string) (appended []string) {
	var specs []*lathe.ToolSpec
	for _, name := range names {
		spec := v.deferral.full.find(name)
		if spec != nil && v.shown.find(name) == nil && !slices.Contains(specs, spec) {
			specs, appended = append(specs, spec), append(appended, name)
		}
	}
	if len(specs) > 0 {
		v.send(newAdvertised(slices.Concat(v.shown.specs, specs), v.shown.sorted))
	}
	return appended
}

// resent returns the definitions that were sent last, as the set has them now. specs are those that the model may be offered
// now. The definition of a tool that is not among them stays.
func (v *view) resent(specs []*lathe.ToolSpec) *advertised {
	d := &v.deferral
	d.full = v.r.advertised.get(v.registry, specs, false)
	now := make([]*lathe.ToolSpec, len(d.sent.specs))
	for i, old := range d.sent.specs {
		now[i] = old
		if spec := d.full.find(old.Name); spec != nil && v.client[old.Name] == nil {
			now[i] = spec
		}
	}
	if slices.Equal(now, d.sent.specs) {
		v.send(d.sent)
	} else {
		v.send(newAdvertised(now, d.sent.sorted))
	}
	return v.shown
}

// callable returns the definitions of the set that the run may call, and those of its client, sorted by name; of a run that
// defers its tools, only those of the set.
func (v *view) callable() []*lathe.ToolSpec {
	if v.deferral.on {
		return v.deferral.full.specs
	}
	return v.advertise().specs
}

// Deferred returns the number of tools whose definitions the run did not send when it began, and for which its model can
// search.
func (w *Work) Deferred() int { return w.tools.deferral.deferred }

// mayLoad reports whether a call of the tool may load definitions: see [load].
func (v *view) mayLoad(spec *lathe.ToolSpec) bool {
	return v.deferral.on && (spec == v.deferral.spec || v.shown.find(spec.Name) == nil)
}

// load loads the tools that a search has found, and a tool that the model has called though it was not sent its definition. It
// publishes that before the result of the call: a run that is resumed from its events has loaded what the answers in its
// history say. If the result is not stored, the search is made again, with the same answer.
func load(c *call) {
	w := c.w
	d := &w.tools.deferral
	if c.entry == nil || !w.tools.mayLoad(c.entry.spec) || c.Refuse != "" {
		return
	}
	var names []string
	if c.entry.spec != d.spec {
		if space := d.capacity(); space.take(c.entry.spec) {
			names = []string{c.entry.spec.Name}
		}
	} else if c.code == "" && c.toolCode == "" && c.source == fromTool && !c.noop {
		names = foundNames(c.out.Data)
	}
	if loaded := w.tools.append(names); len(loaded) > 0 {
		c.emit(&event.ToolsLoaded{ToolCallID: c.ID, Seq: c.seq, Tools: loaded, Hash: w.tools.shown.hash()})
	}
}
