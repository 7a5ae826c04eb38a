package tool

import (
	"cmp"
	"maps"
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
	full     *advertised  // what can be found: the tools of the set that the model may be offered
	entry    *entry       // the search over full, as of the last load
	sent     *advertised  // what was sent last
	before   int          // tools of sent that the runs of the history had loaded
	deferred int          // tools whose definitions were not sent when the run began
	limits   lathe.Limits // of the run
}

// builtinOrigin is the origin of the tools of package builtin.
const builtinOrigin = "builtin"

// begin decides whether the run defers its tools, and lists its definitions.
func (v *view) begin(opts *RunOptions, settings *lathe.Settings, limits *lathe.Limits) {
	specs := v.judged()
	search := &v.r.set.search
	full := v.r.advertised.get(v.registry, specs, false)
	// What the tools of the client leave of the limits counts.
	if space := v.besideClient(limits); search.Mode == SearchAuto && len(specs) <= min(search.AboveTools, space.tools) && full.size() <= min(search.AboveBytes, space.bytes) {
		v.shown = v.list(specs)
		return
	}
	if held := v.withholdSearch(); held.Reason != "" {
		v.withheld = append(v.withheld, held)
		slices.SortFunc(v.withheld, func(a, b event.WithheldTool) int { return strings.Compare(a.Tool, b.Tool) })
		v.shown, v.unsearched = v.list(specs), searchWithheld
		return
	}
	maps.DeleteFunc(v.client, func(name string, spec *lathe.ToolSpec) bool { return spec.Disallowed && v.has(name) != nil }) // they are deferred as others are
	base, space := v.base(full, settings, limits)
	loaded := v.loadedBefore(full, base, space, opts)
	if len(base)+len(loaded) == len(specs) {
		v.shown, v.unsearched = v.list(specs), nothingToSearch
		return
	}
	first := v.withClient(append(base, searchSpec))
	v.deferral = deferral{on: true, search: search, full: full, before: len(loaded), deferred: len(specs) - len(base) - len(loaded), limits: *limits}
	v.send(v.r.advertised.conversation(append(first, loaded...), len(first)))
	if opts.Resumed != nil {
		v.append(opts.Resumed.Loaded)
	}
}

// withholdSearch returns why the search is not offered, without a reason if it is.
func (v *view) withholdSearch() event.WithheldTool {
	verdict := judgeTool(v.r.opts.Policy, v.run, searchSpec)
	held := event.WithheldTool{Tool: SearchName, Rule: verdict.Rule}
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

// base returns the definitions of the set that every run sends from its first model call on, sorted by name, and what they and
// the tools of the client leave of the limits.
func (v *view) base(full *advertised, settings *lathe.Settings, limits *lathe.Limits) ([]*lathe.ToolSpec, capacity) {
	chosen := ""
	if settings.ToolChoice.Mode == lathe.ChoiceFunction {
		_, _, chosen = v.lookup(settings.ToolChoice.Name)
	}
	always := func(spec *lathe.ToolSpec) bool {
		return spec.Origin == builtinOrigin || spec.Name == chosen ||
			slices.ContainsFunc(v.r.set.search.Always, func(pattern string) bool { return policy.Match(pattern, spec.Name) })
	}
	var base []*lathe.ToolSpec
	space := v.besideClient(limits)
	space.take(searchSpec)
	for _, spec := range full.specs {
		if always(spec) {
			base = append(base, spec)
			space.take(spec)
		}
	}
	return base, space
}

// loadedBefore returns the definitions that the runs of the history loaded, in the order in which they did: of the tools that
// they called, and of those that their searches found. If the limits have no room for all, it returns those that were used last.
// The history may be a client's text: it names nothing that a search would not find.
func (v *view) loadedBefore(full *advertised, base []*lathe.ToolSpec, space capacity, opts *RunOptions) []*lathe.ToolSpec {
	history := opts.History
	if r := opts.Resumed; r != nil && r.Started > 0 {
		history = history[:min(r.Started, len(history))]
	}
	var used []*lathe.ToolSpec
	use := func(name string) {
		if _, always := slices.BinarySearchFunc(base, name, func(s *lathe.ToolSpec, n string) int { return strings.Compare(s.Name, n) }); always {
			return
		}
		if spec := full.find(name); spec != nil {
			used = append(used, spec)
		}
	}
	open := map[string]string{} // the names of the calls without a result; a server may use an ID again
	for _, m := range history {
		for _, p := range m.Parts {
			if c, ok := p.(lathe.ToolCall); ok {
				name := strings.TrimSpace(c.Name)
				if name != SearchName {
					_, _, name = v.lookup(name)
				}
				open[cmp.Or(c.ID, c.Name)] = name
			}
			res, ok := p.(lathe.ToolResult)
			if !ok {
				continue
			}
			id := cmp.Or(res.CallID, res.Name)
			name := open[id]
			delete(open, id)
			if name != SearchName {
				use(name)
			} else if !res.IsError {
				for _, found := range foundNames([]byte(res.Content)) {
					use(found)
				}
			}
		}
	}
	for _, m := range history {
		for i := 0; i < len(m.Parts) && len(open) > 0; i++ {
			if c, ok := m.Parts[i].(lathe.ToolCall); ok {
				use(open[cmp.Or(c.ID, c.Name)])
				delete(open, cmp.Or(c.ID, c.Name))
			}
		}
	}
	space.tools = min(space.tools, v.r.set.search.MaxLoaded)
	fits := make(map[*lathe.ToolSpec]bool)
	for _, spec := range slices.Backward(used) {
		if _, seen := fits[spec]; !seen {
			fits[spec] = space.take(spec)
		}
	}
	return slices.DeleteFunc(used, func(spec *lathe.ToolSpec) bool {
		first := fits[spec]
		fits[spec] = false
		return !first
	})
}

// besideClient returns what the tools of the client leave of the limits on definitions.
func (v *view) besideClient(limits *lathe.Limits) capacity {
	space := capacity{tools: limits.MaxTools - len(v.client), bytes: limits.MaxToolsBytes}
	for _, spec := range v.client {
		space.bytes -= definitionSize(spec)
	}
	return space
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
	loaded := len(d.sent.specs) - d.sent.sorted - d.before
	return capacity{tools: min(d.search.MaxLoaded-loaded, d.limits.MaxTools-len(d.sent.specs)), bytes: d.limits.MaxToolsBytes - d.sent.size()}
}

// send makes the list the one that is sent from now on.
func (v *view) send(list *advertised) {
	d := &v.deferral
	v.shown, d.sent = list, list
	d.entry = &entry{tool: &searcher{full: d.full, sent: list, capacity: d.capacity(), limits: d.limits}, spec: searchSpec, args: searchArguments(), show: showAll}
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
	return v.deferral.on && (spec == searchSpec || v.shown.find(spec.Name) == nil)
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
	if c.entry.spec != searchSpec {
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
