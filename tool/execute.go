package tool

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/secret"
)

// abandonGrace is the maximum time for a tool to return after its context is done.
const abandonGrace = 100 * time.Millisecond

// execute is stage 10. It journals the intent and then calls the tool under its deadline. If a tool does not return within abandonGrace
// after its context is done, it is abandoned: the call gets a result without it, and its places remain occupied until it returns. A result
// that arrives within that time counts even if the context was done.
func execute(ctx context.Context, c *call) ending {
	w := c.w
	if ctx.Err() != nil {
		releasePlaces(c)
		return fail(lathe.CodeCancelled)
	}
	if w.settings.Executor == lathe.ExecutorNoop {
		releasePlaces(c)
		c.noop, c.data = true, []byte(`{"ok":true}`)
		return proceed
	}
	if w.r.opts.Journal != nil {
		if err := writeIntent(ctx, c); err != nil {
			releasePlaces(c)
			reportError(ctx, c, lathe.CodeUnavailable, err)
			return fail(lathe.CodeUnavailable)
		}
		c.now = w.r.now()
	}
	c.start = c.now
	for {
		c.attempts++
		end := attempt(ctx, c)
		code := attemptCode(c, end)
		reportBackend(c, code)
		if !c.mayRetry(code) || !pauseBeforeRetry(ctx, c) {
			return end
		}
		c.failure, c.rc, c.out = failure{detail: c.detail[:0]}, 0, nil
		c.now = w.r.now()
		if end := acquirePlaces(ctx, c); end != proceed {
			return end
		}
	}
}

// attemptCode returns the code of an attempt; for an output that is an error, that of the output.
func attemptCode(c *call, end ending) lathe.Code {
	if end == proceed && c.out != nil && c.out.IsError {
		return c.out.Code
	}
	return lathe.Code(end)
}

// attempt calls the tool once and stores its output in c.
func attempt(ctx context.Context, c *call) ending {
	w := c.w
	inv := newInvocation(ctx, c)
	c.ran = true
	go inv.run()
	cut, returned := waitFor(ctx, c, inv)
	c.now = w.r.now()
	c.latency = c.now.Sub(c.start)
	if !returned {
		w.r.abandoned.Add(1)
		return cutOff(c, cut)
	}
	return readOutput(ctx, c, inv, cut)
}

// waitFor emits the reports of the tool and waits until it returns, but at most for abandonGrace after the call's deadline or the end of
// ctx. cut is the code of the one that came first, or "" if the tool returned before both.
func waitFor(ctx context.Context, c *call, inv *invocation) (cut lathe.Code, returned bool) {
	timer := time.NewTimer(inv.left())
	defer timer.Stop()
	for cut == "" {
		select {
		case p := <-inv.back:
			if p == nil {
				return "", true
			}
			emitProgress(c, p)
		case <-timer.C:
			if left := inv.left(); left > 0 { // the time during which the tool asked is added
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
	for {
		select {
		case p := <-inv.back:
			if p == nil {
				return cut, true
			}
		case <-timer.C:
			return cut, false
		}
	}
}

// readOutput stores the result of a tool that has returned in c.
func readOutput(ctx context.Context, c *call, inv *invocation, cut lathe.Code) ending {
	if inv.out != nil {
		c.rc, c.cause = inv.out.RC, inv.out.Cause
		c.addChild(inv.out.Run)
	}
	c.broke = !inv.returned
	if !inv.returned {
		logPanic(ctx, c, inv.err)
		reportError(ctx, c, lathe.CodeExecutionFailed, inv.err)
		c.cause = "the tool panicked"
		return fail(lathe.CodeExecutionFailed)
	}
	c.err = inv.err
	if inv.err == nil {
		if c.out = inv.out; c.out != nil && c.out.IsError {
			logError(ctx, c, cmp.Or(callCode(c.out.Code), lathe.CodeExecutionFailed), string(c.out.Data))
		}
		return proceed
	}
	reportError(ctx, c, cmp.Or(cut, errorCode(inv.err)), inv.err)
	if cause, ok := errors.AsType[*CauseError](inv.err); ok {
		c.cause = cause.Cause
	}
	c.fault = errors.Is(inv.err, ErrGuestFault)
	if cut != "" {
		return cutOff(c, cut)
	}
	return failWith(c, inv.err)
}

// failWith ends a call with the error of its tool: with code and text of a [Failure], the code of a *[lathe.Error], or timeout or
// execution_failed for any other error.
func failWith(c *call, err error) ending {
	if f, ok := errors.AsType[*Failure](err); ok {
		if f.Message != "" {
			c.detailString("detail", text.Cut(strings.ToValidUTF8(f.Message, "\uFFFD"), maxDetailBytes))
		}
		return fail(f.Code)
	}
	c.broke = !errors.As(err, new(*lathe.Error))
	return fail(errorCode(err))
}

// errorCode returns the code of a call that ends with the error of its tool.
func errorCode(err error) lathe.Code {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f.Code
	}
	if le, ok := errors.AsType[*lathe.Error](err); ok {
		return le.Code
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return lathe.CodeTimeout
	}
	return lathe.CodeExecutionFailed
}

// cutOff ends a call whose deadline has passed or whose run has ended.
func cutOff(c *call, code lathe.Code) ending {
	if code == lathe.CodeTimeout {
		c.limitKey = "tool_timeout"
		c.detailString("limit", c.limitKey)
		c.detailInt("max_ms", c.timeout.Milliseconds())
	}
	return fail(code)
}

// writeIntent calls the journal. A panic is returned as an error.
func writeIntent(ctx context.Context, c *call) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("tool: the journal panicked")
		}
	}()
	return c.w.r.opts.Journal(ctx, c.info, c.verdict)
}

// reportError logs the error of a tool, which ends its call with the code, and passes it to OnError. It ignores a panic of OnError.
func reportError(ctx context.Context, c *call, code lathe.Code, err error) {
	text := err.Error()
	if f, ok := errors.AsType[*Failure](err); ok && f.Message != "" {
		text = f.Message
	}
	logError(ctx, c, code, text)
	report := c.w.r.opts.OnError
	if report == nil {
		return
	}
	defer func() { _ = recover() }()
	report(ctx, c.describe(), err)
}

// maxLoggedError is the maximum length of an error text in the log, in bytes.
const maxLoggedError = 500

// logError logs the error text of a tool if Options.LogErrors is set.
func logError(ctx context.Context, c *call, code lathe.Code, why string) {
	opts := &c.w.r.opts
	if opts.Log == nil || !opts.LogErrors {
		return
	}
	if c.w.secrets.store != nil {
		why = string(c.w.secrets.hideText(c, []byte(why)))
	}
	why = text.Cut(secret.Scrub(strings.ToValidUTF8(why, "\uFFFD")), maxLoggedError)
	opts.Log.LogAttrs(ctx, slog.LevelWarn, "tool error", slog.String("run_id", c.w.info.RunID), slog.String("tool_name", c.tool),
		slog.String("tool_call_id", c.ID), slog.String("code", string(code)), slog.String("error", why))
}

func logPanic(ctx context.Context, c *call, err error) {
	log := c.w.r.opts.Log
	if p := (*PanicError)(nil); log != nil && errors.As(err, &p) {
		log.LogAttrs(ctx, slog.LevelWarn, "tool panicked",
			slog.String("tool_name", c.tool), slog.String("tool_call_id", c.ID), slog.String("stack", p.Stack))
	}
}
