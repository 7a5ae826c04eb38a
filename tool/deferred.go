package tool

// This file decides which definitions a run sends from its first model call on, and adds those that its model finds later. The list that is
// sent consists of three parts: the base and the search tool with the tools of the client, sorted by name; tools that the history uses; and
// tools that were loaded by search, in load order.

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/policy"
)

// A deferral is the state of a run that defers tools. Sent definitions never change their order: found ones are appended, so that a server
// can reuse its cached prompt.
type deferral struct {
	on       bool // false: nothing is deferred, and the other fields are not set
	search   *Search
	full     *advertised  // the tools of the set that may be offered, and so be found
	entry    *entry       // the search tool over full, as of the last load
	sent     *advertised  // the list that was sent last
	before   int          // number of tools in sent that were loaded because of the history
	deferred int          // number of tools whose definitions were not sent at the start of the run
	limits   lathe.Limits // limits of the run
}

// builtinOrigin is the origin of the tools of package builtin.
const builtinOrigin = "builtin"

// beginDeferral decides whether the run defers its tools, and sets v.shown, the list of its definitions. If the run defers tools, it sets
// v.deferral. If the search is withheld or there is nothing to defer, it sets v.unsearched. v.registry and v.client must be set before;
// definitions may be deleted from v.client.
func (v *view) beginDeferral(opts *RunOptions, settings *lathe.Settings, limits *lathe.Limits) {
	specs := v.judgeTools()
	search := &v.r.set.search
	full := v.r.advertised.get(v.registry, specs)
	if search.Mode == SearchAuto && v.besideClient(limits).holds(full, search) {
		v.shown = v.list(specs)
		return
	}
	if held := v.whySearchWithheld(); held.Reason != "" {
		v.withheld = append(v.withheld, held)
		slices.SortFunc(v.withheld, func(a, b event.WithheldTool) int { return strings.Compare(a.Tool, b.Tool) })
		v.shown, v.unsearched = v.list(specs), searchWithheld
		return
	}
	// From here on, a disallowed definition of the client replaces no tool of the set: that tool is deferred like the others.
	maps.DeleteFunc(v.client, func(name string, spec *lathe.ToolSpec) bool { return spec.Disallowed && v.ofSet(name) != nil })
	base, remaining := v.base(full, settings, v.besideClient(limits))
	loaded := v.loadedBefore(full, base, remaining, opts)
	deferred := len(specs) - len(base) - len(loaded)
	if deferred == 0 {
		v.shown, v.unsearched = v.list(specs), nothingToSearch
		return
	}
	v.deferral = deferral{on: true, search: search, full: full, before: len(loaded), deferred: deferred, limits: *limits}
	sorted := v.withClient(append(base, searchSpec))
	v.setSent(v.r.advertised.getMixed(append(sorted, loaded...), len(sorted)))
	if opts.Resumed != nil {
		v.appendLoaded(opts.Resumed.Loaded)
	}
}

// whySearchWithheld returns why the search is not offered. Reason is "" if it is offered.
func (v *view) whySearchWithheld() event.WithheldTool {
	verdict := judgeTool(v.r.opts.Policy, v.run, searchSpec)
	withheld := event.WithheldTool{Tool: SearchName, Rule: verdict.Rule}
	switch verdict.Decision {
	case lathe.Allow:
		return event.WithheldTool{}
	case lathe.Ask:
		withheld.Reason = event.WithheldApproval
	default:
		withheld.Reason = event.WithheldPolicy
	}
	return withheld
}

