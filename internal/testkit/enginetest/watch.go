package enginetest

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/lathe-run/lathe/event"
)

// poll is the time without an event after which a watcher reads the store.
const poll = 15 * time.Second

// A Tail holds what one watcher of a run received, over all its connections.
type Tail struct {
	RunID string
	Lines []string // the events as JSON, in the order in which they came
	IDs   []int64
	Whole bool // it has seen the end of the run, or would have by now
}

// A watcher fills a Tail. After its connection breaks, it connects again with the id of the last event that it has.
type watcher struct {
	Tail

	// A timer of a watcher can wake it while the simulation reads these two.
	over atomic.Bool             // it has received the end of the run
	at   atomic.Pointer[Process] // nil: it is not connected

	close context.CancelFunc
}

// last returns the id of the last event that the watcher received, or 0.
func (t *watcher) last() int64 {
	if len(t.IDs) == 0 {
		return 0
	}
	return t.IDs[len(t.IDs)-1]
}

// leave breaks the connection.
func (t *watcher) leave() {
	if t.close != nil {
		t.close()
	}
	t.at.Store(nil)
}

// attach connects a watcher to a process. The watcher subscribes before it reads the store, so that it misses no event.
func (s *Sim) attach(t *watcher, p *Process) {
	ctx, cancel := context.WithCancel(p.ctx)
	t.at.Store(p)
	t.close = cancel
	s.tracef("a watcher of %s is at %s, after %d", t.RunID, p.name, t.last())
	s.actors.Go(func() {
		defer cancel()
		t.follow(ctx, p)
		if ctx.Err() == nil {
			t.at.Store(nil)
		}
	})
	s.waiting()
}

// follow receives events until the end of the run or of the connection. Where ids are missing, it reads the store.
func (t *watcher) follow(ctx context.Context, p *Process) {
	sub := p.bus.Subscribe(t.RunID)
	defer sub.Close()
	if t.catchUp(ctx, p) != nil {
		return
	}
	for !t.over.Load() {
		quiet, cancel := context.WithTimeout(ctx, poll)
		e, err := sub.Next(quiet)
		cancel()
		isSilent := errors.Is(err, context.DeadlineExceeded)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !isSilent: // the run has ended, or the watcher was too slow
			_ = t.catchUp(ctx, p)
			return
		case isSilent || e.ID > t.last()+1:
			if t.catchUp(ctx, p) != nil {
				return
			}
		case e.ID == t.last()+1: // neither a delta, which has no id, nor an event that the watcher has
			t.receive(&e)
		}
	}
}

// catchUp receives the stored events after the last one.
func (t *watcher) catchUp(ctx context.Context, p *Process) error {
	for e, err := range p.store.Read(ctx, t.RunID, t.last()) {
		if err != nil {
			return err
		}
		t.receive(&e)
	}
	return nil
}

func (t *watcher) receive(e *event.Event) {
	line, err := e.MarshalJSON()
	if err != nil {
		line = []byte(err.Error())
	}
	t.IDs, t.Lines = append(t.IDs, e.ID), append(t.Lines, string(line))
	if _, ended := e.Data.(*event.RunFinished); ended {
		t.over.Store(true)
	}
}
