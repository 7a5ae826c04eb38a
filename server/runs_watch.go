package server

import (
	"context"
	"errors"
	"io"
	"iter"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/gateway/stream"
	"github.com/lathe-run/lathe/internal/sse"
	"github.com/lathe-run/lathe/internal/wire/uistream"
	"github.com/lathe-run/lathe/observe"
)

// Clients watch a run as a stream of server-sent events, one for each event of the run:
//
//	id: 3
//	event: tool_call_planned
//	data: {"id":3,"type":"tool_call_planned",…}
//
// The same code reads the events of a run for the streams of chat pages and for requests that wait for an event: see [watch].

// retryMS is the time in milliseconds after which a watcher reconnects when its connection breaks.
const retryMS = 1000

// maxFrames is the number of bytes of stored events that are collected before they are written.
const maxFrames = 64 << 10

// A followMode says when a watch ends. The strings are the values of the query parameter follow.
type followMode string

const (
	untilEnd    followMode = "true"  // when the run has ended; "" means the same
	untilPaused followMode = "pause" // when the run has ended or is suspended
	untilStored followMode = "false" // when the stored events are written
)

// watchRun handles GET /api/runs/{id}/events: it streams the events of a run that follow the event named by the client,
// until the run has ended. The watcher first subscribes to the bus, then reads the stored events, and then writes the
// events of the bus that follow them. It reads the store again if the bus was silent for a while or events were dropped. So
// the client gets every stored event exactly once.
func (h *runsHandler) watchRun(rw http.ResponseWriter, r *http.Request, c *caller) *problem {
	id := r.PathValue("id")
	after, p := position(r)
	if p != nil {
		return p
	}
	follow := followMode(r.URL.Query().Get("follow"))
	w := newWatch(h.runViews, id, after, follow)
	defer w.unsubscribe()
	newest, p := h.newest(r.Context(), c, id)
	_, ended := newest.Data.(*event.RunFinished)
	switch {
	case p != nil:
		return p
	case !slices.Contains([]followMode{"", untilEnd, untilPaused, untilStored}, follow):
		return badRequest("follow", "follow may be true, false or pause.")
	case after > newest.ID:
		p = conflict("event_id_ahead", "The run has no event %d: its last one is %d.", after, newest.ID)
		p.NewestEvent = newest.ID
		return p
	case after == newest.ID && ended && follow != untilStored:
		return answerNothing(rw) // after a 204 an EventSource does not reconnect
	}
	c.runID = id
	w.keepAlive = func(dst []byte) []byte { return sse.AppendComment(dst, "keep-alive") }
	defer w.open(rw, func(http.Header) {})()
	w.buf = append(w.buf, "retry: "+strconv.Itoa(retryMS)+"\n\n"...)
	err := w.run(r.Context())
	late, ofNetwork := errors.AsType[net.Error](err)
	switch {
	case ofNetwork && late.Timeout():
		c.code = "slow_reader"
	case err != nil:
		c.code = "watch_ended"
	}
	expectsMore := !w.over && follow != untilStored && r.Context().Err() == nil
	if expectsMore && h.leaving.Err() != nil {
		w.buf = sse.AppendEvent(w.buf, sse.Event{Type: "server_draining", Data: drainingEvent})
		_ = w.flush() // the client may have disconnected
	}
	return nil
}

// drainingEvent is the data of the event server_draining, the last event of a stream that ends before its run because the
// server stops. It is not an event of the run and has no id: the client reconnects, with the id of the last event that it
// received, to another process.
var drainingEvent = []byte(`{"type":"server_draining","reconnect_ms":` + strconv.Itoa(retryMS) + `}`)

// position returns the id of the event after which a watcher continues, from the header Last-Event-ID or the parameter
// after; 0 if neither is set.
func position(r *http.Request) (int64, *problem) {
	s, param := r.Header.Get("Last-Event-ID"), "Last-Event-ID"
	if s == "" {
		s, param = r.URL.Query().Get("after"), "after"
	}
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return 0, badRequest(param, "%s wants the id of an event, a whole number.", param)
	}
	return n, nil
}

// newest returns the last stored event of a run that the caller may see.
func (rv *runViews) newest(ctx context.Context, c *caller, id string) (last event.Event, p *problem) {
	for e, p := range rv.events(ctx, c, id) {
		if p != nil {
			return event.Event{}, p
		}
		last = *e
	}
	return last, nil
}

// events yields the stored events of a run, or a problem and then nothing if the caller may not see the run or the store
// fails.
func (rv *runViews) events(ctx context.Context, c *caller, id string) iter.Seq2[*event.Event, *problem] {
	return func(yield func(*event.Event, *problem) bool) {
		_ = rv.opts.Engine.Flush(ctx, id) // if the store fails, the read below reports it
		for e, err := range rv.opts.Index.Read(ctx, id, 0) {
			p := rv.runFailed(c, err)
			if d, ok := e.Data.(*event.RunStarted); ok && !c.sees(d.Principal) {
				p = noRun()
			}
			if !yield(&e, p) || p != nil {
				return
			}
		}
	}
}

