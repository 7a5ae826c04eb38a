// Package remote makes tools of what workers elsewhere offer. A call is put into a [lathe.CallQueue], where a
// worker finds it; the runner waits for its row. Whatever process puts the same call again, or asks what
// became of it, gets that row: so a run that goes on in another process waits on for its call, and never
// makes it twice.
package remote

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
	"github.com/lathe-run/lathe/tool"
)

// Origin is that of all tools of workers.
const Origin = "worker"

// Options of a [Catalogue].
type Options struct {
	// Poll is how long a lost hint costs a call that waits: 250 ms, and up to eight times that while nothing happens.
	Poll time.Duration
	// Late is how long a call of which nobody knows what came of it waits for a late result: 10 s.
	Late time.Duration
	// Refresh is how often the workers are looked up without a hint: 2 s.
	Refresh time.Duration
	Log     *slog.Logger // of tools that are refused; nil: nothing is logged
}

// A Catalogue has the tools that the workers of a queue serve, and keeps them in sets. Its methods may
// be called from several goroutines at once.
//
// A tool that several workers serve is one. Where they describe it differently the worker that has been
// there longest is right, and the others are refused that tool until it is gone; likewise a tool whose
// name the set has from somewhere else.
type Catalogue struct {
	queue lathe.CallQueue
	opts  Options

	syncing sync.Mutex // held while the sets are brought up to date
	mu      sync.Mutex
	known   map[string]*offered // by definition, those that are there
	now     []lathe.Tool        // sorted by name
	sets    []*tool.Set
	refused map[string]map[string]string // why, by worker and tool
	waiting map[string]map[chan struct{}]struct{}
}

// New returns a catalogue without tools. [Catalogue.Follow] fills it.
func New(queue lathe.CallQueue, opts *Options) *Catalogue {
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

// Follow keeps the sets up to date and tells calls that their row may have changed, until ctx is done.
// Without it calls look themselves, now and then. It is called once.
func (c *Catalogue) Follow(ctx context.Context) {
	changed := make(chan struct{}, 1)
	var watching sync.WaitGroup
	watching.Go(func() {
		for ctx.Err() == nil {
			err := c.queue.WatchCalls(ctx, func(h lathe.CallHint) {
				if h.Key != "" {
					c.wake(h.Key)
				} else if h.Definition == "" {
					select {
					case changed <- struct{}{}:
					default: // it is going to be looked at
					}
				}
			})
			if err != nil && ctx.Err() == nil {
				c.opts.Log.Warn("hints of calls are lost for the moment", "code", string(lathe.CodeOf(err)))
				pause(ctx, time.Second)
			}
		}
	})
	defer watching.Wait()
	tick := time.NewTicker(c.opts.Refresh)
	defer tick.Stop()
	for {
		if err := c.Sync(ctx); err != nil && ctx.Err() == nil {
			c.opts.Log.Warn("the workers cannot be looked up", "code", string(lathe.CodeOf(err)))
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// Attach puts the tools into a set, and keeps them up to date there until [Catalogue.Detach]. Refusals
// are told as the set that was attached last sees them.
func (c *Catalogue) Attach(ctx context.Context, set *tool.Set) error {
	c.mu.Lock()
	c.sets = append(c.sets, set)
	c.mu.Unlock()
	return c.Sync(ctx)
}

// Detach leaves a set as it is.
func (c *Catalogue) Detach(set *tool.Set) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sets = slices.DeleteFunc(c.sets, func(s *tool.Set) bool { return s == set })
}

// Announce keeps what a worker says of itself for as long as ttl, and returns which of its tools are
// refused, and why.
func (c *Catalogue) Announce(ctx context.Context, w *lathe.Worker, ttl time.Duration) (refused map[string]string, err error) {
	if err := c.queue.PutWorker(ctx, w, ttl); err != nil {
		return nil, err
	}
	if err := c.Sync(ctx); err != nil {
		return nil, err
	}
	return c.Refused(w.ID), nil
}

// Refused returns which tools of a worker are refused now, and why.
func (c *Catalogue) Refused(worker string) map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.refused[worker])
}

// Sync looks up the workers and brings the sets up to date.
func (c *Catalogue) Sync(ctx context.Context) error {
	c.syncing.Lock()
	defer c.syncing.Unlock()
	workers, err := c.queue.Workers(ctx)
	if err != nil {
		return err
	}
	tools, by, refused := c.choose(workers)
	c.mu.Lock()
	sets := slices.Clone(c.sets)
	before := c.refused
	c.mu.Unlock()
	for i, set := range sets {
		for name, why := range put(set, tools) {
			if i < len(sets)-1 {
				continue
			}
			for _, worker := range by[name] {
				refuse(refused, worker, name, why)
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now, c.refused = tools, refused
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

// choose returns one tool for each name that workers serve, and who serves it.
func (c *Catalogue) choose(workers []lathe.Worker) (tools []lathe.Tool, by map[string][]string, refused map[string]map[string]string) {
	by, refused = map[string][]string{}, map[string]map[string]string{}
	known := map[string]*offered{}
	chosen := map[string]string{} // definition by name
	for i := range workers {
		w := &workers[i]
		for k := range w.Tools {
			t := &w.Tools[k]
			definition := t.Definition()
			if has := chosen[t.Name]; has != "" && has != definition {
				refuse(refused, w.ID, t.Name, "the worker "+by[t.Name][0]+" serves it with another definition")
				continue
			}
			o := known[definition]
			if o == nil {
				if o = c.known[definition]; o == nil {
					o = newOffered(c, t, definition)
				}
				if o.bad != "" {
					refuse(refused, w.ID, t.Name, o.bad)
					continue
				}
				known[definition] = o
				tools = append(tools, o)
			}
			chosen[t.Name] = definition
			by[t.Name] = append(by[t.Name], w.ID)
		}
	}
	c.known = known // only syncing looks at it
	slices.SortFunc(tools, func(a, b lathe.Tool) int { return strings.Compare(a.Spec().Name, b.Spec().Name) })
	return tools, by, refused
}

// put has the set take the tools, and returns why it does not take some of them.
func put(set *tool.Set, tools []lathe.Tool) (refused map[string]string) {
	if set.Replace(Origin, tools) == nil {
		return nil
	}
	refused = map[string]string{}
	var taken []lathe.Tool
	for _, t := range tools {
		if err := set.Replace(Origin, append(slices.Clone(taken), t)); err != nil {
			refused[t.Spec().Name] = reason(err)
			continue
		}
		taken = append(taken, t)
	}
	if len(taken) == 0 {
		_ = set.Replace(Origin, nil) // a set without them can always be had
	}
	return refused
}

// reason is the text of an error without what the error is about.
func reason(err error) string {
	if e := (*lathe.Error)(nil); errors.As(err, &e) && e.Err != nil {
		err = e.Err
	}
	text := err.Error()
	return text[:min(len(text), 500)]
}
