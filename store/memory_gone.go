package store

import (
	"hash/maphash"
	"maps"
	"time"
)

// maxGone bounds the records of removed runs. Beyond it those of the principal that has most are removed.
const maxGone = 10_000

// goneRuns records which runs were retired. A gateway under load keeps maxGone records, so neither their keys nor their values have pointers:
// the garbage collector does not read them. A key is the hash of a run's id with a seed of the process; two runs have the same one with
// a probability of 2^-64, and then an id that is not known may be reported as retired.
type goneRuns struct {
	seed    maphash.Seed
	byID    map[uint64]goneRun
	numbers map[string]int32 // of principals that have records, in owners
	owners  []goneOwner
	free    []int32 // numbers in owners that no principal has
}

// A goneRun is the record of one run. It has no pointers.
type goneRun struct {
	seconds     int64 // Unix time of its removal
	nanoseconds int32
	owner       int32
}

// A goneOwner counts the records of one principal.
type goneOwner struct {
	principal string
	runs      int
}

func newGoneRuns() goneRuns {
	return goneRuns{seed: maphash.MakeSeed(), byID: map[uint64]goneRun{}, numbers: map[string]int32{}}
}

func (g *goneRuns) key(runID string) uint64 { return maphash.String(g.seed, runID) }

// add records that the principal's run was removed at t.
func (g *goneRuns) add(runID, principal string, t time.Time) {
	g.remove(runID)
	if len(g.byID) >= maxGone {
		g.removeMost()
	}
	n, ok := g.numbers[principal]
	if !ok {
		if last := len(g.free) - 1; last >= 0 {
			n, g.free = g.free[last], g.free[:last]
		} else {
			n, g.owners = int32(len(g.owners)), append(g.owners, goneOwner{}) //nolint:gosec // at most maxGone
		}
		g.numbers[principal], g.owners[n].principal = n, principal
	}
	g.owners[n].runs++
	g.byID[g.key(runID)] = goneRun{seconds: t.Unix(), nanoseconds: int32(t.Nanosecond()), owner: n} //nolint:gosec // below 1e9
}

// find returns the error that says that the run was removed, or nil if goneRuns has no record of it.
func (g *goneRuns) find(runID string) *GoneError {
	r, ok := g.byID[g.key(runID)]
	if !ok {
		return nil
	}
	return &GoneError{RunID: runID, Principal: g.owners[r.owner].principal, Time: time.Unix(r.seconds, int64(r.nanoseconds)).UTC()}
}

// remove removes the record of a run.
func (g *goneRuns) remove(runID string) {
	key := g.key(runID)
	if r, ok := g.byID[key]; ok {
		delete(g.byID, key)
		g.release(r.owner, 1)
	}
}

// removePrincipal removes the records of a principal's runs.
func (g *goneRuns) removePrincipal(principal string) {
	if n, ok := g.numbers[principal]; ok {
		maps.DeleteFunc(g.byID, func(_ uint64, r goneRun) bool { return r.owner == n })
		g.release(n, g.owners[n].runs)
	}
}

// removeMost removes the records of the principal that has most of them.
func (g *goneRuns) removeMost() {
	most := 0
	for i := range g.owners {
		if g.owners[i].runs >= g.owners[most].runs {
			most = i
		}
	}
	g.removePrincipal(g.owners[most].principal)
}

// release counts runs records of an owner less, and frees the owner's number if it has no more.
func (g *goneRuns) release(owner int32, runs int) {
	o := &g.owners[owner]
	if o.runs -= runs; o.runs == 0 {
		delete(g.numbers, o.principal)
		o.principal = ""
		g.free = append(g.free, owner)
	}
}