// base returns the definitions of the set that are sent from the first model call on, sorted by name, and the part of space that remains
// besides them and the search tool.
func (v *view) base(full *advertised, settings *lathe.Settings, space capacity) ([]*lathe.ToolSpec, capacity) {
	chosen := ""
	if settings.ToolChoice.Mode == lathe.ChoiceFunction {
		chosen = v.lookup(settings.ToolChoice.Name).tool
	}
	always := func(spec *lathe.ToolSpec) bool {
		return spec.Origin == builtinOrigin || spec.Name == chosen ||
			slices.ContainsFunc(v.r.set.search.Always, func(pattern string) bool { return policy.Match(pattern, spec.Name) })
	}
	var base []*lathe.ToolSpec
	space.take(searchSpec)
	for _, spec := range full.specs {
		if always(spec) {
			base = append(base, spec)
			space.take(spec)
		}
	}
	return base, space
}

// loadedBefore returns the definitions of the tools that the history uses, in order: tools that it calls, and tools that its searches
// found. If the limits have no capacity for all, it returns the ones used last. The history may come from a client, so only tools that a
// search could find are returned.
func (v *view) loadedBefore(full *advertised, base []*lathe.ToolSpec, space capacity, opts *RunOptions) []*lathe.ToolSpec {
	history := opts.History
	if r := opts.Resumed; r != nil && r.Started > 0 {
		history = history[:min(r.Started, len(history))]
	}
	var used []*lathe.ToolSpec
	for _, name := range namesIn(v, history) {
		if spec := full.find(name); spec != nil && !slices.Contains(base, spec) {
			used = append(used, spec)
		}
	}
	space.tools = min(space.tools, v.r.set.search.MaxLoaded)
	fits := make(map[*lathe.ToolSpec]bool) // the last uses get the capacity first
	for _, spec := range slices.Backward(used) {
		if _, seen := fits[spec]; !seen {
			fits[spec] = space.take(spec)
		}
	}
	var loaded []*lathe.ToolSpec
	for _, spec := range used {
		if fits[spec] {
			loaded = append(loaded, spec)
			fits[spec] = false // it is in the list once, at its first use
		}
	}
	return loaded
}

// namesIn returns the names of the tools that a history calls or that its searches found, in the order of the results, and then of the calls
// without a result.
func namesIn(v *view, history []lathe.Message) (names []string) {
	open := map[string]string{} // names of calls without a result, by id; a server may reuse an id
	for _, m := range history {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case lathe.ToolCall:
				name := strings.TrimSpace(p.Name)
				if name != SearchName {
					name = v.lookup(name).tool
				}
				open[cmp.Or(p.ID, p.Name)] = name
			case lathe.ToolResult:
				id := cmp.Or(p.CallID, p.Name)
				name := open[id]
				delete(open, id)
				if name != SearchName {
					names = append(names, name)
				} else if !p.IsError {
					names = append(names, foundNames([]byte(p.Content))...)
				}
			default:
			}
		}
	}
	for _, m := range history {
		for _, p := range m.Parts {
			if c, ok := p.(lathe.ToolCall); ok {
				id := cmp.Or(c.ID, c.Name)
				if name, isOpen := open[id]; isOpen {
					names = append(names, name)
					delete(open, id)
				}
			}
		}
	}
	return names
}

// besideClient returns the capacity that remains besides the tools of the client.
func (v *view) besideClient(limits *lathe.Limits) capacity {
	space := capacity{tools: limits.MaxTools - len(v.client), bytes: limits.MaxToolsBytes}
	for _, spec := range v.client {
		space.bytes -= definitionSize(spec)
	}
	return space
}

// A capacity is the number and the size of further definitions that the limits allow.
type capacity struct{ tools, bytes int }

// take reserves capacity for the definition. It returns false and changes nothing if the definition does not fit.
func (r *capacity) take(spec *lathe.ToolSpec) bool {
	size := definitionSize(spec)
	if r.tools < 1 || size > r.bytes {
		return false
	}
	r.tools--
	r.bytes -= size
	return true
}

// holds reports whether the capacity, and the thresholds of the search, suffice for all tools of the list.
func (r capacity) holds(full *advertised, search *Search) bool {
	return len(full.specs) <= min(search.AboveTools, r.tools) && full.size() <= min(search.AboveBytes, r.bytes)
}

