// Package remotetool offers the tools of remote workers to runs. It adds a call to a [remote.Queue], from which a worker claims it, and
// waits until the queue has the result. The queue contains each call only once: if another process resumes the run and adds the same call
// again, or asks for its outcome, it waits for the queued call.
package remotetool

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/reconnect"
	"github.com/lathe-run/lathe/remote"
	"github.com/lathe-run/lathe/tool"
)

// origin is the origin of all tools of workers.
const origin = "worker"

// Options configure a [Catalogue].
type Options struct {
	// Poll is the first interval at which a waiting call reads its state from the queue; 0 or less: 250 ms. It doubles after each read, up
	// to eight times Poll. A notification causes a read at once.
	Poll time.Duration
	// Late is the time for which a call with an unknown outcome waits for a late result; 0 or less: 10 s. Then it ends with the code
	// interrupted.
	Late time.Duration
	// Refresh is the interval at which [Catalogue.Follow] reads the list of workers; 0 or less: 2 s. A notification causes a read at once.
	Refresh time.Duration
	Log     *slog.Logger // warnings for refused tools and errors of the queue; nil: no logging
}

// A Catalogue offers the tools that remote workers serve over a queue, and keeps the attached sets up to date. Its methods may be called
// from several goroutines at once.
//
// Several workers may serve the same tool. If their definitions differ, that of the worker that connected first is used; the tool of the
// other workers is refused until that worker has disconnected. A tool is also refused if the set has a tool of that name from another
// origin.
type Catalogue struct {
	queue remote.Queue
	opts  Options

	syncing sync.Mutex // locked while the sets are updated
	mu      sync.Mutex
	known   map[string]*offered // current tools by definition
	sets    []*tool.Set
	refused map[string]map[string]string // reasons by worker and tool
	waiting map[string]map[chan struct{}]struct{}
}

// New returns a catalogue without tools; [Catalogue.Sync] and [Catalogue.Follow] read them from the queue. opts may be nil.
func New(queue remote.Queue, opts *Options) *Catalogue {
	c := &Catalogue{queue: queue, known: map[string]*offered{}, waiting: map[string]map[chan struct{}]struct{}{}}
	if opts != nil {
		c.opts = *opts
	}
	if c.opts.Poll <= 0 {
		c.opts.Poll = 250 * time.Millisecond
	}
	if c.opts.Late <= 0 {
		c.opts.Late = 10 * time.Second
	}
	if c.opts.Refresh <= 0 {
		c.opts.Refresh = 2 * time.Second
	}
	if c.opts.Log == nil {
		c.opts.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Follow keeps the attached sets up to date, and wakes waiting calls when a notification arrives. It blocks until ctx is done, and logs
// errors of the queue. Without Follow, sets change only by [Catalogue.Sync], and calls wait by polling the queue. Follow must be called at
// most once.
func (c *Catalogue) Follow(ctx context.Context) {
	changed := make(chan struct{}, 1)
	var watching sync.WaitGroup
	watching.Go(func() {
		for ctx.Err() == nil {
			err := c.queue.WatchCalls(ctx, func(h remote.Notification) {
				if h.Key != "" {
					c.wake(h.Key)
				} else if h.Definition == "" {
					select {
					case changed <- struct{}{}:
					default: // an update is already requested
					}
				}
			})
			if err != nil && ctx.Err() == nil {
				c.opts.Log.Warn("notifications of calls are lost for the moment", "code", string(lathe.CodeOf(err)))
				_ = reconnect.Wait(ctx, time.Second)
			}
		}
	})
	defer watching.Wait()
	tick := time.Tick(c.opts.Refresh)
	for {
		if err := c.Sync(ctx); err != nil && ctx.Err() == nil {
			c.opts.Log.Warn("the workers cannot be looked up", "code", string(lathe.CodeOf(err)))
		}
		select {
		case <-changed:
		case <-tick:
		case <-ctx.Done():
			return
		}
	}
}

// Attach adds the tools to set and keeps it up to date until [Catalogue.Detach]. The error is that of [Catalogue.Sync]; the set is not
// attached then. Attach a set only once. [Catalogue.Refused] reports the refusals of the set that was attached last.
func (c *Catalogue) Attach(ctx context.Context, set *tool.Set) error {
	c.mu.Lock()
	c.sets = append(c.sets, set)
	c.mu.Unlock()
	err := c.Sync(ctx)
	if err != nil {
		c.Detach(set)
	}
	return err
}

// Detach ends the updates of set, which keeps its current tools; their calls still work. It does nothing if set is not attached.
func (c *Catalogue) Detach(set *tool.Set) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sets = slices.DeleteFunc(c.sets, func(s *tool.Set) bool { return s == set })
}

// Announce registers a worker in the queue for ttl and updates the sets. It returns the worker's tools that are refused, with reasons by tool
// name; nil: none. A worker that announces itself again replaces its registration. The error is that of the queue; the worker may be
// registered nevertheless.
func (c *Catalogue) Announce(ctx context.Context, w *remote.Worker, ttl time.Duration) (refused map[string]string, err error) {
	if err := c.queue.PutWorker(ctx, w, ttl); err != nil {
		return nil, err
	}
	if err := c.Sync(ctx); err != nil {
		return nil, err
	}
	return c.Refused(w.ID), nil
}

// Refused returns the tools of the worker that were refused at the last update, with reasons by tool name; nil if no tool was refused. The
// map belongs to the caller.
func (c *Catalogue) Refused(worker string) map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.refused[worker])
}

