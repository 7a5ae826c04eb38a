package wasmrt

import (
	"slices"
	"sync"
)

// totalMemory is the name of the limit on the memory of all instances of a runtime together, in Error.Limit.
const totalMemory = "max_total_memory"

// An account counts the memory of all instances of a runtime. Idle instances of pools count, too, and are closed when the limit is
// reached.
type account struct {
	most int64 // in bytes; 0: no limit

	mu    sync.Mutex
	used  int64
	pools []*Pool
}

// take adds n bytes. It returns false, and adds nothing, if the sum exceeds the limit even after the idle instances of all pools were
// closed.
func (a *account) take(n int64) bool {
	if a.tryTake(n) {
		return true
	}
	a.mu.Lock()
	pools := slices.Clone(a.pools)
	a.mu.Unlock()
	for _, p := range pools {
		_ = p.trim() // only the memory is needed
		if a.tryTake(n) {
			return true
		}
	}
	return false
}

func (a *account) tryTake(n int64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.most > 0 && a.used+n > a.most {
		return false
	}
	a.used += n
	return true
}

func (a *account) give(n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used -= n
}

func (a *account) add(p *Pool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pools = append(a.pools, p)
}

func (a *account) remove(p *Pool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pools = slices.DeleteFunc(a.pools, func(other *Pool) bool { return other == p })
}