// capacity returns the capacity for tools to load.
func (d *deferral) capacity() capacity {
	loaded := len(d.sent.specs) - d.sent.sorted - d.before
	return capacity{tools: min(d.search.MaxLoaded-loaded, d.limits.MaxTools-len(d.sent.specs)), bytes: d.limits.MaxToolsBytes - d.sent.size()}
}

// setSent makes list the sent list from now on, and makes the entry of the search tool for it.
func (v *view) setSent(list *advertised) {
	d := &v.deferral
	v.shown, d.sent = list, list
	d.entry = &entry{tool: &searcher{full: d.full, sent: list, capacity: d.capacity(), limits: d.limits}, spec: searchSpec, args: searchArguments(), show: showAll}
}

// appendLoaded adds the definitions of the named tools to the sent list, in that order, and returns the added names. It skips unknown
// names and those that are already sent.
func (v *view) appendLoaded(names []string) (appended []string) {
	var specs []*lathe.ToolSpec
	for _, name := range names {
		spec := v.deferral.full.find(name)
		if spec != nil && v.shown.find(name) == nil && !slices.Contains(specs, spec) {
			specs, appended = append(specs, spec), append(appended, name)
		}
	}
	if len(specs) > 0 {
		v.setSent(newAdvertised(slices.Concat(v.shown.specs, specs), v.shown.sorted))
	}
	return appended
}

// updateSent replaces the definitions in the sent list by the current ones of the set. specs are the definitions that may be offered now.
// The definition of a tool that is not in specs remains.
func (v *view) updateSent(specs []*lathe.ToolSpec) {
	d := &v.deferral
	d.full = v.r.advertised.get(v.registry, specs)
	now := slices.Clone(d.sent.specs)
	for i, old := range now {
		if spec := d.full.find(old.Name); spec != nil && v.client[old.Name] == nil {
			now[i] = spec
		}
	}
	list := d.sent
	if !slices.Equal(now, list.specs) {
		list = newAdvertised(now, list.sorted)
	}
	v.setSent(list)
}

// callable returns the definitions of the set and of the client that the run may call, sorted by name. If the run defers its tools, it
// returns only those of the set.
func (v *view) callable() []*lathe.ToolSpec {
	if v.deferral.on {
		return v.deferral.full.specs
	}
	return v.advertise().specs
}

// Deferred returns the number of tools whose definitions were not sent at the start of the run and that its model can search for; 0 if the
// run does not defer tools. It does not change when tools are loaded.
func (w *Work) Deferred() int { return w.tools.deferral.deferred }

// mayLoad reports whether a call of the tool may load definitions; see [load].
func (v *view) mayLoad(spec *lathe.ToolSpec) bool {
	return v.deferral.on && (spec == searchSpec || v.shown.find(spec.Name) == nil)
}

// load loads the tools that a search has found, and a tool that the model has called without its definition. It publishes the event before
// the result of the call, so that a resumed run has loaded every tool that the answers in its history name. If the result is not stored,
// the search is repeated with the same answer.
func load(c *call) {
	v := &c.w.tools
	if c.entry == nil || !v.mayLoad(c.entry.spec) || c.Refuse != "" {
		return
	}
	var names []string
	isSearch := c.entry.spec == searchSpec
	succeeded := c.code == "" && c.toolCode == ""
	isOwnOutput := c.source == fromTool && !c.noop // the search itself returned c.out in this call
	switch space := v.deferral.capacity(); {
	case isSearch && succeeded && isOwnOutput:
		names = foundNames(c.out.Data)
	case !isSearch && space.take(c.entry.spec): // a call of a tool whose definition was not sent, even if it failed
		names = []string{c.entry.spec.Name}
	}
	if loaded := v.appendLoaded(names); len(loaded) > 0 {
		c.emit(&event.ToolsLoaded{ToolCallID: c.ID, Seq: c.seq, Tools: loaded, Hash: v.shown.hash()})
	}
}
