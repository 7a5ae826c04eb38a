package tool

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/lathe-run/lathe"
)

// SearchName is the name of the built-in tool with which a model finds and loads tools whose definitions it was not sent: see [Search].
const SearchName = "tool_search"

// A Search configures tool search: whether the runs of a [Set] send their model the definitions of all tools, or defer most of them. If
// tools are deferred, the model finds them with the tool [SearchName]; the definitions that it finds are sent from the next model call on.
//
// The definitions of these tools are always sent: the client's tools, those that Always lists, built-in tools (origin "builtin"), the tool
// that tool_choice names, and those with calls in the history of the run. The policy decides about [SearchName] as about any tool. If it
// denies it or requires an approval, nothing is deferred.
type Search struct {
	Mode SearchMode // "": off
	// AboveTools and AboveBytes are the thresholds of SearchAuto, which defers tools if more than AboveTools tools of the set may be
	// offered (0: 40), or if their definitions have more than AboveBytes bytes (0: 40,960). If max_tools or max_tools_bytes of the run is
	// lower than a threshold, it is the threshold.
	AboveTools int
	AboveBytes int
	// Always lists the tools that are never deferred, by name or by a pattern of [policy.Match].
	Always []string
	// MaxLoaded is the maximum number of tools that one run may load by search; 0: 64. max_tools and max_tools_bytes also limit all
	// definitions that are sent, loaded ones included.
	MaxLoaded int
	// MaxDeferred is the maximum number of tools in the set (0: 10,000), and MaxDeferredBytes the maximum size of their definitions in
	// bytes (0: 64 MiB). They replace max_tools and max_tools_bytes as limits of the set.
	MaxDeferred      int
	MaxDeferredBytes int
}

// SearchMode selects when a run defers its tools. The definition of a deferred tool is sent to the model only after the model has found it
// with the tool [SearchName].
type SearchMode string

// The search modes. "" is SearchOff.
const (
	SearchOff  SearchMode = "off"  // never; all definitions are sent
	SearchAuto SearchMode = "auto" // if AboveTools or AboveBytes of [Search] is exceeded
	SearchOn   SearchMode = "on"   // always
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
	if min(s.AboveTools, s.AboveBytes, s.MaxLoaded, s.MaxDeferred, s.MaxDeferredBytes) < 0 {
		return errors.New("a limit of tool search is negative")
	}
	if slices.Contains(s.Always, "") { // Match would match every name
		return errors.New("an entry of the tools that tool search never defers is empty: write a name, or * for all")
	}
	return nil
}

// NewSetWithSearch returns a set as [NewSetWithin] does, but with tool search. Unless the mode is SearchOff, the definitions are limited by
// MaxDeferred and MaxDeferredBytes of search instead of limits, and no tool may have the name [SearchName]. The error has the code
// invalid_config.
func NewSetWithSearch(limits lathe.Limits, search Search, tools ...lathe.Tool) (*Set, error) {
	s := &Set{limits: limits.WithDefaults(), search: search.withDefaults()}
	if err := s.search.check(); err != nil {
		return nil, lathe.CodeInvalidConfig.Wrap("tool: new set", err)
	}
	s.now.Store(&registry{byName: map[string]*entry{}, backends: map[string]*backend{}})
	if err := s.Add(tools...); err != nil {
		return nil, err
	}
	return s, nil
}

// Search returns a copy of the search configuration of the set, with defaults in place of zero fields.
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
