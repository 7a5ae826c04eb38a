package server

import (
	"context"
	"errors"
	"io"
	"iter"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/gateway/stream"
	"github.com/lathe-run/lathe/internal/sse"
	"github.com/lathe-run/lathe/internal/wire/uistream"
	"github.com/lathe-run/lathe/observe"
)

// retryMS is the time in milliseconds after which a watcher reconnects when its connection breaks.
const retryMS = 1000

// maxFrames is the number of bytes of stored events that are collected before they are written.
const maxFrames = 64 << 10

// watchRun handles GET /api/runs/{id}/events: it streams the events of a run that follow the event named by the client,
// until the run has ended. The watcher first subscribes to the bus, then reads the stored events, and then writes the
// events of the bus that follow them. It reads the store again if the bus was silent for a while or events were dropped. So
// the client gets every stored event exactly once.
func (h *runsHandler) watchRun(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	id := r.PathValue("id")
	after, p := position(r)
	if p != nil {
		return p
	}
	x := &watch{views: h.runViews, runID: id, last: after, sub: h.opts.Bus.Subscribe(id), follow: r.URL.Query().Get("follow")}
	defer func() { x.sub.Close() }()
	newest, ended, p := h.newest(r.Context(), c, id)
	switch {
	case p != nil:
	case x.follow != "" && x.follow != "true" && x.follow != "false" && x.follow != "pause":
		p = badRequest("follow", "follow may be true, false or pause.")
	case after > newest:
		p = conflict("event_id_ahead", "The run has no event %d: its last one is %d.", after, newest)
		p.NewestEvent = newest
	case after == newest && ended && x.follow != "false":
		return answerNothing(w) // after a 204 an EventSource does not reconnect
	}
	if p != nil {
		return p
	}
	c.runID = id
	defer x.open(w, func(http.Header) {})()
	x.buf = append(x.buf, "retry: "+strconv.Itoa(retryMS)+"\n\n"...)
	var late net.Error
	switch err := x.run(r.Context()); {
	case errors.As(err, &late) && late.Timeout():
		c.code = "slow_reader"
	case err != nil:
		c.code = "watch_ended"
	}
	if h.leaving.Err() != nil && !x.over && x.follow != "false" && r.Context().Err() == nil {
		x.buf = sse.AppendEvent(x.buf, sse.Event{Type: "server_draining", Data: drainingEvent})
		_ = x.flush() // the client may have disconnected
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

// newest returns the id of the last stored event of a run that the caller may see, and whether that event is the end of the
// run.
func (rv *runViews) newest(ctx context.Context, c *caller, id string) (last int64, ended bool, p *problem) {
	for e, p := range rv.events(ctx, c, id) {
		if p != nil {
			return 0, false, p
		}
		_, ended = e.Data.(*event.RunFinished)
		last = e.ID
	}
	return last, ended, nil
}

// events yields the stored events of a run, or a problem and then nothing if the caller may not see the run or the store
// fails.
func (rv *runViews) events(ctx context.Context, c *caller, id string) iter.Seq2[*event.Event, *problem] {
	return func(yield func(*event.Event, *problem) bool) {
		_ = rv.opts.Engine.Flush(ctx, id) // if the store fails, the read below reports it
		for e, err := range rv.opts.Index.Read(ctx, id, 0) {
			p := rv.runFailed(c, err)
			if d, ok := e.Data.(*event.RunStarted); ok && !c.sees(d) {
				p = noRun()
			}
			if !yield(&e, p) || p != nil {
				return
			}
		}
	}
}

// A watch reads the events of one run for one watcher: a stream of events, the stream of a chat page, or a sink.
type watch struct {
	views  *runViews
	runID  string
	sub    *observe.Subscription
	out    *stream.Writer
	buf    []byte
	follow string        // "false": end after the stored events; "pause": also end when the run is suspended
	last   int64         // the id of the last stored event that was written
	silent time.Duration // the time since the last output
	idle   int           // number of consecutive reads of the store without an event
	over   bool          // the last event for this watcher was written
	wakeup condition     // interrupts the wait for the bus
	// enc, if set, encodes the run as the stream of a chat page.
	enc       *uistream.Encoder
	keepAlive func(dst []byte) []byte
	// sink, if set, gets the events instead of a stream. It gets the deltas of a model call up to the first missing one:
	// the next stored event contains the whole text. deltas is the number of deltas of the current model call that the sink
	// got.
	sink   func(*event.Event)
	deltas int64
}

// open starts the response to the client. head sets headers in addition to the id of the run. The caller calls close to end
// the response.
func (x *watch) open(w http.ResponseWriter, head func(http.Header)) (close func()) {
	o := &x.views.opts
	x.out = stream.NewWriter(w, o.Limits.WriteTimeout, func(h http.Header) {
		head(h)
		h.Set("X-Lathe-Run-Id", x.runID)
	})
	if o.Metrics != nil {
		o.Metrics.AddStreamClients(1)
	}
	return func() {
		x.out.End()
		if o.Metrics != nil {
			o.Metrics.AddStreamClients(-1)
		}
	}
}

// run writes events until the last event for the watcher, until the client has disconnected, the server drains, or ctx is
// done.
func (x *watch) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(x.views.leaving, cancel)()
	defer x.views.waiters.add(x.runID, func() {
		if !x.views.executes(x.runID) { // a run of this process has its events on the bus
			x.wakeup.wake()
		}
	})()
	if err := x.catchUp(ctx); err != nil || x.follow == "false" {
		return err
	}
	defer x.views.relay(x.runID)()
	for !x.over {
		if err := x.waitLive(ctx); err != nil {
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
func (x *watch) waitLive(ctx context.Context) error {
	g := x.views
	pause := g.opts.Limits.KeepAlive
	if g.shared != nil {
		pause = x.pause(&g.opts.Limits)
	}
	heard, cancel := context.WithTimeout(ctx, pause)
	defer cancel()
	x.wakeup.begin(cancel)
	defer x.wakeup.over()
	for !x.over {
		e, err := x.sub.Next(heard)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, context.DeadlineExceeded):
			return x.onIdle(ctx, pause)
		case errors.Is(err, context.Canceled): // wakeup: the store has notified this process of the run
			return x.catchUp(ctx)
		case errors.Is(err, observe.ErrLagged):
			x.sub.Close()
			x.sub = g.opts.Bus.Subscribe(x.runID)
			return x.catchUp(ctx)
		case errors.Is(err, io.EOF): // the bus has published the last event of the run
			return x.catchUp(ctx)
		case err != nil:
			return err
		}
		if err := x.onLive(ctx, &e); err != nil {
			return err
		}
	}
	return nil
}

// pause returns how long the watcher waits for the bus before it reads the store, if the store is shared.
func (x *watch) pause(l *Limits) time.Duration {
	return min(l.KeepAlive-x.silent, l.Poll<<min(x.idle, maxIdleShift))
}

// onIdle reads the store after a pause without events on the bus. It does not if this process executes the run, whose
// events reach the bus. After Limits.KeepAlive without output it writes a keep-alive.
func (x *watch) onIdle(ctx context.Context, pause time.Duration) error {
	g := x.views
	if x.silent += pause; x.silent < g.opts.Limits.KeepAlive {
		if g.executes(x.runID) {
			return nil
		}
		x.idle++
		return x.catchUp(ctx)
	}
	x.silent = 0
	x.idle++
	if x.buf = sse.AppendComment(x.buf, "keep-alive"); x.enc != nil {
		x.buf = x.keepAlive(x.buf[:0])
	}
	return x.catchUp(ctx)
}

// onLive writes an event of the bus if it is the next one. If events are missing before it, onLive reads them from the
// store.
func (x *watch) onLive(ctx context.Context, e *event.Event) error {
	switch {
	case e.ID == 0 && e.After < x.last, e.ID != 0 && e.ID <= x.last:
		return nil // the event or a later one was already read from the store
	case e.ID == 0 && e.After > x.last, e.ID > x.last+1:
		if err := x.catchUp(ctx); err != nil {
			return err
		}
		if e.ID != 0 || e.After != x.last {
			return nil // an event with an id is stored before it is published, so catchUp has written it
		}
	}
	if x.sink != nil && e.ID == 0 {
		if e.N != x.deltas+1 { // deltas are missing: the subscription began in the middle of a turn, or it lags
			return nil
		}
		x.deltas++
	}
	if err := x.tell(e); err != nil {
		return err
	}
	return x.flush()
}

// catchUp writes the stored events after the last one that was written. It does not write to the client while it reads the
// store, so that a slow client does not block the store.
func (x *watch) catchUp(ctx context.Context) error {
	for {
		more := false
		for e, err := range x.views.opts.Index.Read(ctx, x.runID, x.last) {
			if err == nil {
				err = x.tell(&e)
			}
			if err != nil {
				return errors.Join(err, x.flush())
			}
			if more = len(x.buf) > maxFrames; more {
				break
			}
		}
		if err := x.flush(); err != nil || !more {
			return err
		}
	}
}

// tell encodes an event and updates the state of the watch: the last event and whether it is over.
func (x *watch) tell(e *event.Event) error {
	x.silent, x.idle = 0, 0
	if err := x.encode(e); err != nil {
		return err
	}
	x.last = max(x.last, e.ID)
	switch e.Data.(type) {
	case *event.ModelCallStarted:
		x.over, x.deltas = false, 0
	case *event.RunFinished:
		x.over = true
	case *event.RunPaused:
		x.over = x.follow == "pause"
	default: // the run continues
		x.over = false
	}
	return nil
}

// encode passes the event to the sink, or appends it to the buffer in the format of the stream.
func (x *watch) encode(e *event.Event) error {
	if x.sink != nil {
		x.sink(e)
		return nil
	}
	if x.enc != nil {
		x.buf = x.enc.Append(x.buf, e)
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
	x.buf = sse.AppendEvent(x.buf, frame)
	return nil
}

// flush writes the buffer to the client and empties it.
func (x *watch) flush() error {
	if x.sink != nil {
		x.buf = x.buf[:0]
		return nil
	}
	err := x.out.Write(x.buf)
	x.buf = x.buf[:0]
	return err
}

// exportRun handles GET /api/runs/{id}/export: it writes the whole log of a run, one JSON line for each event.
func (h *runsHandler) exportRun(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	id := r.PathValue("id")
	if _, _, p := h.newest(r.Context(), c, id); p != nil {
		return p
	}
	c.runID = id
	out := stream.NewWriter(w, h.opts.Limits.WriteTimeout, func(header http.Header) {
		header.Set("Content-Type", "application/jsonl")
		header.Set("Content-Disposition", `attachment; filename="`+id+`.jsonl"`)
		header.Del("X-Accel-Buffering")
	})
	defer out.End()
	var buf []byte
	for last, more := int64(0), true; more; {
		more = false
		for e, err := range h.opts.Index.Read(r.Context(), id, last) {
			if err == nil {
				buf, err = e.AppendWithContent(buf)
			}
			if err != nil {
				panic(http.ErrAbortHandler) // the connection breaks, so the client knows that the log is incomplete
			}
			buf, last = append(buf, '\n'), e.ID
			if more = len(buf) > maxFrames; more {
				break
			}
		}
		if out.Write(buf) != nil {
			return nil // the client left
		}
		buf = buf[:0]
	}
	return nil
}
