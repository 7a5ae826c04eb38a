package wasmrt

import (
	"slices"
	"sync"
)

// totalMemory is the name of the limit on the memory of all instances of a runtime together.
const totalMemory = "max_total_memory"

// An account counts the memory of all instances of a runtime. Instances that wait in pools count, and
// are closed when the memory is needed.
type account struct {
	most int64 // 0: no limit

	mu    sync.Mutex
	used  int64
	pools []*Pool
}

// take counts n bytes more. It returns false, and counts nothing, if that is more than the limit even
// after instances that wait were closed.
func (a *account) take(n int64) bool {
	if a.tryTake(n) {
		return true
	}
	a.mu.Lock()
	pools := slices.Clone(a.pools)
	a.mu.Unlock()
	for _, p := range pools {
		p.trim()
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
