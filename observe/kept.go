package observe

import (
	"sync"

	"github.com/lathe-run/lathe/event"
)

// Limits of what a bus retains of one model call. If the model call exceeds one, the bus retains none of its deltas.
const (
	maxKept       = 1 << 20 // bytes of text
	maxKeptDeltas = 500
)

// kept contains the deltas that a bus retains of the current model call of a run. Consecutive deltas of one kind are combined into one.
type kept struct {
	mu         sync.Mutex
	deltas     []event.Event
	text       []byte // the text of the last element of deltas, until flush writes it into that element
	n          int64  // the number N of the last delta that was published
	size       int    // bytes of text in all deltas
	incomplete bool   // a delta was not retained, so none is returned
}

// note retains the event if it is a delta of the model call. The beginning and the end of a model call discard what is retained.
func (k *kept) note(e *event.Event) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch d := e.Data.(type) {
	case *event.ModelCallStarted, *event.ModelCallFinished:
		k.deltas, k.text, k.n, k.size, k.incomplete = nil, nil, 0, 0, false
	case *event.TextDelta:
		if d.Delta != nil { // the content of the delta is not only text, so it cannot be combined
			k.incomplete = true
		}
		k.add(e, d.Text)
	case *event.CommentaryDelta:
		k.add(e, d.Text)
	case *event.ReasoningDelta:
		k.add(e, d.Text)
	case *event.ToolCallDelta:
		k.add(e, d.Text)
	default: // subscribers read other events from the store, or the event does not belong to a model call
	}
}

// add retains a delta with this text, or discards all if the delta does not follow the last one or a limit is exceeded.
func (k *kept) add(e *event.Event, text string) {
	k.size += len(text)
	if k.incomplete || e.N != k.n+1 || k.size > maxKept {
		k.discard()
		return
	}
	k.n = e.N
	if n := len(k.deltas); n > 0 && continues(k.deltas[n-1].Data, e.Data) {
		k.text = append(k.text, text...)
		return
	}
	if len(k.deltas) == maxKeptDeltas {
		k.discard()
		return
	}
	k.flush()
	k.deltas = append(k.deltas, *e)
	k.text = append(k.text[:0], text...)
}

// discard removes the retained deltas of the model call, and prevents further ones from being retained.
func (k *kept) discard() { k.incomplete, k.deltas, k.text = true, nil, nil }

// continues reports whether the text of b belongs to that of a.
func continues(a, b event.Data) bool {
	x, isCall := a.(*event.ToolCallDelta)
	y, _ := b.(*event.ToolCallDelta)
	return a.EventType() == b.EventType() && (!isCall || x.Index == y.Index)
}

// flush writes the text into the last delta. It replaces the data of the delta, because results of read share them.
func (k *kept) flush() {
	if len(k.deltas) == 0 {
		return
	}
	last, s, n := &k.deltas[len(k.deltas)-1], string(k.text), len(k.text)
	switch d := last.Data.(type) {
	case *event.TextDelta:
		last.Data = &event.TextDelta{Bytes: n, Text: s}
	case *event.CommentaryDelta:
		last.Data = &event.CommentaryDelta{Bytes: n, Text: s}
	case *event.ReasoningDelta:
		last.Data = &event.ReasoningDelta{Bytes: n, Text: s}
	case *event.ToolCallDelta:
		last.Data = &event.ToolCallDelta{Index: d.Index, ToolCallID: d.ToolCallID, Tool: d.Tool, Bytes: n, Text: s}
	default: // only deltas are added
	}
}

// read returns the retained deltas. Since each may combine several published ones, they are renumbered from 1. fewer is the number
// of published deltas minus that of the returned ones: a subscriber subtracts it from N of each later delta.
func (k *kept) read() (deltas []event.Event, fewer int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.incomplete {
		return nil, 0
	}
	k.flush()
	for i := range k.deltas {
		e := k.deltas[i]
		e.N = int64(i) + 1
		deltas = append(deltas, e)
	}
	return deltas, k.n - int64(len(deltas))
}

// Keep makes the bus retain the deltas of the current model call of a run, so that later subscriptions to the run begin with them. It
// retains at most 1 MiB of text in 500 deltas; consecutive deltas of one kind are combined. If a model call exceeds this, or its first
// deltas were published before Keep, the bus retains none of its deltas. The caller must call drop when the run has ended or another
// process executes it; drop may be called more than once. A second Keep for the same run discards what is retained; the first call of
// either drop then ends both.
func (b *Bus) Keep(runID string) (drop func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept[runID] = &kept{}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.kept, runID)
	}
}
