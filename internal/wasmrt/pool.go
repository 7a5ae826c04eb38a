package wasmrt

import (
	"bytes"
	"context"
	"errors"
	"sync"

	"github.com/tetratelabs/wazero/api"
)

// PoolOptions of a [Pool].
type PoolOptions struct {
	Instance InstanceOptions
	// Prepare is called for each new instance before its state is stored, so that its effects belong to the initial state and are never
	// undone. nil: no function is called.
	Prepare func(ctx context.Context, i *Instance) error
	// Idle is the maximal number of idle instances; 4. If it is negative, each Get instantiates a new one.
	Idle int
	// RestoreBytes is the maximal memory of an instance that is restored; an instance with more is used once. 8 MiB.
	RestoreBytes int
}

// A Pool provides instances of one module in their initial state. It may be used by several goroutines at once.
type Pool struct {
	module *Module
	opts   PoolOptions

	mu     sync.Mutex
	idle   []*Instance
	shared []byte // initial memory of the instances, if it is the same in all
	closed bool
}

// NewPool returns an empty pool.
func (m *Module) NewPool(opts *PoolOptions) *Pool {
	p := &Pool{module: m}
	if opts != nil {
		p.opts = *opts
	}
	if p.opts.Idle == 0 {
		p.opts.Idle = 4
	}
	if p.opts.RestoreBytes == 0 {
		p.opts.RestoreBytes = 8 << 20
	}
	m.rt.account.add(p)
	return p
}

// Get returns an instance in its initial state for exclusive use, until Put.
func (p *Pool) Get(ctx context.Context) (*Instance, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, &Error{Kind: KindClosed}
	}
	if n := len(p.idle); n > 0 {
		i := p.idle[n-1]
		p.idle[n-1] = nil
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return i, nil
	}
	p.mu.Unlock()
	i, err := p.module.Instantiate(ctx, &p.opts.Instance)
	if err != nil {
		return nil, err
	}
	if p.opts.Prepare != nil {
		if err := p.opts.Prepare(ctx, i); err != nil {
			return nil, errors.Join(err, i.Close())
		}
	}
	if p.opts.Idle > 0 {
		p.storeState(i)
	}
	return i, nil
}

// Put restores the instance and makes it available again, or closes it if it cannot be restored or is not needed.
func (p *Pool) Put(i *Instance) error {
	if i.restore() {
		p.mu.Lock()
		if !p.closed && len(p.idle) < p.opts.Idle {
			p.idle = append(p.idle, i)
			p.mu.Unlock()
			return nil
		}
		p.mu.Unlock()
	}
	return i.Close()
}

// trim closes the idle instances.
func (p *Pool) trim() error {
	p.mu.Lock()
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	var errs []error
	for _, i := range idle {
		errs = append(errs, i.Close())
	}
	return errors.Join(errs...)
}

// Close closes the idle instances. Instances that are put back later are closed, too.
func (p *Pool) Close() error {
	p.module.rt.account.remove(p)
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	return p.trim()
}

// Idle returns the number of idle instances.
func (p *Pool) Idle() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle)
}

// state is the initial state of an instance.
type state struct {
	memory  []byte // without the zeros at the end
	size    uint32
	globals []uint64
	budget  budget
	files   int
}

// storeState stores the state of an instance that was prepared and not used, unless the instance cannot be restored.
func (p *Pool) storeState(i *Instance) {
	i.env.dirty = false // changes before this point belong to the initial state
	if i.module.shape.notRestorable || i.env.usedRandom || i.spent || i.env.refused != "" {
		return
	}
	s := &state{size: i.Memory().Size(), budget: i.env.budget, files: i.env.files}
	if int(s.size) > p.opts.RestoreBytes {
		return
	}
	for _, name := range i.module.shape.globals {
		g, ok := i.mod.ExportedGlobal(name).(api.MutableGlobal)
		if !ok {
			return
		}
		i.globals = append(i.globals, g)
		s.globals = append(s.globals, g.Get())
	}
	if s.size > 0 {
		all, err := i.Memory().Read(0, s.size)
		if err != nil {
			return
		}
		used := bytes.TrimRight(all, "\x00")
		p.mu.Lock()
		if p.shared == nil {
			p.shared = bytes.Clone(used)
		}
		s.memory = p.shared
		p.mu.Unlock()
		if !bytes.Equal(s.memory, used) {
			s.memory = bytes.Clone(used)
		}
	}
	i.began = s
}

// restore resets the instance to its initial state, and reports whether that was possible.
func (i *Instance) restore() bool {
	s := i.began
	if s == nil || i.spent || i.closed || i.env.dirty || i.env.refused != "" || i.mod.IsClosed() || i.Memory().Size() != s.size {
		return false
	}
	if s.size > 0 {
		all, err := i.Memory().Read(0, s.size)
		if err != nil {
			return false
		}
		clear(all[copy(all, s.memory):])
	}
	for n, g := range i.globals {
		g.Set(s.globals[n])
	}
	i.env.budget, i.env.files = s.budget, s.files
	return true
}