// Sync reads the workers from the queue and updates the attached sets once. The error is that of the queue; the sets are unchanged then.
func (c *Catalogue) Sync(ctx context.Context) error {
	c.syncing.Lock()
	defer c.syncing.Unlock()
	workers, err := c.queue.Workers(ctx)
	if err != nil {
		return err
	}
	tools, workersOf, refused := c.choose(workers)
	c.mu.Lock()
	sets := slices.Clone(c.sets)
	before := c.refused
	c.mu.Unlock()
	for i, set := range sets {
		for name, why := range put(set, tools) {
			if i < len(sets)-1 { // Refused reports those of the last set
				continue
			}
			for _, worker := range workersOf[name] {
				refuse(refused, worker, name, why)
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused = refused
	for worker, names := range refused {
		for name, why := range names {
			if before[worker][name] != why {
				c.opts.Log.Warn("a tool of a worker is refused", "worker", worker, "tool", name, "why", why)
			}
		}
	}
	return nil
}

func refuse(refused map[string]map[string]string, worker, name, why string) {
	if refused[worker] == nil {
		refused[worker] = map[string]string{}
	}
	refused[worker][name] = why
}

// choose returns one tool for each name that workers serve, the ids of the workers by tool name, and the refusals by worker.
func (c *Catalogue) choose(workers []remote.Worker) (tools []lathe.Tool, workersOf map[string][]string, refused map[string]map[string]string) {
	workersOf, refused = map[string][]string{}, map[string]map[string]string{}
	known := map[string]*offered{}
	chosen := map[string]string{} // definition by name
	for i := range workers {
		w := &workers[i]
		for _, t := range w.Tools {
			definition := t.Definition()
			if has := chosen[t.Name]; has != "" && has != definition {
				refuse(refused, w.ID, t.Name, "the worker "+workersOf[t.Name][0]+" serves it with another definition")
				continue
			}
			if known[definition] == nil {
				o := c.known[definition]
				if o == nil {
					o = newOffered(c, &t, definition)
				}
				if o.bad != "" {
					refuse(refused, w.ID, t.Name, o.bad)
					continue
				}
				known[definition] = o
				tools = append(tools, o)
			}
			chosen[t.Name] = definition
			workersOf[t.Name] = append(workersOf[t.Name], w.ID)
		}
	}
	c.known = known // guarded by syncing
	slices.SortFunc(tools, func(a, b lathe.Tool) int { return strings.Compare(a.Spec().Name, b.Spec().Name) })
	return tools, workersOf, refused
}

// put replaces the worker tools of the set. It returns the reasons for tools that the set refuses, by name.
func put(set *tool.Set, tools []lathe.Tool) (refused map[string]string) {
	if set.Replace(origin, tools) == nil {
		return nil
	}
	refused = map[string]string{}
	var taken []lathe.Tool
	for _, t := range tools {
		if err := set.Replace(origin, append(slices.Clone(taken), t)); err != nil {
			refused[t.Spec().Name] = reason(err)
			continue
		}
		taken = append(taken, t)
	}
	if len(taken) == 0 {
		_ = set.Replace(origin, nil) // cannot fail: the set without worker tools is valid
	}
	return refused
}

// reason returns the text of the error within a *lathe.Error, at most 500 bytes.
func reason(err error) string {
	if e, ok := errors.AsType[*lathe.Error](err); ok && e.Err != nil {
		err = e.Err
	}
	text := err.Error()
	return text[:min(len(text), 500)]
}
