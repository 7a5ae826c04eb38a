package tool

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/digest"
	"github.com/lathe-run/lathe/tool/search"
)

// advertised is a list of tools that a run offers its model, and what is computed from it. It does not change: runs that offer the
// same tools share it.
type advertised struct {
	specs  []*lathe.ToolSpec
	sorted int           // how many of specs, from the first on, are sorted by name; loaded tools follow them
	names  []byte        // a JSON array of the names, at most maxNames of them
	size   func() int    // of the definitions on the wire, computed once
	hash   func() string // of the definitions, computed once

	indexOnce sync.Once
	indexed   *search.Index
}

// index returns the index over specs, which it makes at the first search.
func (a *advertised) index() *search.Index {
	a.indexOnce.Do(func() { a.indexed = search.NewIndex(a.specs) })
	return a.indexed
}

// find returns the definition of that name, or nil.
func (a *advertised) find(name string) *lathe.ToolSpec {
	i, ok := slices.BinarySearchFunc(a.specs[:a.sorted], name, func(s *lathe.ToolSpec, n string) int { return strings.Compare(s.Name, n) })
	if ok {
		return a.specs[i]
	}
	for _, s := range a.specs[a.sorted:] {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// maxNames bounds the names that an answer to an unknown tool lists.
const maxNames = 50

// newAdvertised returns the list of specs, of which the first ones, sorted in number, are sorted by name.
func newAdvertised(specs []*lathe.ToolSpec, sorted int) *advertised {
	s := &advertised{specs: specs, sorted: sorted, size: sync.OnceValue(func() int { return definitionsSize(specs) }), hash: sync.OnceValue(func() string { return digest.Tools(specs) })}
	s.names = append(s.names, '[')
	listed := 0
	for _, spec := range s.specs {
		if spec.Disallowed || listed == maxNames {
			continue
		}
		if listed++; listed > 1 {
			s.names = append(s.names, ',')
		}
		s.names = appendString(s.names, spec.Name)
	}
	s.names = append(s.names, ']')
	return s
}

// maxAdvertised bounds the lists of the set's tools that a runner keeps: callers with different rights offer different ones.
const maxAdvertised = 16

// advertisedLists keeps lists of tools from run to run. Two lists are the same if they have the same definitions, told by their
// addresses, because a definition never changes. It may be used by several goroutines at once; the zero value is empty.
type advertisedLists struct {
	ofSet atomic.Pointer[listsOf]
	mixed atomic.Pointer[advertised] // the last with tools of a client, or of a run that defers tools: mostly new with each run
}

// listsOf are lists of the tools of one state of the set. It does not change.
type listsOf struct {
	registry *registry
	lists    []*advertised // the newest first, at most maxAdvertised
}

// get returns the list of the specs, sorted by name, which it copies if the list is new. mixed says that tools of a client are among
// those of the registry. Lists of a former state of the set are dropped, with the definitions that only they hold.
func (l *advertisedLists) get(r *registry, specs []*lathe.ToolSpec, mixed bool) *advertised {
	if mixed {
		return l.conversation(specs, len(specs))
	}
	var kept []*advertised
	if of := l.ofSet.Load(); of != nil && of.registry == r {
		kept = of.lists
	}
	for _, a := range kept {
		if slices.Equal(a.specs, specs) {
			return a
		}
	}
	a := newAdvertised(slices.Clone(specs), len(specs))
	// A list that another goroutine stores at the same time may be lost: it is computed again.
	l.ofSet.Store(&listsOf{r, append([]*advertised{a}, kept[:min(len(kept), maxAdvertised-1)]...)})
	return a
}

// conversation returns the list of the specs, of which the first ones, sorted in number, are sorted by name. It copies them if the
// list is new. Conversations have many different lists: only the last is kept, so that they do not replace the lists of the set,
// whose indexes are worth keeping.
func (l *advertisedLists) conversation(specs []*lathe.ToolSpec, sorted int) *advertised {
	last := l.mixed.Load()
	if last == nil || last.sorted != sorted || !slices.Equal(last.specs, specs) {
		last = newAdvertised(slices.Clone(specs), sorted)
		l.mixed.Store(last)
	}
	return last
}
