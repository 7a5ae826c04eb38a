package tool

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/digest"
)

// advertised is the list of tools that a run offers its model, and what is computed from it. It does not change: runs that offer the
// same tools share it.
type advertised struct {
	specs []*lathe.ToolSpec
	names []byte        // a JSON array of the names, at most maxNames of them
	size  func() int    // of the definitions on the wire, computed once
	hash  func() string // of the definitions, computed once
}

// maxNames bounds the names that an answer to an unknown tool lists.
const maxNames = 50

func newAdvertised(specs []*lathe.ToolSpec) *advertised {
	s := &advertised{specs: specs, size: sync.OnceValue(func() int { return definitionsSize(specs) }), hash: sync.OnceValue(func() string { return digest.Tools(specs) })}
	s.names = append(s.names, '[')
	for i, spec := range s.specs[:min(len(s.specs), maxNames)] {
		if i > 0 {
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
	mixed atomic.Pointer[advertised] // the last with tools of a client, which are mostly new with each run
}

// listsOf are lists of the tools of one state of the set. It does not change.
type listsOf struct {
	registry *registry
	lists    []*advertised // the newest first, at most maxAdvertised
}

// get returns the list of the specs, which it copies if the list is new. mixed says that tools of a client are among those of the
// registry. Lists of a former state of the set are dropped, with the definitions that only they hold.
func (l *advertisedLists) get(r *registry, specs []*lathe.ToolSpec, mixed bool) *advertised {
	if mixed {
		last := l.mixed.Load()
		if last == nil || !slices.Equal(last.specs, specs) {
			last = newAdvertised(slices.Clone(specs))
			l.mixed.Store(last)
		}
		return last
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
	a := newAdvertised(slices.Clone(specs))
	// A list that another goroutine stores at the same time may be lost: it is computed again.
	l.ofSet.Store(&listsOf{r, append([]*advertised{a}, kept[:min(len(kept), maxAdvertised-1)]...)})
	return a
}
