package server

import (
	"fmt"
	"math"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/observe"
)

// Requests of one key could fill the memory: a body of 16 MiB, decompressed, comes from some kilobytes, and waits for as long as its
// model does. inflightBytes bounds the bytes of what clients have sent and that is not answered yet, of each key and in all:
//
//   - a body or a message of a WebSocket, with the memory that was allocated for it, while it arrives and until its request ends,
//   - the conversation that the model receives, at least the size of the body: what is decoded from the body, and what the server
//     puts into it (stored responses, items by reference, hidden turns); until the request ends or, for a run that continues
//     without its client, until this process does not execute the run any more,
//   - the conversation that a WebSocket keeps for the next message.
//
// The memory is reserved before it is allocated. Runs that wait are in the store, which has bounds of its own.
type inflightBytes struct {
	most    int64
	metrics *observe.Metrics // nil: nothing is counted

	mu    sync.Mutex
	total int64
	of    map[string]int64 // by the name of the key; only those above 0
}

// defaultInflight is a quarter of the limit in GOMEMLIMIT, or of 4 GiB if there is none.
func defaultInflight() int64 {
	limit := debug.SetMemoryLimit(-1)
	if limit == math.MaxInt64 {
		limit = 4 << 30
	}
	return limit / 4
}

// A reservation is the part of inflightBytes of one request, message, connection or run. One goroutine at a time uses it. A nil reservation
// has none.
type reservation struct {
	all   *inflightBytes
	key   string
	most  int64 // of the key
	bytes int64
	// beside are bytes that other reservations of the same key have for at least as long as this one.
	beside int64
	// conversation is the part of bytes that is reserved for the conversation.
	conversation int64
}

// begin returns an empty reservation for a caller. With keys, one of them has half of the bytes at most.
func (b *inflightBytes) begin(c *caller) reservation {
	h := reservation{all: b, key: c.key.Name, most: b.most}
	if c.setup.needsKey() {
		h.most = max(1, b.most/2)
	}
	return h
}

// grow reserves n further bytes: all of them or, with a problem, none.
func (h *reservation) grow(n int64) *problem {
	h.all.mu.Lock()
	defer h.all.mu.Unlock()
	return h.growLocked(n)
}

// converse reserves what is missing to n bytes for the conversation. Without a reservation nothing is counted.
func (h *reservation) converse(n int64) *problem {
	if h == nil {
		return nil
	}
	h.all.mu.Lock()
	defer h.all.mu.Unlock()
	p := h.growLocked(n - h.conversation)
	if p == nil {
		h.conversation = max(h.conversation, n)
	}
	return p
}

// load reserves the bytes of messages that are read from the store for the conversation, in addition to what is reserved.
func (h *reservation) load(messages []lathe.Message) *problem {
	if h == nil {
		return nil
	}
	return h.converse(h.conversation + sizeOf(messages))
}

// sizeOf returns the bytes that messages take in memory.
func sizeOf(messages []lathe.Message) (n int64) {
	for i := range messages {
		n += int64(messages[i].Size())
	}
	return n
}

// growLocked is grow. h.all.mu is held.
func (h *reservation) growLocked(n int64) *problem {
	b := h.all
	switch {
	case n <= 0:
		return nil
	case h.beside+h.bytes+n > h.most: // it never fits
		return &problem{Status: http.StatusRequestEntityTooLarge, Code: "request_too_large",
			Message: fmt.Sprintf("The request, with what its connection holds, takes more memory than all requests of its key together may, which is %d bytes (serve.max_inflight_bytes). Send a shorter conversation, or raise the limit.", h.most)}
	case b.total+n > b.most:
		return &problem{Status: http.StatusServiceUnavailable, Code: "overloaded", RetryAfter: time.Second,
			Message: fmt.Sprintf("The requests in progress take %d bytes, and the limit is %d (serve.max_inflight_bytes). Send this one again when others have ended, or raise the limit.", b.total, b.most)}
	case b.of[h.key]+n > h.most:
		return &problem{Status: http.StatusTooManyRequests, Code: "rate_limit_exceeded", RetryAfter: time.Second,
			Message: fmt.Sprintf("The requests of this key in progress take %d bytes, and its share of serve.max_inflight_bytes is %d. Send this one again when others have ended, or raise the limit.", b.of[h.key], h.most)}
	}
	b.add(h, n)
	return nil
}

// size returns the bytes of the reservation. Any goroutine may call it.
func (h *reservation) size() int64 {
	h.all.mu.Lock()
	defer h.all.mu.Unlock()
	return h.bytes
}

// reserve reserves what is missing to n bytes. Its error is a *problem.
func (h *reservation) reserve(n int64) error {
	if p := h.grow(n - h.bytes); p != nil {
		return p
	}
	return nil
}

// add changes the bytes of a reservation. b.mu is held.
func (b *inflightBytes) add(h *reservation, n int64) {
	h.bytes += n
	b.total += n
	if b.of[h.key] += n; b.of[h.key] == 0 {
		delete(b.of, h.key)
	}
	if b.metrics != nil {
		b.metrics.AddInflightBytes(n)
	}
}

// splitConversation moves the bytes of the conversation to a new reservation. A nil reservation has none to move.
func (h *reservation) splitConversation() *reservation {
	if h == nil {
		return nil
	}
	return h.split(h.conversation)
}

// split moves n bytes, or all if there are fewer, to a new reservation.
func (h *reservation) split(n int64) *reservation {
	h.all.mu.Lock()
	defer h.all.mu.Unlock()
	out := *h
	out.bytes = max(0, min(n, h.bytes))
	h.bytes -= out.bytes
	return &out
}

// settle gives back what was reserved beyond the memory of a text, for reading it.
func (h *reservation) settle(text []byte) { h.split(h.bytes - int64(cap(text))).release() }

// release gives the bytes back. It may be called more than once.
func (h *reservation) release() {
	if h == nil {
		return
	}
	h.all.mu.Lock()
	defer h.all.mu.Unlock()
	h.all.add(h, -h.bytes)
}
