package observe

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/lathe-run/lathe/event"
)

var _ event.Sink = (*Bus)(nil)

// ErrLagged ends a subscription whose reader was too slow for the stored events. The events that it
// missed are in the store, after the last event that it received.
var ErrLagged = errors.New("the reader was too slow")

// A Bus passes events to watchers and never blocks on them. It may be used by several goroutines at once.
type Bus struct {
	buffer  int
	dropped func(int)

	mu   sync.RWMutex
	subs map[string]map[*Subscription]struct{} // by run id; "" watches all runs
}

// BusOptions are the options of [NewBus].
type BusOptions struct {
	// Buffer bounds the events that wait for one watcher: 1 024.
	Buffer int
	// Dropped, if set, is called with the number of events that a watcher lost. It must not block.
	Dropped func(n int)
}

// NewBus returns a bus without watchers.
func NewBus(opts *BusOptions) *Bus {
	b := &Bus{buffer: 1024, dropped: func(int) {}, subs: map[string]map[*Subscription]struct{}{}}
	if opts != nil {
		if opts.Buffer > 0 {
			b.buffer = opts.Buffer
		}
		if opts.Dropped != nil {
			b.dropped = opts.Dropped
		}
	}
	return b
}

// Emit implements [event.Sink]. With no watcher of the run it costs two look-ups at most.
func (b *Bus) Emit(_ context.Context, e event.Event) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if len(b.subs) == 0 {
		return
	}
	one, all := b.subs[e.RunID], b.subs[""]
	if len(one)+len(all) == 0 {
		return
	}
	e = e.Clone()
	lost := 0
	for s := range one {
		lost += s.push(e, true)
	}
	for s := range all {
		lost += s.push(e, false)
	}
	if lost > 0 {
		b.dropped(lost)
	}
}

// Subscribe watches one run, or all runs when runID is empty, from now on. The subscription must be closed.
func (b *Bus) Subscribe(runID string) *Subscription {
	s := &Subscription{bus: b, runID: runID, max: b.buffer, wake: make(chan struct{}, 1)}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.subs[runID] == nil {
		b.subs[runID] = map[*Subscription]struct{}{}
	}
	b.subs[runID][s] = struct{}{}
	return s
}

// A Subscription is one watcher's queue. When the queue is full, the deltas in it are dropped: their
// N shows the gap, and ModelCallFinished has the whole text. If the queue is still full when a stored
// event arrives, the subscription ends with [ErrLagged].
type Subscription struct {
	bus   *Bus
	runID string
	max   int
	wake  chan struct{}

	mu    sync.Mutex
	queue []event.Event
	end   error // what Next returns after the queue
}

// Next returns the next event. It waits for it until ctx is done; an event that waits then still comes first. After the events that were
// waiting it returns io.EOF when the watched run has finished or the subscription was closed, and
// [ErrLagged] when it was cut. One goroutine at a time may call it. The event must not be changed.
func (s *Subscription) Next(ctx context.Context) (event.Event, error) {
	for {
		ended := ctx.Err()
		s.mu.Lock()
		if len(s.queue) > 0 {
			e := s.queue[0]
			s.queue[0] = event.Event{} // frees what it holds
			s.queue = s.queue[1:]
			s.mu.Unlock()
			return e, nil
		}
		end := s.end
		s.mu.Unlock()
		if end != nil {
			return event.Event{}, end
		}
		if ended != nil {
			return event.Event{}, ended
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
		}
	}
}

// Close ends the subscription and frees what waits in it. It may be called twice.
func (s *Subscription) Close() {
	s.bus.mu.Lock()
	delete(s.bus.subs[s.runID], s)
	if len(s.bus.subs[s.runID]) == 0 {
		delete(s.bus.subs, s.runID)
	}
	s.bus.mu.Unlock()

	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = nil
	s.finish(io.EOF)
}

// push queues e and returns how many events were lost for it.
func (s *Subscription) push(e event.Event, oneRun bool) (lost int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil {
		return 0
	}
	if len(s.queue) >= s.max {
		lost = s.dropDeltas()
		if len(s.queue) >= s.max {
			if !event.IsDelta(e.Data) {
				s.finish(ErrLagged)
			}
			return lost + 1
		}
	}
	s.queue = append(s.queue, e)
	if _, last := e.Data.(*event.RunFinished); last && oneRun {
		s.finish(io.EOF)
	}
	s.signal()
	return lost
}

// dropDeltas drops all deltas at once: one at a time would search the queue for each new event.
func (s *Subscription) dropDeltas() int {
	kept := s.queue[:0]
	for _, e := range s.queue {
		if !event.IsDelta(e.Data) {
			kept = append(kept, e)
		}
	}
	lost := len(s.queue) - len(kept)
	clear(s.queue[len(kept):])
	s.queue = kept
	return lost
}

func (s *Subscription) finish(err error) {
	if s.end == nil {
		s.end = err
	}
	s.signal()
}

func (s *Subscription) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
