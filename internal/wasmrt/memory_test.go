//go:build !race

package wasmrt_test

import (
	"errors"
	"testing"

	"github.com/lathe-run/lathe/internal/wasmrt"
	. "github.com/lathe-run/lathe/internal/wasmrt/wasmtest"
)

// Pointers are unsigned, and an access out of bounds is reported.
func TestT32Memory(t *testing.T) {
	t.Parallel()
	m := New()
	m.Memory(37_000, 37_000) // 2.26 GiB, of which little is touched
	i := start(t, compile(t, runtime(t, nil), m, &wasmrt.Limits{MemoryPages: 37_000}), nil)
	mem := i.Memory()
	for _, tt := range []struct {
		ptr, n uint32
		ok     bool
	}{{0, 0, true}, {0x90000000, 16, true}, {mem.Size() - 4, 4, true}, {mem.Size(), 0, true}, {mem.Size() - 4, 5, false},
		{mem.Size() + 1, 0, false}, {0xffffffff, 1, false}, {16, 0xffffffff, false}, {0xffffffff, 0xffffffff, false}} {
		_, err := mem.Read(tt.ptr, tt.n)
		if (err == nil) != tt.ok || err != nil && wasmrt.KindOf(err) != wasmrt.KindMemory {
			t.Errorf("Read(%#x, %#x): %v", tt.ptr, tt.n, err)
		}
	}
	if err := errors.Join(mem.WriteUint32(0x90000000, 5), mem.Write(0x90000004, []byte("ab"))); err != nil {
		t.Error(err)
	}
	if v, err := mem.ReadUint32(0x90000000); v != 5 || err != nil {
		t.Error(v, err)
	}
	for _, err := range []error{mem.WriteUint32(mem.Size()-3, 1), mem.Write(mem.Size()-1, []byte("ab")), func() error { _, err := mem.ReadUint32(mem.Size() - 3); return err }()} {
		want(t, err, wasmrt.KindMemory, "")
	}
	none := start(t, compile(t, runtime(t, nil), sum(), nil), nil).Memory()
	_, err := none.Read(0, 1)
	want(t, errors.Join(err), wasmrt.KindMemory, "")
	want(t, none.Write(0, []byte("a")), wasmrt.KindMemory, "")
}
