package mcpserve

import (
	"sync"

	"github.com/lathe-run/lathe/tool"
)

// A duty is the time in which a runner is in force, and has errands at work.
type duty struct {
	runner  *tool.Runner
	errands int
	over    bool          // another runner is in force
	unused  chan struct{} // closed when it is over and has no errands
}

// duties are the duty of now, and what is left of those before.
type duties struct {
	mu  sync.Mutex
	now *duty
}

// runner is the one in force, for who needs it for a moment.
func (d *duties) runner() *tool.Runner {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now.runner
}

// begin returns the duty of an errand, which ends once for it.
func (d *duties) begin() *duty {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now.errands++
	return d.now
}

func (d *duties) end(one *duty) {
	d.mu.Lock()
	defer d.mu.Unlock()
	one.errands--
	one.leave()
}

// replace puts a runner in force. The channel is closed when no errand uses the one before any more.
func (d *duties) replace(runner *tool.Runner) <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	former := d.now
	d.now = &duty{runner: runner, unused: make(chan struct{})}
	if former == nil {
		return nil
	}
	former.over = true
	former.leave()
	return former.unused
}

// leave is called with the lock held.
func (one *duty) leave() {
	if one.over && one.errands == 0 {
		close(one.unused)
	}
}
