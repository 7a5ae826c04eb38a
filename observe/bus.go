package observe

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/lathe-run/lathe/event"
)

var _ event.Sink = (*Bus)(nil)

// ErrLagged is the error with which a [Subscription] ends because its reader was too slow for events that are stored. The reader can read
// the missed events from the store, after the last event that it received.
var ErrLagged = errors.New("the reader was too slow")

// A Bus is an [event.Sink] that passes events on to subscriptions in this process. It never waits for a slow reader: a subscription whose
// queue is full loses deltas, or ends with [ErrLagged] if the event is stored. Its methods may be called from several goroutines at once.
type Bus struct {
	buffer  int
	dropped func(int)

	mu   sync.RWMutex
	subs map[string]map[*Subscription]struct{} // by run id; "" receives the events of all runs
	kept map[string]*kept                      // by run id
}

// BusOptions configure a [Bus].
type BusOptions struct {
	// Buffer is the maximum number of events in the queue of one subscription; 0 or less: 1,024.
	Buffer int
	// Dropped, if not nil, is called when subscriptions lose deltas because their queues are full. n is the number of deltas that all
	// subscriptions together have lost because of one event. The goroutine of Emit calls it, for several runs concurrently. It must not
	// block, and may call methods of the Bus.
	Dropped func(n int)
}

// NewBus returns a bus without subscriptions. opts may be nil.
func NewBus(opts *BusOptions) *Bus {
	b := &Bus{buffer: 1024, dropped: func(int) {}, subs: map[string]map[*Subscription]struct{}{}, kept: map[string]*kept{}}
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

// Emit implements [event.Sink]. It does not block.
func (b *Bus) Emit(_ context.Context, e event.Event) {
	if lost := b.publish(e); lost > 0 {
		b.dropped(lost) // may call methods that lock b.mu
	}
}

// publish adds e to the queues of subscriptions and returns the number of events that they lost.
func (b *Bus) publish(e event.Event) (lost int) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if k := b.kept[e.RunID]; k != nil {
		k.note(&e)
	}
	for s := range b.subs[e.RunID] {
		lost += s.push(e)
	}
	for s := range b.subs[""] {
		lost += s.push(e)
	}
	return lost
}

// Subscribe returns a subscription to the events of one run, or of all runs if runID is "", from now on. The run need not have begun. If
// [Bus.Keep] is in effect for the run, the subscription begins with the first delta of the current model call; consecutive deltas of one
// kind are then one delta. Several subscriptions each get all events. The caller must close the subscription.
func (b *Bus) Subscribe(runID string) *Subscription {
	s := &Subscription{bus: b, runID: runID, max: b.buffer, wake: make(chan struct{}, 1)}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.subs[runID] == nil {
		b.subs[runID] = map[*Subscription]struct{}{}
	}
	b.subs[runID][s] = struct{}{}
	if k := b.kept[runID]; k != nil { // no event is published meanwhile
		s.queue, s.fewer = k.read()
		if len(s.queue) > 0 {
			s.signal()
		}
	}
	return s
}

// A Subscription is the event queue of one reader. If the queue is full, all deltas in it are dropped. The reader notices that by a gap in
// the numbers N of later deltas; ModelCallFinished contains the whole text. If the queue is still full when a stored event arrives, the
// subscription ends with [ErrLagged]. A subscription to one run ends after its RunFinished; one to all runs does not end by itself.
type Subscription struct {
	bus   *Bus
	runID string
	max   int
	wake  chan struct{}

	mu    sync.Mutex
	queue []event.Event
	end   error // the error that Next returns after the last event of the queue
	fewer int64 // by which N of the deltas of the current model call is lower: the first of them were joined
}

// Next removes the next event from the queue and returns it. If the queue is empty, Next blocks until there is an event or ctx is done;
// then it returns the error of ctx, and may be called again. After the last event, it returns io.EOF if the run has finished or the
// subscription was closed, and [ErrLagged] if the reader was too slow. Only one goroutine may call Next at a time. The event is shared with
// other readers and must not be changed.
func (s *Subscription) Next(ctx context.Context) (event.Event, error) {
	for {
		ended := ctx.Err()
		s.mu.Lock()
		if len(s.queue) > 0 {
			e := s.queue[0]
			s.queue[0] = event.Event{} // releases its memory
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

// Close ends the subscription and discards its queue. Next then returns io.EOF. Close may be called more than once.
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

// push queues e and returns the number of events that were dropped.
func (s *Subscription) push(e event.Event) (lost int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil {
		return 0
	}
	if len(s.queue) >= s.max {
		lost = s.dropDeltas()
	}
	if len(s.queue) >= s.max { // it contains only stored events
		if !event.IsDelta(e.Data) {
			s.finish(ErrLagged)
		}
		return lost + 1
	}
	if _, begins := e.Data.(*event.ModelCallStarted); begins {
		s.fewer = 0
	}
	if e.N > 0 {
		e.N -= s.fewer
	}
	s.queue = append(s.queue, e)
	if _, last := e.Data.(*event.RunFinished); last && s.runID != "" {
		s.finish(io.EOF)
	}
	s.signal()
	return lost
}

// dropDeltas removes all deltas from the queue at once, because to remove only one would require a search for each new event.
func (s *Subscription) dropDeltas() int {
	before := len(s.queue)
	s.queue = slices.DeleteFunc(s.queue, func(e event.Event) bool { return event.IsDelta(e.Data) })
	return before - len(s.queue)
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