// A watch reads the events of one run for one watcher and writes each of them once. It has one of three outputs: a sink, the
// stream of a chat page, or server-sent events. Only one goroutine uses it.
type watch struct {
	views  *runViews
	runID  string
	follow followMode
	sub    *observe.Subscription // a new one is made when the bus has dropped events
	wakeup condition             // interrupts the wait for the bus

	// The progress of the watch.
	last   int64         // the id of the last stored event that was written
	over   bool          // the last event for this watcher was written
	silent time.Duration // the time since the last output
	idle   int           // number of consecutive reads of the store without an event

	// sink, if set, gets the events instead of a stream. It gets the deltas of a model call up to the first missing one:
	// the next stored event contains the whole text. deltas is the number of deltas of the current model call that the sink
	// got.
	sink   func(*event.Event)
	deltas int64

	// Without a sink, the events are encoded into buf, and flush writes buf to out.
	out       *stream.Writer
	buf       []byte
	enc       *uistream.Encoder // encodes the run as the stream of a chat page; nil: as server-sent events
	keepAlive func(dst []byte) []byte
}

// newWatch returns a watch that begins after the event with the id after. The caller must call unsubscribe.
func newWatch(views *runViews, runID string, after int64, follow followMode) *watch {
	return &watch{views: views, runID: runID, follow: follow, last: after, sub: views.opts.Bus.Subscribe(runID)}
}

func (w *watch) unsubscribe() { w.sub.Close() }

// open starts the response to the client. head sets headers in addition to the id of the run. The caller calls close to end
// the response.
func (w *watch) open(rw http.ResponseWriter, head func(http.Header)) (close func()) {
	opts := &w.views.opts
	w.out = stream.NewWriter(rw, opts.Limits.WriteTimeout, func(h http.Header) {
		head(h)
		h.Set("X-Lathe-Run-Id", w.runID)
	})
	if opts.Metrics != nil {
		opts.Metrics.AddStreamClients(1)
	}
	return func() {
		w.out.End()
		if opts.Metrics != nil {
			opts.Metrics.AddStreamClients(-1)
		}
	}
}

// run writes events until the last event for the watcher, until the client has disconnected, the server drains, or ctx is
// done.
func (w *watch) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.views.leaving, cancel)()
	defer w.views.waiters.add(w.runID, func() {
		if !w.views.executes(w.runID) { // a run of this process has its events on the bus
			w.wakeup.wake()
		}
	})()
	if err := w.catchUp(ctx); err != nil || w.follow == untilStored {
		return err
	}
	defer w.views.relay(w.runID)()
	for !w.over {
		if err := w.waitLive(ctx); err != nil {
			return err
		}
	}
	return nil
}

// maxIdleShift limits the pause between two reads of the store to Limits.Poll << maxIdleShift.
const maxIdleShift = 4

// waitLive writes the events of the bus until the bus is silent for a while or events were dropped, and then reads the
// store. If another process owns the run, its stored events are not on the bus: waitLive reads them after each notification
// of the store, and without one every Limits.Poll. While the run has no events, the pause doubles up to 16 times
// Limits.Poll, so that runs which are suspended for hours cost the store little.
func (w *watch) waitLive(ctx context.Context) error {
	opts := &w.views.opts
	pause := opts.Limits.KeepAlive
	if w.views.shared != nil {
		pause = w.pause(&opts.Limits)
	}
	waiting, cancel := context.WithTimeout(ctx, pause)
	defer cancel()
	w.wakeup.begin(cancel)
	defer w.wakeup.over()
	for !w.over {
		e, err := w.sub.Next(waiting)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, context.DeadlineExceeded):
			return w.onIdle(ctx, pause)
		case errors.Is(err, context.Canceled): // wakeup: the store has notified this process of the run
			return w.catchUp(ctx)
		case errors.Is(err, observe.ErrLagged):
			w.sub.Close()
			w.sub = opts.Bus.Subscribe(w.runID)
			return w.catchUp(ctx)
		case errors.Is(err, io.EOF): // the bus has published the last event of the run
			return w.catchUp(ctx)
		case err != nil:
			return err
		}
		if err := w.onLive(ctx, &e); err != nil {
			return err
		}
	}
	return nil
}

// pause returns how long the watcher waits for the bus before it reads the store, if the store is shared.
func (w *watch) pause(l *Limits) time.Duration {
	return min(l.KeepAlive-w.silent, l.Poll<<min(w.idle, maxIdleShift))
}

