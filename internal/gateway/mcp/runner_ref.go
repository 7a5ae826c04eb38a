package mcp

import (
	"sync"

	"github.com/lathe-run/lathe/tool"
)

// A runnerRef counts the calls that use a runner.
type runnerRef struct {
	runner *tool.Runner
	calls  int
	over   bool          // another runner has replaced it
	unused chan struct{} // closed when it is over and no call uses it
}

// runners holds the runner in force. Calls keep the one that they began with.
type runners struct {
	mu  sync.Mutex
	now *runnerRef
}

// runner returns the runner in force.
func (rs *runners) runner() *tool.Runner {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.now.runner
}

// begin counts a call of the runner in force. end is called once for it.
func (rs *runners) begin() *runnerRef {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.now.calls++
	return rs.now
}

func (rs *runners) end(one *runnerRef) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	one.calls--
	one.leave()
}

// replace puts a runner in force. The channel is closed when no call uses the former one.
func (rs *runners) replace(runner *tool.Runner) <-chan struct{} {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	former := rs.now
	rs.now = &runnerRef{runner: runner, unused: make(chan struct{})}
	if former == nil {
		return nil
	}
	former.over = true
	former.leave()
	return former.unused
}

// leave is called with the lock held.
func (one *runnerRef) leave() {
	if one.over && one.calls == 0 {
		close(one.unused)
	}
}
