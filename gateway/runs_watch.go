package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/sse"
	"github.com/lathe-run/lathe/internal/wire/uistream"
	"github.com/lathe-run/lathe/observe"
)

// retryMS is when a watcher whose connection broke off comes back.
const retryMS = 1000

// maxFrames is how many bytes of stored events are written at once.
const maxFrames = 64 << 10

// watchRun streams the events of a run, from after the one that the client names, until the run has
// ended. What is stored and what happens are joined: the watcher listens first, then reads the store,
// and then takes from what it heard what follows. Whatever it did not hear is in the store, which it
// looks into again whenever nothing was heard for a while; so nothing is missed, and nothing told twice.
func (g *Gateway) watchRun(w http.ResponseWriter, r *http.Request, c *caller) {
	id := r.PathValue("id")
	after, p := position(r)
	if p != nil {
		c.fail(w, p)
		return
	}
	x := &watch{gateway: g, runID: id, last: after, sub: g.opts.Bus.Subscribe(id), follow: r.URL.Query().Get("follow")}
	defer func() { x.sub.Close() }()
	newest, ended, p := g.newest(r.Context(), c, id)
	switch {
	case p != nil:
	case x.follow != "" && x.follow != "true" && x.follow != "false" && x.follow != "pause":
		p = badWish("follow", "follow may be true, false or pause.")
	case after > newest:
		p = conflict("event_id_ahead", fmt.Sprintf("The run has no event %d: its last one is %d.", after, newest))
		p.NewestEvent = newest
	case after == newest && ended && x.follow != "false":
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusNoContent) // which tells an EventSource not to come back
		return
	}
	if p != nil {
		c.fail(w, p)
		return
	}
	c.runID = id
	rc := http.NewResponseController(w)
	x.out = &streamWriter{w: w, rc: rc, timeout: g.opts.Limits.WriteTimeout, head: func(h http.Header) { h.Set("X-Lathe-Run-Id", id) }}
	defer func() { _ = rc.SetWriteDeadline(time.Time{}) }() // the connection may be used again
	if m := g.opts.Metrics; m != nil {
		m.AddStreamClients(1)
		defer m.AddStreamClients(-1)
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(g.leaving, cancel)()
	x.buf = append(x.buf, "retry: "+strconv.Itoa(retryMS)+"\n\n"...)
	var late net.Error
	switch err := x.run(ctx); {
	case errors.As(err, &late) && late.Timeout():
		c.code = "slow_reader"
	case err != nil:
		c.code = "watch_ended"
	}
}

// position reads after which event a watcher goes on.
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
		return 0, badWish(param, "%s wants the id of an event, a whole number.", param)
	}
	return n, nil
}

// newest returns the last event that a run of the caller has, and whether it is its end.
func (g *Gateway) newest(ctx context.Context, c *caller, id string) (last int64, ended bool, p *problem) {
	_ = g.opts.Engine.Settle(ctx, id) // the read says what is wrong with the store
	for e, err := range g.opts.Index.Read(ctx, id, 0) {
		if err != nil {
			return 0, false, g.runFailed(c, err)
		}
		if d, ok := e.Data.(*lathe.RunStarted); ok && !c.owns(d) {
			return 0, false, noRun()
		}
		_, ended = e.Data.(*lathe.RunFinished)
		last = e.ID
	}
	return last, ended, nil
}

// A watch is one watcher of one run.
type watch struct {
	gateway *Gateway
	runID   string
	sub     *observe.Subscription
	out     *streamWriter
	buf     []byte
	follow  string        // "false": what is stored, "pause": until the run waits
	last    int64         // the last stored event that was told
	silent  time.Duration // for so long nothing was told
	over    bool          // it was the last for this watcher
	nap     nap           // in which it listens
	// enc, where it is set, has the run told as the stream of a chat page.
	enc       *uistream.Encoder
	keepAlive func(dst []byte) []byte
	// sink, where it is set, gets the events in place of a stream.
	sink func(*lathe.Event)
}

// run tells events until the run has ended, the watcher is gone, or ctx is done.
func (x *watch) run(ctx context.Context) error {
	defer x.gateway.hinted.add(x.runID, func() {
		if !x.gateway.carries(x.runID) { // else it hears of it
			x.nap.wake()
		}
	})()
	if err := x.catchUp(ctx); err != nil || x.follow == "false" {
		return err
	}
	defer x.gateway.relay(x.runID)()
	for !x.over {
		if err := x.listen(ctx); err != nil {
			return err
		}
	}
	return nil
}

