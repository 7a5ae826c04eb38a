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

// advertised is a list of tools that a run offers its model, with values computed from it. It is immutable: runs that offer the same tools
// share it.
type advertised struct {
	specs  []*lathe.ToolSpec
	sorted int           // the first sorted of specs are sorted by name; loaded tools follow them
	names  []byte        // a JSON array of at most maxNames names
	size   func() int    // size of the definitions on the wire
	hash   func() string // hash of the definitions

	indexOnce sync.Once
	indexed   *search.Index
}

// index returns the search index of specs. The first call makes it.
func (a *advertised) index() *search.Index {
	a.indexOnce.Do(func() { a.indexed = search.NewIndex(a.specs) })
	return a.indexed
}

// find returns the definition with this name, or nil.
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

// maxNames is the maximum number of names in the error for an unknown tool.
const maxNames = 50

// newAdvertised returns the list of specs, whose first sorted elements are sorted by name.
func newAdvertised(specs []*lathe.ToolSpec, sorted int) *advertised {
	names := []byte{'['}
	listed := 0
	for _, spec := range specs {
		if spec.Disallowed || listed == maxNames {
			continue
		}
		names = appendString(appendComma(names, listed), spec.Name)
		listed++
	}
	return &advertised{specs: specs, sorted: sorted, names: append(names, ']'),
		size: sync.OnceValue(func() int { return definitionsSize(specs) }), hash: sync.OnceValue(func() string { return digest.Tools(specs) })}
}

// maxAdvertised is the maximum number of lists of the set's tools that a runner caches: runs with different permissions have different
// lists.
const maxAdvertised = 16

// advertisedLists caches lists of tools between runs. Two lists are the same if they have the same definitions by address, because a
// definition is immutable. It may be used by several goroutines at once; the zero value is empty.
type advertisedLists struct {
	ofSet atomic.Pointer[listsOf]
	mixed atomic.Pointer[advertised] // the last list with tools of a client, or of a run that defers tools: usually new with each run
}

// listsOf are the lists of one state of the set. It is immutable.
type listsOf struct {
	registry *registry
	lists    []*advertised // newest first, at most maxAdvertised
}

// get returns the list of specs, which are tools of the set and sorted by name. It copies specs if the list is new. Lists of an earlier state
// of the set are dropped.
func (l *advertisedLists) get(r *registry, specs []*lathe.ToolSpec) *advertised {
	var cached []*advertised
	if last := l.ofSet.Load(); last != nil && last.registry == r {
		cached = last.lists
	}
	for _, list := range cached {
		if slices.Equal(list.specs, specs) {
			return list
		}
	}
	list := newAdvertised(slices.Clone(specs), len(specs))
	// If another goroutine stores a list at the same time, one of them is lost and computed again later.
	l.ofSet.Store(&listsOf{r, append([]*advertised{list}, cached[:min(len(cached), maxAdvertised-1)]...)})
	return list
}

// getMixed returns the list of specs, whose first sorted elements are sorted by name, and which include tools of a client or loaded ones. It
// copies them if the list is new. Only the last such list is cached, because conversations have many different ones, and they must not
// replace the lists of the set with their indexes.
func (l *advertisedLists) getMixed(specs []*lathe.ToolSpec, sorted int) *advertised {
	last := l.mixed.Load()
	if last == nil || last.sorted != sorted || !slices.Equal(last.specs, specs) {
		last = newAdvertised(slices.Clone(specs), sorted)
		l.mixed.Store(last)
	}
	return last
}
