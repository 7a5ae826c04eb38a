package wasmrt_test

import (
	"errors"
	"testing"

	"github.com/lathe-run/lathe/internal/wasmrt"
	. "github.com/lathe-run/lathe/internal/wasmrt/wasmtest"
)

// The instances of a runtime share one bound on their memory, which closed instances give back and
// instances that wait in pools make room in.
func TestInstancesShareABoundOnMemory(t *testing.T) {
	t.Parallel()
	const page = 64 << 10
	rt := runtime(t, &wasmrt.Options{TotalMemory: 4 * page})
	m := New()
	m.Memory(1, 8)
	m.Func("grow", T{I32}, T{I32}, 0, Get(0), MemoryGrow)
	mod := compile(t, rt, m, nil)
	grow := func(i *wasmrt.Instance, pages uint64) int32 {
		t.Helper()
		res, err := i.Invoke(t.Context(), "grow", pages)
		if err != nil {
			t.Fatal(err)
		}
		return int32(res[0])
	}
	full := func(err error) bool {
		var e *wasmrt.Error
		return errors.As(err, &e) && e.Kind == wasmrt.KindLimit && e.Limit == "max_total_memory"
	}
	first, err := mod.Instantiate(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := grow(first, 2); got != 1 { // 3 of 4
		t.Errorf("growing within the bound: %d", got)
	}
	second, err := mod.Instantiate(t.Context(), nil) // 4 of 4
	if err != nil {
		t.Fatal(err)
	}
	if got := grow(second, 1); got != -1 {
		t.Errorf("growing beyond the bound: %d", got)
	}
	if _, err := mod.Instantiate(t.Context(), nil); !full(err) {
		t.Errorf("an instance beyond the bound: %v", err)
	}
	if err := errors.Join(first.Close(), second.Close()); err != nil {
		t.Error(err)
	}
	p := mod.NewPool(nil)
	defer p.Close()
	var all []*wasmrt.Instance
	for range 4 {
		i, err := p.Get(t.Context())
		if err != nil {
			t.Fatalf("closed instances keep their memory: %v", err)
		}
		all = append(all, i)
	}
	for _, i := range all {
		if err := p.Put(i); err != nil {
			t.Error(err)
		}
	}
	if p.Idle() == 0 {
		t.Fatal("no instance waits: the test shows nothing")
	}
	last, err := mod.Instantiate(t.Context(), nil)
	if err != nil {
		t.Fatalf("instances that wait are not closed for others: %v", err)
	}
	if err := last.Close(); err != nil {
		t.Error(err)
	}
}
