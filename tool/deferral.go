package tool

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/lathe-run/lathe"
)

// SearchName is the name of the tool with which a model searches for the tools of its run: see [Search].
const SearchName = "tool_search"

// A Search determines whether the runs of a [Set] send their model all definitions of tools, or only some of them and the tool
// [SearchName]. By this tool the model finds other tools and loads them: their definitions are sent from the next model call on.
//
// A run that defers its tools sends the definitions of its client's tools, of the tools that Always lists, of those with the origin of
// package builtin, of the tool of its tool choice, and of those whose calls are in its history. Policies decide about the search as about
// each tool. If they deny it or require an approval, the run defers nothing.
type Search struct {
	Mode SearchMode // "": off
	// AboveTools and AboveBytes are the thresholds of mode auto: a run defers its tools if more than AboveTools (0: 40) tools of the set
	// may be offered, or if their definitions are larger than AboveBytes (0: 40,960). If the limits max_tools and max_tools_bytes are
	// lower, they are the thresholds.
	AboveTools int
	AboveBytes int
	// Always lists names of tools that are never deferred, or patterns of [policy.Match].
	Always []string
	// MaxLoaded is the maximum number of tools that one run may load; 0: 64. The limits max_tools and max_tools_bytes apply to all sent
	// definitions, loaded ones included.
	MaxLoaded int
	// MaxDeferred and MaxDeferredBytes limit the tools of the set and their definitions, in place of max_tools and max_tools_bytes; 0:
	// 10,000 tools and 64 MiB.
	MaxDeferred      int
	MaxDeferredBytes int
}

// SearchMode says whether runs defer their tools.
type SearchMode string

// The modes of a search. The zero value has the effect of SearchOff.
const (
	SearchOff  SearchMode = "off"
	SearchAuto SearchMode = "auto" // if there are many tools: see [Search].AboveTools
	SearchOn   SearchMode = "on"
)

// withDefaults returns the search with zero fields replaced by their defaults.
func (s Search) withDefaults() Search {
	s.Mode = cmp.Or(s.Mode, SearchOff)
	s.AboveTools = cmp.Or(s.AboveTools, 40)
	s.AboveBytes = cmp.Or(s.AboveBytes, 40<<10)
	s.MaxLoaded = cmp.Or(s.MaxLoaded, 64)
	s.MaxDeferred = cmp.Or(s.MaxDeferred, 10_000)
	s.MaxDeferredBytes = cmp.Or(s.MaxDeferredBytes, 64<<20)
	s.Always = slices.Clone(s.Always)
	return s
}

func (s *Search) check() error {
	switch s.Mode {
	case SearchOff, SearchAuto, SearchOn:
	default:
		return fmt.Errorf("the mode of tool search %.80q is not %s, %s or %s", s.Mode, SearchOff, SearchAuto, SearchOn)
	}
	if s.AboveTools < 0 || s.AboveBytes < 0 || s.MaxLoaded < 0 || s.MaxDeferred < 0 || s.MaxDeferredBytes < 0 {
		return errors.New("a limit of tool search is negative")
	}
	if slices.Contains(s.Always, "") { // Match would match every name
		return errors.New("an entry of the tools that tool search never defers is empty: write a name, or * for all")
	}
	return nil
}

// NewSetWithSearch returns a set as [NewSetWithin] does, with a search. Unless the mode is off, the limits on definitions are MaxDeferred
// and MaxDeferredBytes, and a tool with the name [SearchName] is an error.
func NewSetWithSearch(limits lathe.Limits, search Search, tools ...lathe.Tool) (*Set, error) {
	s := &Set{limits: limits.WithDefaults(), search: search.withDefaults()}
	if err := s.search.check(); err != nil {
		return nil, lathe.CodeInvalidConfig.Wrap("tool: new set", err)
	}
	s.now.Store(&registry{})
	if err := s.Add(tools...); err != nil {
		return nil, err
	}
	return s, nil
}

// Search returns the search of the set, with zero fields replaced by their defaults.
func (s *Set) Search() Search {
	search := s.search
	search.Always = slices.Clone(search.Always)
	return search
}

// checkRegistry checks the tools of a set together: the limits on definitions, and that no tool has the name of the search.
func (s *Set) checkRegistry(r *registry) error {
	if s.search.Mode == SearchOff {
		return checkDefinitions(r.specs(), s.limits)
	}
	if taken := r.byName[SearchName]; taken != nil {
		return fmt.Errorf("the name %s is taken by the search for tools; a tool from %s has it, too: rename that tool or turn the search off",
			SearchName, origin(taken.spec))
	}
	specs := r.specs()
	if len(specs) > s.search.MaxDeferred {
		return fmt.Errorf("%d tools, and tools.search.max_deferred is %d: %s", len(specs), s.search.MaxDeferred, countByOrigin(specs))
	}
	if size := definitionsSize(specs); size > s.search.MaxDeferredBytes {
		return fmt.Errorf("the definitions have %d bytes, and tools.search.max_deferred_bytes is %d: %s", size, s.search.MaxDeferredBytes, byOrigin(specs, definitionSize))
	}
	return nil
}
