package store

import (
	"context"
	"sync"

	"github.com/lathe-run/lathe"
)

// maxHints bounds the hints that wait for one watcher. Those beyond are lost, as hints may be.
const maxHints = 1_024

// CallHints tells the watchers of a queue what may have changed. The zero value has no watchers.
type CallHints struct {
	mu       sync.Mutex
	watchers map[chan lathe.CallHint]struct{}
}

// Tell tells all who watch now. It does not wait for any of them.
func (h *CallHints) Tell(hint lathe.CallHint) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watchers {
		select {
		case w <- hint:
		default:
		}
	}
}

// Watch calls fn with each hint until ctx is done.
func (h *CallHints) Watch(ctx context.Context, fn func(lathe.CallHint)) {
	w := make(chan lathe.CallHint, maxHints)
	h.mu.Lock()
	if h.watchers == nil {
		h.watchers = map[chan lathe.CallHint]struct{}{}
	}
	h.watchers[w] = struct{}{}
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.watchers, w)
	}()
	for {
		select {
		case hint := <-w:
			fn(hint)
		case <-ctx.Done():
			return
		}
	}
}