// onIdle reads the store after a pause without events on the bus. It does not if this process executes the run, whose
// events reach the bus. After Limits.KeepAlive without output it writes a keep-alive.
func (w *watch) onIdle(ctx context.Context, pause time.Duration) error {
	w.silent += pause
	isLong := w.silent >= w.views.opts.Limits.KeepAlive
	if !isLong && w.views.executes(w.runID) {
		return nil
	}
	w.idle++
	if isLong {
		w.silent = 0
		if w.sink == nil {
			w.buf = w.keepAlive(w.buf)
		}
	}
	return w.catchUp(ctx)
}

// onLive writes an event of the bus if it is the next one. If events are missing before it, onLive reads them from the
// store.
func (w *watch) onLive(ctx context.Context, e *event.Event) error {
	isDelta := e.ID == 0
	before := e.ID - 1 // the id of the stored event before e
	if isDelta {
		before = e.After
	}
	if before < w.last {
		return nil // the event or a later one was already read from the store
	}
	if before > w.last {
		if err := w.catchUp(ctx); err != nil {
			return err
		}
		if !isDelta || before != w.last {
			return nil // an event with an id is stored before it is published, so catchUp has written it
		}
	}
	if w.sink != nil && isDelta {
		if e.N != w.deltas+1 { // deltas are missing: the subscription began in the middle of a turn, or it lags
			return nil
		}
		w.deltas++
	}
	if err := w.write(e); err != nil {
		return err
	}
	return w.flush()
}

// catchUp writes the stored events after the last one that was written. It does not write to the client while it reads the
// store, so that a slow client does not block the store.
func (w *watch) catchUp(ctx context.Context) error {
	for {
		err := w.readStored(ctx)
		full := len(w.buf) > maxFrames
		if err = errors.Join(err, w.flush()); err != nil || !full {
			return err
		}
	}
}

// readStored encodes stored events until there are no more or the buffer has more than maxFrames bytes.
func (w *watch) readStored(ctx context.Context) error {
	for e, err := range w.views.opts.Index.Read(ctx, w.runID, w.last) {
		if err == nil {
			err = w.write(&e)
		}
		if err != nil || len(w.buf) > maxFrames {
			return err
		}
	}
	return nil
}

// write passes an event to the output and updates the progress of the watch. A client gets the event at the next flush.
func (w *watch) write(e *event.Event) error {
	w.silent, w.idle = 0, 0
	if err := w.encode(e); err != nil {
		return err
	}
	w.last = max(w.last, e.ID)
	switch e.Data.(type) {
	case *event.ModelCallStarted:
		w.over, w.deltas = false, 0
	case *event.RunFinished:
		w.over = true
	case *event.RunPaused:
		w.over = w.follow == untilPaused
	default: // the run continues
		w.over = false
	}
	return nil
}

// encode passes the event to the sink, or appends it to the buffer in the format of the stream.
func (w *watch) encode(e *event.Event) error {
	if w.sink != nil {
		w.sink(e)
		return nil
	}
	if w.enc != nil {
		w.buf = w.enc.Append(w.buf, e)
		return nil
	}
	line, err := e.MarshalJSON()
	if err != nil {
		return err
	}
	frame := sse.Event{Type: e.Data.EventType(), Data: line}
	if e.ID != 0 {
		frame.ID = strconv.FormatInt(e.ID, 10)
	}
	w.buf = sse.AppendEvent(w.buf, frame)
	return nil
}

// flush writes the buffer to the client and empties it. It does nothing if the watch has a sink.
func (w *watch) flush() error {
	if w.sink != nil {
		return nil
	}
	err := w.out.Write(w.buf)
	w.buf = w.buf[:0]
	return err
}

// exportRun handles GET /api/runs/{id}/export: it writes the whole log of a run, one JSON line for each event.
func (h *runsHandler) exportRun(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	id := r.PathValue("id")
	if _, p := h.newest(r.Context(), c, id); p != nil {
		return p
	}
	c.runID = id
	out := stream.NewWriter(w, h.opts.Limits.WriteTimeout, func(header http.Header) {
		header.Set("Content-Type", "application/jsonl")
		header.Set("Content-Disposition", `attachment; filename="`+id+`.jsonl"`)
		header.Del("X-Accel-Buffering")
	})
	defer out.End()
	var page []byte
	after, full := int64(0), true
	for full {
		full = false
		for e, err := range h.opts.Index.Read(r.Context(), id, after) {
			if err == nil {
				page, err = e.AppendWithContent(page)
			}
			if err != nil {
				panic(http.ErrAbortHandler) // the connection breaks, so the client knows that the log is incomplete
			}
			page, after = append(page, '\n'), e.ID
			if len(page) > maxFrames {
				full = true
				break
			}
		}
		if out.Write(page) != nil {
			return nil // the client left
		}
		page = page[:0]
	}
	return nil
}
