package memory

import (
	"math"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/observe"
)

// A Pool bounds the bytes of requests that are not yet answered. Its methods may be called from several goroutines at once.
type Pool struct {
	most    int64
	metrics *observe.Metrics // nil: nothing is counted

	mu    sync.Mutex
	total int64
	of    map[string]int64 // bytes by the name of the key; only entries above 0
}

// Default returns the default size of a pool in bytes: a quarter of the limit in GOMEMLIMIT, or of 4 GiB if that is not set.
func Default() int64 {
	limit := debug.SetMemoryLimit(-1)
	if limit == math.MaxInt64 {
		limit = 4 << 30
	}
	return limit / 4
}

// A Reservation is the bytes that one request, message, connection or run has reserved in a Pool. It is used by one goroutine at a time.
// Only Converse, Load, SplitConversation and Release may be called with a nil Reservation: they do nothing.
type Reservation struct {
	all   *Pool
	key   string
	most  int64 // limit of the key in bytes
	bytes int64
	// Beside is the number of bytes that other reservations of the same key have for at least as long as this one.
	Beside int64
	// conversation is the part of bytes that is reserved for the conversation.
	conversation int64
}

// New returns a pool of most bytes. metrics reports the bytes in use; it may be nil.
func New(most int64, metrics *observe.Metrics) *Pool {
	return &Pool{most: most, metrics: metrics, of: map[string]int64{}}
}

// Begin returns an empty reservation of a key. If several keys share the pool, each of them may use at most half of the bytes.
func (b *Pool) Begin(key string, shared bool) Reservation {
	h := Reservation{all: b, key: key, most: b.most}
	if shared {
		h.most = max(1, b.most/2)
	}
	return h
}

// Grow reserves n further bytes. If a limit does not allow all of them, it returns a problem and reserves none.
func (h *Reservation) Grow(n int64) *problem.Problem {
	h.all.mu.Lock()
	defer h.all.mu.Unlock()
	return h.growLocked(n)
}

// Converse raises the bytes reserved for the conversation to n. If a limit does not allow that, it returns a problem and reserves none.
func (h *Reservation) Converse(n int64) *problem.Problem {
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

// Load reserves, for the conversation, further bytes for messages that were read from the store.
func (h *Reservation) Load(messages []lathe.Message) *problem.Problem {
	if h == nil {
		return nil
	}
	return h.Converse(h.conversation + SizeOf(messages))
}

// SizeOf returns the approximate size of messages in memory, in bytes.
func SizeOf(messages []lathe.Message) (n int64) {
	for _, m := range messages {
		n += int64(m.Size())
	}
	return n
}

// growLocked does what Grow does. h.all.mu is held.
func (h *Reservation) growLocked(n int64) *problem.Problem {
	b := h.all
	switch {
	case n <= 0:
		return nil
	case h.Beside+h.bytes+n > h.most: // the request can never be admitted
		return problem.New(http.StatusRequestEntityTooLarge, "request_too_large",
			"The request, with what its connection holds, takes more memory than all requests of its key together may, which is %d bytes (serve.max_inflight_bytes). Send a shorter conversation, or raise the limit.", h.most)
	case b.total+n > b.most:
		return problem.Overloaded(time.Second,
			"The requests in progress take %d bytes, and the limit is %d (serve.max_inflight_bytes). Send this one again when others have ended, or raise the limit.", b.total, b.most)
	case b.of[h.key]+n > h.most:
		return problem.RateLimited(time.Second,
			"The requests of this key in progress take %d bytes, and its share of serve.max_inflight_bytes is %d. Send this one again when others have ended, or raise the limit.", b.of[h.key], h.most)
	}
	b.add(h, n)
	return nil
}

// Size returns the bytes of the reservation. It may be called from any goroutine.
func (h *Reservation) Size() int64 {
	h.all.mu.Lock()
	defer h.all.mu.Unlock()
	return h.bytes
}

// Reserve raises the reservation to n bytes. Its error is a *problem.Problem.
func (h *Reservation) Reserve(n int64) error {
	if p := h.Grow(n - h.bytes); p != nil {
		return p
	}
	return nil
}

// add changes the bytes of a reservation by n, which may be negative. b.mu is held.
func (b *Pool) add(h *Reservation, n int64) {
	h.bytes += n
	b.total += n
	b.of[h.key] += n
	if b.of[h.key] == 0 {
		delete(b.of, h.key)
	}
	if b.metrics != nil {
		b.metrics.AddInflightBytes(n)
	}
}

// SplitConversation moves the bytes of the conversation to a new reservation, which it returns.
func (h *Reservation) SplitConversation() *Reservation {
	if h == nil {
		return nil
	}
	return h.split(h.conversation)
}

// split moves n bytes, or all if there are fewer, to a new reservation, which is a copy of h in all else.
func (h *Reservation) split(n int64) *Reservation {
	h.all.mu.Lock()
	defer h.all.mu.Unlock()
	out := *h
	out.bytes = max(0, min(n, h.bytes))
	h.bytes -= out.bytes
	return &out
}

// Settle releases the bytes that were reserved to read text beyond the memory that text occupies.
func (h *Reservation) Settle(text []byte) { h.split(h.bytes - int64(cap(text))).Release() }

// Release releases the bytes. It may be called more than once.
func (h *Reservation) Release() {
	if h == nil {
		return
	}
	h.all.mu.Lock()
	defer h.all.mu.Unlock()
	h.all.add(h, -h.bytes)
}
