//go:build !race

package wasmtool_test

import (
	"testing"

	. "github.com/lathe-run/lathe/internal/wasmrt/wasmtest"
)

// An arena above 2 GiB is an arena. With the race detector, memory of that size stops the process for a minute, and calls of other
// tests run into their timeouts.
func TestT32ArenaAboveTwoGigabytes(t *testing.T) {
	t.Parallel()
	m := New()
	m.Memory(33_000, 33_000)
	m.Func("tool", T{I32, I32, I32, I32}, T{I32}, 0, reply(16, 4))
	m.Data(16, "true")
	m.Func("tool_arena_ptr", nil, T{I32}, 0, Const(-0x7fff0000))
	m.Func("tool_arena_len", nil, T{I32}, 0, Const(4096))
	r := runner(t, open(t, folder(t, m.Bytes(), manifest+"limits: {memory_pages: 33000, timeout: 10m}")).List())
	for range 2 { // the second call finds nothing of the first
		if got, reason, _ := run(t, r, "it", "{}"); got.Content != "true" || reason != "" {
			t.Errorf("%q %s, run ends %q", got.Code, got.Content, reason)
		}
	}
}
