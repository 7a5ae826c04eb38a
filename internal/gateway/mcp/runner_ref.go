package mcp

import (
	"sync"

	"github.com/lathe-run/lathe/tool"
)

// A runnerRef is a runner with the number of calls that use it.
type runnerRef struct {
	runner *tool.Runner
	calls  int
	over   bool          // another runner has replaced it
	unused chan struct{} // closed when it is over and no call uses it
}

// runners contains the current runner. A call uses the runner that was current when it began.
type runners struct {
	mu  sync.Mutex
	now *runnerRef
}

// runner returns the current runner.
func (rs *runners) runner() *tool.Runner {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.now.runner
}

// begin counts a call of the current runner. The caller calls end once with the result.
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

// replace sets the current runner. The channel is closed when no call uses the former one; it is nil if there was no former one.
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

// leave closes unused if the runner was replaced and no call uses it. The lock is held.
func (one *runnerRef) leave() {
	if one.over && one.calls == 0 {
		close(one.unused)
	}
}
