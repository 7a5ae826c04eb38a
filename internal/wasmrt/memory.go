package wasmrt

import (
	"fmt"
	"runtime"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// Memory is the linear memory of an instance. Pointers and lengths are unsigned; an access out of bounds returns an *[Error] of
// KindMemory. If the instance has no memory, its Memory has 0 bytes.
type Memory struct{ mem api.Memory }

// Size returns the current size in bytes.
func (m Memory) Size() uint32 {
	if m.mem == nil {
		return 0
	}
	return m.mem.Size()
}

// Read returns a view of n bytes at ptr, which is valid until the guest runs again.
func (m Memory) Read(ptr, n uint32) ([]byte, error) {
	if m.mem != nil {
		if b, ok := m.mem.Read(ptr, n); ok {
			return b, nil
		}
	}
	return nil, m.fault(ptr, uint64(n))
}

// Write copies b to the memory at ptr.
func (m Memory) Write(ptr uint32, b []byte) error {
	if m.mem == nil || uint64(len(b)) > 1<<32 || !m.mem.Write(ptr, b) {
		return m.fault(ptr, uint64(len(b)))
	}
	return nil
}

// ReadUint32 returns the little-endian number at ptr.
func (m Memory) ReadUint32(ptr uint32) (uint32, error) {
	if m.mem != nil {
		if v, ok := m.mem.ReadUint32Le(ptr); ok {
			return v, nil
		}
	}
	return 0, m.fault(ptr, 4)
}

// WriteUint32 writes v at ptr, little-endian.
func (m Memory) WriteUint32(ptr, v uint32) error {
	if m.mem == nil || !m.mem.WriteUint32Le(ptr, v) {
		return m.fault(ptr, 4)
	}
	return nil
}

func (m Memory) fault(ptr uint32, n uint64) error {
	return &Error{Kind: KindMemory, Err: fmt.Errorf("%d bytes at %#x are outside of its %d bytes", n, ptr, m.Size())}
}

// heap allocates the memory of one instance and enforces its limit.
type heap struct {
	env     *env
	account *account
	counted int64 // bytes counted in the account
	buf     []byte
}

var _ experimental.LinearMemory = (*heap)(nil)

// Allocate implements the engine's allocator.
func (h *heap) Allocate(capacity, _ uint64) experimental.LinearMemory {
	// The initial size has been counted by Module.Instantiate.
	h.buf = make([]byte, 0, min(capacity, h.limit()))
	return h
}

func (h *heap) limit() uint64 { return uint64(h.env.limits.MemoryPages) << 16 }

// Reallocate returns nil if size exceeds the limit: memory.grow then returns -1.
func (h *heap) Reallocate(size uint64) []byte {
	if size > h.limit() {
		h.env.refused = "memory_pages"
		return nil
	}
	if size > uint64(cap(h.buf)) {
		room := min(max(size, uint64(cap(h.buf))*3/2), h.limit())
		if more := int64(room) - h.counted; more > 0 {
			if !h.account.take(more) {
				h.env.refused = totalMemory
				return nil
			}
			h.counted += more
		}
		grown := make([]byte, size, room)
		h.move(grown)
		h.buf = grown
	}
	h.buf = h.buf[:size]
	return h.buf
}

// move copies the memory to to. Pages that are touched for the first time take up to 8 ms for each megabyte, and Go cannot preempt a
// copy. So move copies in chunks and yields to other goroutines after each.
func (h *heap) move(to []byte) {
	for from := h.buf; len(from) > 0; {
		n := copy(to, from[:min(len(from), moveBytes)])
		to, from = to[n:], from[n:]
		runtime.Gosched()
		h.env.check(h.env.ctx)
	}
}

// moveBytes is the size of a chunk.
const moveBytes = 256 << 10

// Free releases the memory to the garbage collector and subtracts it from the account.
func (h *heap) Free() {
	h.account.give(h.counted)
	h.buf, h.counted = nil, 0
}
