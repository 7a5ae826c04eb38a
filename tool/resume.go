package tool

import (
	"context"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// Resumed is the state from which a resumed run continues. A new run that continues another run starts from the state of that run.
type Resumed struct {
	// Planned is the number of calls that the run has made so far, and the sequence number (from 0) of its next call.
	Planned int
	// Calls are the calls of the run that already have a result, in call order.
	Calls []event.CallTrace
	// Open must list the ids of the calls in the history that have no result yet, so that these calls keep their ids. The caller must pass
	// the calls to [Work.Execute].
	Open []string
	// Answers are the earlier calls with their results for the model, in call order. They count towards the limits on repeated calls and on
	// consecutive calls of unknown tools.
	Answers []Answered
	// Loaded are the names of the tools that the run has loaded by tool search, in load order.
	Loaded []string
	// Started is the number of the first messages in RunOptions.History with which the run was started, without those that it added; 0:
	// all. A run that defers tools (see [Search]) always sends the definitions of tools with calls in these messages.
	Started int
}

// Answered is a call that got its result before the run was resumed.
type Answered struct {
	lathe.ToolCall
	Tool    string     // the tool name in events
	Code    lathe.Code // "": it succeeded
	Content string     // its result, as the model received it
}

// resume sets the state of an earlier process.
func (w *Work) resume(before *Resumed) {
	if before == nil {
		return
	}
	w.next, w.resumed = before.Planned, len(before.Calls) > 0
	for _, id := range before.Open {
		w.ids.set(id, idAdopted)
	}
	for i := range before.Calls {
		w.failures.mark(failureKey{tool: before.Calls[i].Tool}, before.Calls[i].OK)
	}
	for i := range before.Answers {
		w.recount(&before.Answers[i])
	}
}

// recount counts a call of an earlier process in the same way as judgeLoop did there.
func (w *Work) recount(a *Answered) {
	refusedByTurn := a.Code == lathe.CodeTooManyCalls || a.Code == lathe.CodeIncompleteCall && !a.Incomplete
	if refusedByTurn || a.ParseError != "" {
		return
	}
	if a.Code == lathe.CodeUnknownTool && w.tools.lookup(a.Name).entry == nil {
		w.unknown++
		return
	}
	w.unknown = 0
	w.repeat.add(&call{Call: Call{ToolCall: a.ToolCall}, callee: callee{tool: a.Tool}, content: a.Content})
}

// recoverOutput uses the output of a call that an earlier process started, if the tool must not be called twice and its [OutcomeChecker]
// returns the output. If the outcome is unknown, it ends the call with `interrupted`.
func recoverOutput(ctx context.Context, c *call) ending {
	if !c.Begun || c.Answer != nil {
		return proceed
	}
	if c.entry != nil && mayRepeat(c.entry.spec.Effect) {
		return proceed
	}
	v := checkOutcome(ctx, c)
	switch {
	case v.Outcome == RecoveryDone && v.Output != nil:
		c.source, c.ran, c.out = fromRecovery, true, v.Output
		return proceed
	case v.Outcome == RecoveryNotRun:
		return proceed
	}
	return fail(lathe.CodeInterrupted)
}

// checkOutcome calls CheckOutcome of the tool, with the timeout of the tool.
func checkOutcome(ctx context.Context, c *call) Recovery {
	w := c.w
	if c.entry == nil {
		return Recovery{}
	}
	tool, ok := c.entry.tool.(OutcomeChecker)
	if !ok {
		return Recovery{}
	}
	timeout := w.limits.ToolTimeout
	if c.entry.spec.Timeout > 0 {
		timeout = c.entry.spec.Timeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	meta := c.meta()
	var v Recovery
	err := error(&PanicError{}) // remains if CheckOutcome does not return
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		v, err = tool.CheckOutcome(lathe.WithCallMeta(ctx, meta), meta)
	}()
	if !waitWithGrace(ctx, done) {
		w.r.abandoned.Add(1)
		return Recovery{}
	}
	if err != nil {
		reportError(ctx, c, lathe.CodeInterrupted, err)
		return Recovery{}
	}
	return v
}

// waitWithGrace waits for done, at most for abandonGrace after ctx is done. It returns false if that time is over.
func waitWithGrace(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-ctx.Done():
	}
	grace := time.NewTimer(abandonGrace)
	defer grace.Stop()
	select {
	case <-done:
		return true
	case <-grace.C:
		return false
	}
}

// readClientOutput uses the output that the client returned for its call.
func readClientOutput(c *call) ending {
	if !c.client {
		return fail(lathe.CodeInterrupted) // the run no longer has this client tool
	}
	c.source, c.out = fromClient, c.Answer
	return proceed
}
