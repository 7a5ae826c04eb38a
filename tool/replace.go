package tool

import (
	"errors"
	"fmt"
	"maps"

	"github.com/lathe-run/lathe"
)

// Replace replaces all tools of one origin by the given ones, which must have that origin. On an error the set is unchanged; the errors are
// those of [Set.Add]. A tool whose Spec returns the same pointer as before keeps the state of its concurrency and rate limits. Runs in
// progress keep their tools until [Work.Refresh].
func (s *Set) Replace(origin string, tools []lathe.Tool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.now.Load()
	next := &registry{byName: make(map[string]*entry, len(old.byName)+len(tools)), backends: maps.Clone(old.backends), startRuns: old.startRuns}
	was := map[*lathe.ToolSpec]*entry{}
	for _, e := range old.sorted {
		if e.spec.Origin == origin {
			was[e.spec] = e
			continue
		}
		next.byName[e.spec.Name] = e
		next.sorted = append(next.sorted, e)
	}
	var errs []error
	for _, t := range tools {
		name, err := next.replace(t, origin, was)
		if err != nil {
			errs = append(errs, lathe.CodeInvalidConfig.Wrap("tool: register "+name, err))
		}
	}
	return s.store(next, errs)
}

func (r *registry) replace(t lathe.Tool, from string, was map[*lathe.ToolSpec]*entry) (name string, err error) {
	if t == nil {
		return "", errors.New("the tool is nil")
	}
	spec := t.Spec()
	if spec == nil || spec.Origin != from {
		return "", fmt.Errorf("the tool is not from %s", from)
	}
	e := was[spec]
	if e == nil || r.byName[spec.Name] != nil {
		return r.add(t)
	}
	r.byName[spec.Name] = e
	r.sorted = append(r.sorted, e)
	return spec.Name, nil
}

// Refresh gives the run the current tools of the set, and reports whether that changed its tools. The caller calls it between two turns. The
// run keeps its tools, and Refresh returns false, if the new definitions exceed the limits of the run, or if a tool that its principal may
// use has the name of a client tool of the run.
//
// A run that defers tools (see [Search]) continues to defer them, and keeps the order of the definitions it has sent. The model can search
// for new tools. The definition of a removed tool is still sent, but its calls end with unavailable.
func (w *Work) Refresh() (changed bool) {
	if w.r.set == nil {
		return false
	}
	now, v := w.r.set.now.Load(), &w.tools
	if now == v.registry {
		return false
	}
	for name := range v.client {
		if e := now.byName[name]; e != nil && e.spec.For(w.info.Principal, w.info.Profile) {
			return false
		}
	}
	before := *v
	v.registry, v.shown = now, nil
	if checkDefinitions(w.Specs(), w.limits) != nil {
		*v = before
		return false
	}
	return true
}
