package tool

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
)

// abandonGrace is how long a tool may take to return once its context is done.
const abandonGrace = 100 * time.Millisecond

// execute is stage 10: the intent is journaled, then the tool is called, under its deadline. A tool
// that does not return soon after its context is done is abandoned: the call is answered without
// it, and its places stay taken until it returns. A result that comes in time counts, even where
// the context was done.
func (w *Work) execute(ctx context.Context, c *call) (ended bool) {
	e := c.entry
	if ctx.Err() != nil {
		w.standBack(e)
		return c.end(lathe.CodeCancelled)
	}
	if w.settings.Executor == lathe.ExecutorNoop {
		w.standBack(e)
		c.noop, c.data = true, []byte(`{"ok":true}`)
		return false
	}
	if w.r.opts.Journal != nil {
		if err := w.journal(ctx, c); err != nil {
			w.standBack(e)
			w.tell(ctx, c, err)
			return c.end(lathe.CodeUnavailable)
		}
		w.lookAgain(c)
	}
	c.start = c.now
	for {
		c.attempts++
		w.attempt(ctx, c)
		w.reportBackend(c)
		if !w.again(ctx, c) {
			return c.code != ""
		}
	}
}

// attempt calls the tool once. What comes of it stands in c: its output, or the code that ends the call.
func (w *Work) attempt(ctx context.Context, c *call) {
	inv := &invocation{args: w.reveal(c), began: c.now, callContext: callContext{
		parent: ctx, deadline: c.deadline, run: w.info, entry: c.entry, id: c.ID, scope: c.scope}}
	c.ran = true
	go inv.run()
	cut, isBack := lathe.Code(""), inv.soonBack()
	if !isBack {
		cut, isBack = w.waitFor(ctx, c, inv)
	}
	if isBack && !w.r.ownClock {
		c.now = c.now.Add(inv.took) // not when this goroutine came to see it
	} else {
		w.lookAgain(c)
	}
	c.latency = c.now.Sub(c.start)
	if !isBack {
		w.r.abandoned.Add(1)
		c.cutOff(cut)
		return
	}
	w.returned(ctx, c, inv, cut)
}

// waitFor waits until the tool is back, or a grace after the call's deadline or the end of ctx. The
// code says which of these came before the tool did.
func (w *Work) waitFor(ctx context.Context, c *call, inv *invocation) (cut lathe.Code, isBack bool) {
	l := c.lane
	tell := l.backChannel()
	if !inv.awaitOn(tell) {
		return "", true
	}
	timer := l.startTimer(inv.left())
	for cut == "" {
		select {
		case <-tell:
			timer.Stop()
			return "", true
		case <-timer.C:
			if left := inv.left(); left > 0 { // it has asked somebody
				timer.Reset(left)
				continue
			}
			cut = lathe.CodeTimeout
			inv.end(context.DeadlineExceeded)
		case <-ctx.Done():
			cut = lathe.CodeCancelled
			inv.end(ctx.Err())
		}
	}
	timer.Reset(abandonGrace)
	select {
	case <-tell:
		timer.Stop()
		return cut, true
	case <-timer.C:
		l.back = nil // the tool may still tell it
		return cut, false
	}
}

// returned looks at what a tool came back with.
func (w *Work) returned(ctx context.Context, c *call, inv *invocation, cut lathe.Code) {
	if inv.out != nil {
		c.rc, c.child, c.cause = inv.out.RC, inv.out.Run, inv.out.Cause
	}
	c.broke = !inv.returned
	if !inv.returned {
		w.logPanic(ctx, c, inv.err)
		w.tell(ctx, c, inv.err)
		c.cause = "the tool panicked"
		c.end(lathe.CodeExecutionFailed)
		return
	}
	if inv.err == nil {
		c.out = inv.out
		return
	}
	w.tell(ctx, c, inv.err)
	if cause := (*CauseError)(nil); errors.As(inv.err, &cause) {
		c.cause = cause.Cause
	}
	c.fault = errors.Is(inv.err, ErrGuestFault)
	if cut != "" {
		c.cutOff(cut)
		return
	}
	c.failWith(inv.err)
}

// failWith answers the error of a tool: the text of a Failure, a code that a tool may choose, and
// else that it failed.
func (c *call) failWith(err error) {
	if f := (*Failure)(nil); errors.As(err, &f) {
		if f.Message != "" {
			c.detailString("detail", clip(strings.ToValidUTF8(f.Message, "\uFFFD"), maxDetailBytes))
		}
		c.end(f.Code)
		return
	}
	if le := (*lathe.Error)(nil); errors.As(err, &le) {
		c.end(le.Code)
		return
	}
	c.broke = true
	if errors.Is(err, context.DeadlineExceeded) {
		c.end(lathe.CodeTimeout)
		return
	}
	c.end(lathe.CodeExecutionFailed)
}

func (c *call) cutOff(code lathe.Code) {
	if code == lathe.CodeTimeout {
		c.limitKey = "tool_timeout"
		c.detailString("limit", c.limitKey)
		c.detailInt("max_ms", c.timeout.Milliseconds())
	}
	c.end(code)
}

// journal keeps the intent. A journal that panics has not kept it.
func (w *Work) journal(ctx context.Context, c *call) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("tool: the journal panicked")
		}
	}()
	return w.r.opts.Journal(ctx, &c.lane.info, c.verdict)
}

// tell hands on the error of a tool. That whoever is told panics changes nothing for the call.
func (w *Work) tell(ctx context.Context, c *call, err error) {
	if w.r.opts.OnError == nil {
		return
	}
	defer func() { _ = recover() }()
	w.r.opts.OnError(ctx, c.info(), err)
}

func (w *Work) logPanic(ctx context.Context, c *call, err error) {
	if p := (*PanicError)(nil); w.r.opts.Log != nil && errors.As(err, &p) {
		w.r.opts.Log.LogAttrs(ctx, slog.LevelWarn, "tool panicked",
			slog.String("tool_name", c.tool), slog.String("tool_call_id", c.ID), slog.String("stack", p.Stack))
	}
}

// functions names the functions on the stack of a panic, the innermost first, without their values.
func functions() string {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	var b strings.Builder
	for {
		f, more := frames.Next()
		if f.Function != "" {
			b.WriteString(f.Function)
			b.WriteByte(':')
			b.WriteString(strconv.Itoa(f.Line))
			b.WriteByte('\n')
		}
		if !more {
			return b.String()
		}
	}
}

// backChannel returns the channel on which a tool tells that it has returned.
func (l *lane) backChannel() chan struct{} {
	if l.back == nil {
		l.back = make(chan struct{}, 1)
	}
	return l.back
}

func (l *lane) startTimer(d time.Duration) *time.Timer {
	if l.timer == nil {
		l.timer = time.NewTimer(d)
	} else {
		l.timer.Reset(d)
	}
	return l.timer
}
