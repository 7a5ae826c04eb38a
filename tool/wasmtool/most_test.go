package wasmtool_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	. "github.com/lathe-run/lathe/internal/wasmrt/wasmtest"
	"github.com/lathe-run/lathe/tool/wasmtool"
)

// T28: a module gets what the operator allows, whatever stands in the manifest beside it.
func TestManifestsAskForNoMoreThanIsAllowed(t *testing.T) {
	t.Parallel()
	most := &wasmtool.Most{Grants: []string{"clock", "read"}, Timeout: time.Second, MemoryPages: 4, ModuleBytes: 16 << 20}
	for _, tt := range []struct{ more, want string }{
		{"", ""},
		{"grants: {clock: true, files: [{path: ., guest: /}]}\nlimits: {timeout: 1s, memory_pages: 4}", ""},
		{"grants: {random: true}", "asks for the grant random"},
		{"grants: {files: [{path: ., guest: /, write: true}]}", "asks for the grant write"},
		{"limits: {timeout: 2s}", "limits.timeout: 2s is more than the 1s"},
		{"limits: {memory_pages: 5}", "limits.memory_pages: 5 is more than the 4"},
		{"limits: {module_bytes: 20000000}", "limits.module_bytes: 20000000 is more"},
	} {
		f, err := wasmtool.OpenFolder(folder(t, toolModule(0, Const(0)).Bytes(), manifest+tt.more), &wasmtool.Options{Most: most})
		if err == nil {
			err = f.Close()
		}
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.more, err, tt.want)
		}
	}
}

// A manifest that sets no memory gets no more than the operator allows.
func TestUnsetMemoryIsLimited(t *testing.T) {
	t.Parallel()
	// traps if it gets four more pages
	grow := toolModule(0, Const(4), MemoryGrow, Const(-1), Eq, If(Get(outLenPtr), Const(0), Store(0), Const(0), Return), Unreachable)
	for pages, want := range map[int]lathe.Code{0: lathe.CodeExecutionFailed, 4: ""} {
		f, err := wasmtool.OpenFolder(folder(t, grow.Bytes(), manifest), &wasmtool.Options{Most: &wasmtool.Most{MemoryPages: pages}})
		if err != nil {
			t.Fatal(err)
		}
		if got, _, _ := run(t, runner(t, f.List()), "it", "{}"); got.Code != want {
			t.Errorf("at most %d pages: %+v", pages, got)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
