package tool

import (
	"context"
	"time"

	"github.com/lathe-run/lathe"
)

// Resumed is the state of a run before it was resumed, or of the run that it continues. How often a call was repeated, and how many
// names in a row were unknown, is counted anew.
type Resumed struct {
	// Planned is the number of calls that were planned.
	Planned int
	// Calls are those that were answered, in the order of their seq.
	Calls []lathe.CallTrace
	// Open are the ids of the calls of the history that Execute is still going to be given.
	Open []string
}

// resume puts the work where an earlier process left it.
func (w *Work) resume(before *Resumed) {
	if before == nil {
		return
	}
	w.next, w.resumed = before.Planned, len(before.Calls) > 0
	for _, id := range before.Open {
		w.ids.set(id, idAdopted)
	}
	for i := range before.Calls {
		w.ledger.mark(ledgerKey{tool: before.Calls[i].Tool}, before.Calls[i].OK)
	}
}

// lost ends a call that an earlier process began, where the tool must not run twice by itself and does
// not know what has become of it. The model is told that nobody knows.
func (w *Work) lost(ctx context.Context, c *call) (ended bool) {
	if !c.Begun || c.Answer != nil || c.entry != nil && (c.entry.spec.Effect == lathe.ReadOnly || c.entry.spec.Effect == lathe.Idempotent) {
		return false
	}
	v := w.verify(ctx, c)
	switch {
	case v.Fate == lathe.FateDone && v.Output != nil:
		c.verified, c.ran, c.out = true, true, v.Output
		return false
	case v.Fate == lathe.FateNotRun:
		return false
	}
	return c.end(lathe.CodeInterrupted)
}

// verify asks the tool what became of the call, for as long as a call of it may take.
func (w *Work) verify(ctx context.Context, c *call) lathe.Verified {
	if c.entry == nil {
		return lathe.Verified{}
	}
	tool, ok := c.entry.tool.(lathe.Verifier)
	if !ok {
		return lathe.Verified{}
	}
	timeout := w.limits.ToolTimeout
	if c.entry.spec.Timeout > 0 {
		timeout = c.entry.spec.Timeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	meta := (&callContext{parent: ctx, run: w.info, entry: c.entry, id: c.ID}).makeMeta()
	var v lathe.Verified
	err := error(&PanicError{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		v, err = tool.Verify(lathe.WithCallMeta(ctx, meta), meta)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		grace := time.NewTimer(abandonGrace)
		defer grace.Stop()
		select {
		case <-done:
		case <-grace.C:
			w.r.abandoned.Add(1)
			return lathe.Verified{}
		}
	}
	if err != nil {
		w.describe(c).Args = nil // they are not checked
		w.tell(ctx, c, err)
		return lathe.Verified{}
	}
	return v
}

// taken takes what the client says came of its call. Its size is bounded like that of any other.
func (w *Work) taken(c *call) bool {
	if c.Answer == nil {
		return false
	}
	if !c.client {
		return c.end(lathe.CodeInterrupted) // the run has no such tool of a client any more
	}
	c.out = c.Answer
	return true
}
