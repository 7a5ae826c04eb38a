package guest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/guest"
	. "github.com/lathe-run/lathe/internal/wasmrt/wasmtest"
)

// echo is a tool that answers its arguments; it fails with 99 when what it was given is not aligned, is
// not within the arena, or has no NUL behind the arguments.
func echo(g *spear, at, from, to int) {
	bad := func(cond string) string { return cond + If(Const(99), Return) }
	g.place(at, 0,
		bad(Get(argsPtr)+Const(7)+"\x71"), bad(Get(outPtr)+Const(7)+"\x71"), bad(Get(outLenPtr)+Const(7)+"\x71"),
		bad(Get(argsPtr)+Get(argsLen)+Add+Load8(0)),
		bad(Get(outLenPtr)+Const(int32(from))+LtU), bad(Const(int32(to))+Get(outPtr)+Get(outLenPtr)+Load(0)+Add+LtU),
		Get(outLenPtr), Load(0), Get(argsLen), LtU, If(Get(outLenPtr), Get(argsLen), Store(0), Const(-28), Return),
		Get(outPtr), Get(argsPtr), Get(argsLen), MemoryCopy, Get(outLenPtr), Get(argsLen), Store(0), Const(0))
}

// Every residue of an arena's address and length works, with the least room that does.
func TestGuestArenaResidues(t *testing.T) {
	t.Parallel()
	args := `{"a":7,"b":35,"n":0}` // 20 bytes
	for shift := range 8 {
		for rest := range 8 {
			t.Run(fmt.Sprintf("%d and %d", shift, rest), func(t *testing.T) {
				t.Parallel()
				ptr := arenaAt + shift
				waste := (8 - shift) % 8
				need := waste + 8 + 24 + len(args)
				for _, length := range []int{need + 64 + rest, need, need - 1} {
					g := newGuest()
					echo(g, 3, ptr, ptr+length)
					f := &flow{prompt: "go", flags: 2, functions: map[int]string{3: definition("f")}, params: []any{"tool_arena_ptr", ptr, "tool_arena_len", length}}
					w := newWorld(asks("f"))
					runGuest(t, f.build(g), w, nil, nil).ended(t, 0)
					c := w.calls()[0]
					if length >= need && c.Result != args {
						t.Errorf("%d bytes: %s", length, c.Result)
					}
					if length < need && c.ErrorType != lathe.CodeOutputTooLarge {
						t.Errorf("%d bytes: %s %s", length, c.ErrorType, c.Result)
					}
				}
			})
		}
	}
}

// Pointers are unsigned: an arena above 2 GiB is as good as one below, also when it is written with a sign.
func TestGuestArenaAbove2GiB(t *testing.T) {
	t.Parallel()
	const pages, at = 32_769, 1 << 31
	for _, ptr := range []int{at, at - 1<<32} {
		g := newGuest()
		grow := Const(pages-2) + MemoryGrow + Drop
		g.place(3, 0, Get(outPtr), Get(argsPtr), Get(argsLen), MemoryCopy, Get(outLenPtr), Get(argsLen), Store(0), Const(0))
		f := &flow{prompt: "go", flags: 2, functions: map[int]string{3: definition("f")}, params: []any{"tool_arena_ptr", ptr, "tool_arena_len", 4096}, before: grow}
		w := newWorld(asks("f"))
		runGuest(t, f.build(g), w, &guest.Limits{MemoryPages: pages}, nil).ended(t, 0)
		if c := w.calls()[0]; !strings.HasPrefix(c.Result, `{"a":7`) {
			t.Errorf("%d: %s %s", ptr, c.ErrorType, c.Result)
		}
	}
}

// Without an arena the guest's own allocator gives the memory, again and again without losing any.
func TestGuestAllocators(t *testing.T) {
	t.Parallel()
	big := func(g *spear, alloc func(g *spear) (calls int)) (module *flow, count int) {
		count = alloc(g)
		// A string of 9 000 zeros, asked for twice; then the same text from a smaller one.
		g.place(3, 0, Get(outLenPtr), Load(0), Const(9000), LtU, If(Get(outLenPtr), Const(9000), Store(0), Const(-28), Return),
			Get(outPtr), Const('0'), Const(9000), MemoryFill, Get(outPtr), Const('"'), Store8(0), Get(outPtr), Const('"'), Store8(8999),
			Get(outLenPtr), Const(9000), Store(0), Const(0))
		return &flow{prompt: "go", flags: 2, noArena: true, functions: map[int]string{3: definition("f")}}, count
	}
	const blockA, blockB = 20001, 40001 // not aligned
	for _, tc := range []struct {
		name  string
		alloc func(g *spear) int // a global that counts what is out
		out   int
	}{
		{"malloc and free", func(g *spear) int {
			n := g.Global(true, 0)
			g.Func("malloc", T{I32}, T{I32}, 0, GetGlobal(n), Const(1), Add, SetGlobal(n), Get(0), Const(5000), LtU, "\x04\x7f", Const(blockA), "\x05", Const(blockB), "\x0b")
			g.Func("free", T{I32}, nil, 0, GetGlobal(n), Const(1), Sub, SetGlobal(n))
			return n
		}, 0},
		{"malloc alone", func(g *spear) int {
			n := g.Global(true, 0)
			g.Func("malloc", T{I32}, T{I32}, 0, GetGlobal(n), Const(1), Add, SetGlobal(n), Const(blockA))
			return n
		}, 6},
		{"cabi_realloc", func(g *spear) int {
			n := g.Global(true, 0)
			g.Func("cabi_realloc", toolType, T{I32}, 0, GetGlobal(n), Const(1), Add, SetGlobal(n), Const(blockA))
			g.Func("malloc", T{I32}, T{I32}, 0, Unreachable)
			return n
		}, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			g := newGuest()
			f, count := big(g, tc.alloc)
			f.then = func(g *spear, _ *texts) string { // the exit code is the count
				return GetGlobal(count) + Call(g.index["proc_exit"])
			}
			w := newWorld(asks("f", "f", "f"))
			runGuest(t, f.build(g), w, nil, nil).ended(t, tc.out)
			for _, c := range w.calls() {
				if c.Status != "ok" || len(c.Result) != 8998 {
					t.Errorf("%s %d bytes", c.ErrorType, len(c.Result))
				}
			}
		})
	}
	for _, tc := range []struct{ name, code string }{
		{"gives nothing", Const(0)}, {"gives what is not memory", Const(-64)}, {"traps", Unreachable},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			g := newGuest()
			g.Func("malloc", T{I32}, T{I32}, 0, tc.code)
			g.place(3, 0, Const(0))
			f := &flow{prompt: "go", flags: 2, noArena: true, functions: map[int]string{3: definition("f")}}
			w := newWorld(asks("f"))
			runGuest(t, f.build(g), w, nil, nil).faulted(t)
			if got := w.ends(); len(got) != 1 || got[0] != lathe.ReasonGuestFault {
				t.Errorf("the run ends %q", got)
			}
		})
	}
}