// listen tells what it hears until it is quiet, or something was missed; then it looks into the store. What
// is carried by another process it does not hear: then it looks at each hint of the store, and often without one.
func (x *watch) listen(ctx context.Context) error {
	g := x.gateway
	pause := g.opts.Limits.KeepAlive
	if g.shared != nil {
		pause = min(pause, g.opts.Limits.Poll)
	}
	heard, cancel := context.WithTimeout(ctx, pause)
	defer cancel()
	x.nap.begin(cancel)
	defer x.nap.over()
	for !x.over {
		e, err := x.sub.Next(heard)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, context.DeadlineExceeded):
			return x.quiet(ctx, pause)
		case errors.Is(err, context.Canceled): // the store has hinted at the run
			return x.catchUp(ctx)
		case errors.Is(err, observe.ErrLagged):
			x.sub.Close()
			x.sub = g.opts.Bus.Subscribe(x.runID)
			return x.catchUp(ctx)
		case errors.Is(err, io.EOF): // its last event was heard
			return x.catchUp(ctx)
		case err != nil:
			return err
		}
		if err := x.hear(ctx, &e); err != nil {
			return err
		}
	}
	return nil
}

// quiet looks into the store after a pause in which nothing was heard, unless what happens would be heard. The
// watcher is told from time to time that the stream stands.
func (x *watch) quiet(ctx context.Context, pause time.Duration) error {
	g := x.gateway
	if x.silent += pause; x.silent < g.opts.Limits.KeepAlive {
		if g.carries(x.runID) {
			return nil
		}
		return x.catchUp(ctx)
	}
	x.silent = 0
	if x.buf = sse.AppendComment(x.buf, "keep-alive"); x.enc != nil {
		x.buf = x.keepAlive(x.buf[:0])
	}
	return x.catchUp(ctx)
}

// hear tells an event if it follows what was told.
func (x *watch) hear(ctx context.Context, e *lathe.Event) error {
	switch {
	case e.ID == 0 && e.After < x.last, e.ID != 0 && e.ID <= x.last:
		return nil // the store has told it, or what came of it
	case e.ID == 0 && e.After > x.last, e.ID > x.last+1:
		if err := x.catchUp(ctx); err != nil {
			return err
		}
		if e.ID != 0 || e.After != x.last {
			return nil // an event with an id is in the store before it is heard
		}
	}
	if err := x.tell(e); err != nil {
		return err
	}
	return x.flush()
}

// catchUp tells what the store has. Nothing is written while the store is read: a slow watcher holds up
// nobody.
func (x *watch) catchUp(ctx context.Context) error {
	for {
		more := false
		for e, err := range x.gateway.opts.Index.Read(ctx, x.runID, x.last) {
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

func (x *watch) tell(e *lathe.Event) error {
	x.silent = 0
	if err := x.encode(e); err != nil {
		return err
	}
	x.last = max(x.last, e.ID)
	switch e.Data.(type) {
	case *lathe.RunFinished:
		x.over = true
	case *lathe.RunPaused:
		x.over = x.follow == "pause"
	default: // it goes on
		x.over = false
	}
	return nil
}

func (x *watch) encode(e *lathe.Event) error {
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

func (x *watch) flush() error {
	if x.sink != nil {
		x.buf = x.buf[:0]
		return nil
	}
	err := x.out.write(x.buf)
	x.buf = x.buf[:0]
	return err
}

// exportRun writes the whole log of a run, one JSON line for each event.
func (g *Gateway) exportRun(w http.ResponseWriter, r *http.Request, c *caller) {
	id := r.PathValue("id")
	if _, _, p := g.newest(r.Context(), c, id); p != nil {
		c.fail(w, p)
		return
	}
	c.runID = id
	h := w.Header()
	h.Set("Content-Type", "application/jsonl")
	h.Set("Content-Disposition", `attachment; filename="`+id+`.jsonl"`)
	h.Set("Cache-Control", "no-store")
	rc := http.NewResponseController(w)
	defer func() { _ = rc.SetWriteDeadline(time.Time{}) }() // the connection may be used again
	var buf []byte
	for last, more := int64(0), true; more; {
		more = false
		for e, err := range g.opts.Index.Read(r.Context(), id, last) {
			if err == nil {
				buf, err = e.AppendJSON(buf, true)
			}
			if err != nil {
				panic(http.ErrAbortHandler) // the client sees that there is more
			}
			buf, last = append(buf, '\n'), e.ID
			if more = len(buf) > maxFrames; more {
				break
			}
		}
		_ = rc.SetWriteDeadline(time.Now().Add(g.opts.Limits.WriteTimeout)) // a test's writer has none
		if _, err := w.Write(buf); err != nil {
			return
		}
		buf = buf[:0]
	}
}
