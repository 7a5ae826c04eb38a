package tool

import "github.com/lathe-run/lathe"

// Resumed is what a run that goes on has behind it. How often a call was repeated, and how many
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
	w.next = before.Planned
	for _, id := range before.Open {
		w.ids.set(id, idAdopted)
	}
	for i := range before.Calls {
		w.ledger.mark(ledgerKey{tool: before.Calls[i].Tool}, before.Calls[i].OK)
	}
}

// lost ends a call that an earlier process began, where the tool must not run twice by itself. What
// has become of it nobody knows, and the model is told that.
func (w *Work) lost(c *call) (ended bool) {
	if !c.Begun || c.Answer != nil || c.entry != nil && (c.entry.spec.Effect == lathe.ReadOnly || c.entry.spec.Effect == lathe.Idempotent) {
		return false
	}
	return c.end(lathe.CodeInterrupted)
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
