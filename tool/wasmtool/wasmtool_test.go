package wasmtool_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/leaktest"
	. "github.com/lathe-run/lathe/internal/wasmrt/wasmtest"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/wasmtool"
)

var update = flag.Bool("update", false, "write testdata/sum.wasm")

func TestMain(m *testing.M) { leaktest.Main(m) }

const manifest = `name: it
description: A guest.
allowlist: ["*"]
effect: read_only
schema: {type: object}
`

// folder holds one module, it.wasm, and its manifest.
func folder(t testing.TB, wasm []byte, text string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "it.wasm", wasm)
	write(t, dir, "it.yaml", []byte(text))
	return dir
}

func write(t testing.TB, dir, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, dir string) *wasmtool.Folder {
	t.Helper()
	f, err := wasmtool.OpenFolder(dir, &wasmtool.Options{CompileTimeout: 10 * time.Minute, TotalMemory: 8 << 30})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := f.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return f
}

func runner(t testing.TB, tools []lathe.Tool) *tool.Runner {
	t.Helper()
	set, err := tool.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.AllowAll()})
	if err != nil {
		t.Fatal(err)
	}
	return runner
}

// run calls the only tool. It returns the result that the model gets, the reason for which the run ends, and the return code.
func run(t testing.TB, r *tool.Runner, name, args string) (lathe.ToolResult, lathe.Reason, int) {
	t.Helper()
	rc := 0
	w := r.Begin(&lathe.RunInfo{}, nil)
	out := w.Execute(t.Context(), 1, []tool.Call{{ToolCall: lathe.ToolCall{ID: "c", Name: name, Arguments: args}}}, func(d event.Data) {
		if e, ok := d.(*event.ToolCallExecuted); ok && e.RC != nil {
			rc = *e.RC
		}
	})
	return out.Messages[0].Parts[0].(lathe.ToolResult), out.Reason, rc
}

func TestSum(t *testing.T) {
	t.Parallel()
	wasm := sumModule().Bytes()
	if *update {
		write(t, "testdata", "sum.wasm", wasm)
	}
	kept, err := os.ReadFile("testdata/sum.wasm")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(kept, wasm) {
		t.Error("testdata/sum.wasm is not what its source makes: run with -update")
	}
	r := runner(t, open(t, "testdata").List())
	for args, want := range map[string]string{
		`{"a":7,"b":35}`:                  `{"sum":42}`,
		`{"a":-7,"b":5}`:                  `{"sum":-2}`,
		`{"a":0,"b":0}`:                   `{"sum":0}`,
		`{"a":2147483000,"b":647}`:        `{"sum":2147483647}`,
		` { "a" : 1000000 , "b" : -42 } `: `{"sum":999958}`,
	} {
		if got, _, _ := run(t, r, "sum", args); got.Content != want || got.IsError {
			t.Errorf("%s: %q %s, want %s", args, got.Content, got.Code, want)
		}
	}
	if got, _, _ := run(t, r, "sum", `{"a":"x"}`); got.Code != lathe.CodeInvalidArguments {
		t.Errorf("bad arguments: %q", got.Code)
	}
}

// For each guest: its return code, the result that the model gets, and how the run ends.
func TestT30T32Guests(t *testing.T) {
	t.Parallel()
	data := func(m *Module, s string) *Module { m.Data(16, s); return m }
	// big answers n times the letter x as a string of JSON, when it has room.
	big := func(n, noSpace int32) *Module {
		return toolModule(0,
			Get(outLenPtr), Load(0), Const(n), LtU, If(Get(outLenPtr), Const(n), Store(0), Const(noSpace), Return),
			Get(outPtr), Const('x'), Const(n), MemoryFill,
			Get(outPtr), Const('"'), Store8(0), Get(outPtr), Const(n-1), Add, Const('"'), Store8(0),
			Get(outLenPtr), Const(n), Store(0), Const(0))
	}
	arena := func(m *Module, at, n int32) *Module {
		m.Func("tool_arena_ptr", nil, T{I32}, 0, Const(at))
		m.Func("tool_arena_len", nil, T{I32}, 0, Const(n))
		return m
	}
	bare := func(code ...string) *Module {
		m := New()
		m.Memory(1, -1)
		m.Func("tool", T{I32, I32, I32, I32}, T{I32}, 0, code...)
		return m
	}
	echo := func(m *Module) *Module {
		m.Func("tool", T{I32, I32, I32, I32}, T{I32}, 0, Get(outPtr), Get(argsPtr), Get(argsLen), MemoryCopy, Get(outLenPtr), Get(argsLen), Store(0), Const(0))
		return m
	}
	withMemory := func() *Module { m := New(); m.Memory(1, 1); return m }
	realloc := echo(withMemory())
	realloc.Func("cabi_realloc", T{I32, I32, I32, I32}, T{I32}, 0, Const(1027)) // not aligned

	long := strings.Repeat("y", 30_000)
	for _, tt := range []struct {
		name   string
		m      *Module
		args   string // {} when empty
		more   string // of the manifest
		want   string // Content; "" any
		code   lathe.Code
		reason lathe.Reason
		rc     int
	}{
		{name: "text", m: data(toolModule(0, reply(16, 5)), "hello"), want: "hello"},
		{name: "nothing", m: toolModule(0, reply(16, 0)), want: "null"},
		{name: "rc -5", m: toolModule(0, Const(-5)), code: lathe.CodeExecutionFailed, rc: -5},
		{name: "rc 7", m: toolModule(0, Const(7)), code: lathe.CodeExecutionFailed, rc: 7},
		{name: "no space, then success", m: big(30_000, -28), want: strings.Repeat("x", 29_998)},
		{name: "no space beyond the limit", m: big(30_000, -28), more: "limits: {output_bytes: 20000}", code: lathe.CodeOutputTooLarge, rc: -28},
		{name: "no space by WASI's number, then success", m: big(30_000, -51), want: strings.Repeat("x", 29_998)},
		{name: "no space by WASI's number, beyond the limit", m: big(30_000, -51), more: "limits: {output_bytes: 20000}", code: lathe.CodeOutputTooLarge, rc: -28},
		{name: "no space by WASI's number, for what it has", m: toolModule(0, Get(outLenPtr), Const(1), Store(0), Const(-51)), code: lathe.CodeExecutionFailed, rc: -51},
		{name: "no space for what it has", m: toolModule(0, Get(outLenPtr), Const(1), Store(0), Const(-28)), code: lathe.CodeExecutionFailed, rc: -28},
		{name: "more space each time", m: toolModule(0, Get(outLenPtr), Get(outLenPtr), Load(0), Const(1), Add, Store(0), Const(-28)), code: lathe.CodeExecutionFailed, rc: -28},
		{name: "more than its room", m: toolModule(0, Get(outLenPtr), Const(5000), Store(0), Const(0)), code: lathe.CodeInvalidOutput},
		{name: "bad UTF-8", m: data(toolModule(0, reply(16, 3)), "\xff\xfe\xfd"), code: lathe.CodeInvalidOutput},
		{name: "output schema", m: data(toolModule(0, reply(16, 4)), "true"), more: "output_schema: {type: string}", code: lathe.CodeInvalidOutput},
		{name: "trap", m: toolModule(0, Unreachable), code: lathe.CodeExecutionFailed},
		{name: "endless loop", m: toolModule(0, Loop(Br(0)), Const(0)), more: "limits: {timeout: 30ms}", code: lathe.CodeTimeout},
		{name: "endless loop in the allocator", m: func() *Module {
			m := bare(Const(0))
			m.Func("malloc", T{I32}, T{I32}, 0, Loop(Br(0)), Const(0))
			return m
		}(), more: "limits: {timeout: 30ms}", code: lathe.CodeTimeout},
		{name: "memory bomb", m: toolModule(0, Loop(Const(1), MemoryGrow, Const(-1), Eq, If(Unreachable), Br(0)), Const(0)), more: "limits: {memory_pages: 9}",
			code: lathe.CodeExecutionFailed, reason: lathe.ReasonGuestFault},
		{name: "read out of bounds", m: toolModule(0, Const(-8), Load(0)), code: lathe.CodeExecutionFailed, reason: lathe.ReasonGuestFault},
		{name: "no memory from the allocator", m: func() *Module {
			m := bare(Const(0))
			m.Func("malloc", T{I32}, T{I32}, 0, Const(0))
			return m
		}(), code: lathe.CodeExecutionFailed, reason: lathe.ReasonGuestFault},
		{name: "an allocator that lies", m: func() *Module {
			m := bare(Const(0))
			m.Func("malloc", T{I32}, T{I32}, 0, Const(65530))
			return m
		}(), code: lathe.CodeExecutionFailed, reason: lathe.ReasonGuestFault},
		{name: "an arena outside of memory", m: arena(bare(Const(0)), 65000, 4096), code: lathe.CodeExecutionFailed, reason: lathe.ReasonGuestFault},
		{name: "a null arena", m: arena(bare(Const(0)), 0, 4096), code: lathe.CodeExecutionFailed, reason: lathe.ReasonGuestFault},
		{name: "an arena that is too small", m: arena(echo(withMemory()), 1024, 64), args: `{"a":"` + long + `"}`, code: lathe.CodeExecutionFailed},
		{name: "an allocator that does not align", m: realloc, args: `{"a":1}`, want: `{"a":1}`},
		{name: "recursion", m: func() *Module {
			m := New()
			m.Memory(1, 1)
			arena(m, 1024, 8192)
			m.Func("tool", T{I32, I32, I32, I32}, T{I32}, 0, Get(0), Get(1), Get(2), Get(3), Call(2))
			return m
		}(), more: "limits: {timeout: 10m}", code: lathe.CodeExecutionFailed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := runner(t, open(t, folder(t, tt.m.Bytes(), manifest+tt.more)).List())
			if tt.args == "" {
				tt.args = "{}"
			}
			for range 2 { // the second call finds nothing of the first
				got, reason, rc := run(t, r, "it", tt.args)
				if got.Code != tt.code || reason != tt.reason || rc != tt.rc || tt.want != "" && got.Content != tt.want {
					t.Errorf("%q %.80s, run ends %q, rc %d; want %q %.80s %q %d", got.Code, got.Content, reason, rc, tt.code, tt.want, tt.reason, tt.rc)
				}
			}
		})
	}
}

// No limit of a manifest is read without being kept, and a grant gives what it says.
func TestT30EveryFieldOfAManifest(t *testing.T) {
	t.Parallel()
	const wasi = "wasi_snapshot_preview1"
	arena := func(m *Module) {
		m.Func("tool_arena_ptr", nil, T{I32}, 0, Const(8192))
		m.Func("tool_arena_len", nil, T{I32}, 0, Const(16384))
	}
	// with builds a tool that imports one function of WASI.
	with := func(name string, params T, code func(f int) string) *Module {
		m := New()
		f := m.Import(wasi, name, params, T{I32})
		m.Memory(1, 1)
		m.Data(0, "\x40\x00\x00\x00\x40\x00\x00\x00") // 64 bytes at 64
		m.Data(1024, "f")
		arena(m)
		m.Func("tool", T{I32, I32, I32, I32}, T{I32}, 0, code(f))
		return m
	}
	four, nine := T{I32, I32, I32, I32}, T{I32, I32, I32, I32, I32, I64, I64, I32, I32}
	openF := Const(3) + Const(1) + Const(1024) + Const(1) + Const(0) + Const64(2) + Const64(2) + Const(0) + Const(8)
	writes := with("fd_write", four, func(f int) string {
		return Loop(Const(1), Const(0), Const(1), Const(8), Call(f), Drop, Br(0)) + Const(0)
	})
	yield := with("sched_yield", nil, func(f int) string { return Loop(Call(f), Drop, Br(0)) + Const(0) })
	leak := with("path_open", nine, func(f int) string { return Loop(openF, Call(f), Drop, Br(0)) + Const(0) })
	readAll := New()
	opens, reads := readAll.Import(wasi, "path_open", nine, T{I32}), readAll.Import(wasi, "fd_pread", T{I32, I32, I32, I64, I32}, T{I32})
	readAll.Memory(1, 1)
	readAll.Data(0, "\x40\x00\x00\x00\x40\x00\x00\x00")
	readAll.Data(1024, "f")
	arena(readAll)
	readAll.Func("tool", T{I32, I32, I32, I32}, T{I32}, 0, openF, Call(opens), Drop,
		Loop(Const(8), Load(0), Const(0), Const(1), Const64(0), Const(16), Call(reads), Drop, Br(0)), Const(0))
	litter := New()
	makes := litter.Import(wasi, "path_create_directory", T{I32, I32, I32}, T{I32})
	litter.Memory(1, 1)
	litter.Data(1024, "d")
	arena(litter)
	litter.Func("tool", T{I32, I32, I32, I32}, T{I32}, 0, Loop(Const(3), Const(1024), Const(1), Call(makes), Drop, Br(0)), Const(0))
	tables := toolModule(0, Const(0))
	tables.Table("", 11, -1)
	clock := with("clock_time_get", T{I32, I64, I32}, func(f int) string {
		return Const(0) + Const64(0) + Get(outPtr) + Call(f) + Drop + // the high half of 2000 in ns is 0x0D23…
			Get(outPtr) + Get(outPtr) + Load(4) + Const(0x0D400000) + GtU + Const('0') + Add + Store8(0) + Get(outLenPtr) + Const(1) + Store(0) + Const(0)
	})
	random := with("random_get", T{I32, I32}, func(f int) string {
		return Get(outPtr) + Const(4) + Call(f) + Drop + Get(outPtr) + Get(outPtr) + Load(0) + Const(10) + rem + Const('0') + Add + Store8(0) + Get(outLenPtr) + Const(1) + Store(0) + Const(0)
	})
	const files = "grants: {files: [{path: data, guest: /}]}\n"
	for _, tt := range []struct {
		name, more string
		m          *Module
		broken     bool // it is refused when it is loaded
		want       string
	}{
		{"module_bytes", "limits: {module_bytes: 50}", yield, true, "module_bytes"},
		{"functions", "limits: {functions: 1}", yield, true, "functions"},
		{"function_bytes", "limits: {function_bytes: 3}", yield, true, "function_bytes"},
		{"table_elements", "limits: {table_elements: 10}", tables, true, "table_elements"},
		{"memory_pages", "limits: {memory_pages: 1}", tables, true, "memory_pages"},
		{"host_calls", "limits: {host_calls: 100}", yield, false, "its limit host_calls"},
		{"stdout_bytes", "limits: {stdout_bytes: 100}", writes, false, "its limit stdout_bytes"},
		{"open_files", files + "limits: {open_files: 3}", leak, false, "its limit open_files"},
		{"file_bytes", files + "limits: {file_bytes: 100}", readAll, false, "its limit file_bytes"},
		{"new_files", "grants: {files: [{path: data, guest: /, write: true}]}\nlimits: {new_files: 5}", litter, false, "its limit new_files"},
		{"no clock", "", clock, false, "0"},
		{"clock", "grants: {clock: true}", clock, false, "1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := folder(t, tt.m.Bytes(), manifest+tt.more)
			if err := os.Mkdir(filepath.Join(dir, "data"), 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "data"), "f", bytes.Repeat([]byte("x"), 64))
			f, err := wasmtool.OpenFolder(dir, nil)
			if err == nil {
				defer f.Close() //nolint:errcheck // reported elsewhere
				err = f.Ready(t.Context())
			}
			if tt.broken || err != nil {
				if err == nil || !tt.broken || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("loading returns %v", err)
				}
				return
			}
			if got, _, _ := run(t, runner(t, f.List()), "it", "{}"); !strings.Contains(got.Content, tt.want) {
				t.Errorf("got %s, want %s", got.Content, tt.want)
			}
		})
	}
	seen := map[bool]map[string]bool{true: {}, false: {}}
	for _, granted := range []bool{true, false} {
		r := runner(t, open(t, folder(t, random.Bytes(), fmt.Sprintf("%sgrants: {random: %v}", manifest, granted))).List())
		for range 40 {
			got, _, _ := run(t, r, "it", "{}")
			seen[granted][got.Content] = true
		}
	}
	if len(seen[true]) < 2 || len(seen[false]) != 1 {
		t.Errorf("random bytes: %v", seen)
	}
}

// An arena of any length works: what is left over after rounding is never asked for.
func TestArenaOfAnyLength(t *testing.T) {
	t.Parallel()
	for n := int32(64); n < 96; n++ {
		m := New()
		m.Memory(1, 1)
		m.Func("tool", T{I32, I32, I32, I32}, T{I32}, 0, Get(outLenPtr), Const(1), Store(0), Get(outPtr), Const('7'), Store8(0), Const(0))
		m.Func("tool_arena_ptr", nil, T{I32}, 0, Const(1000+n%8))
		m.Func("tool_arena_len", nil, T{I32}, 0, Const(n))
		r := runner(t, open(t, folder(t, m.Bytes(), manifest)).List())
		if got, _, _ := run(t, r, "it", `{"a":"0123456789"}`); got.Content != "7" {
			t.Errorf("%d bytes: %q %s", n, got.Code, got.Content)
		}
	}
}

// A module that makes its arena when it is asked for it has made it in every call, once.
func TestArenaIsMadeOnce(t *testing.T) {
	t.Parallel()
	m := New()
	m.Memory(1, 1)
	made := m.Global(true, '0')
	m.Func("tool_arena_ptr", nil, T{I32}, 0, GetGlobal(made), Const(1), Add, SetGlobal(made), Const(1024))
	m.Func("tool_arena_len", nil, T{I32}, 0, Const(1024))
	m.Func("tool", T{I32, I32, I32, I32}, T{I32}, 0, Get(outPtr), GetGlobal(made), Store8(0), Get(outLenPtr), Const(1), Store(0), Const(0))
	r := runner(t, open(t, folder(t, m.Bytes(), manifest)).List())
	for i := range 3 {
		if got, _, _ := run(t, r, "it", `{}`); got.Content != "1" {
			t.Errorf("call %d: made %q times", i, got.Content)
		}
	}
}

// Two callers of one module see nothing of each other.
func TestCallsAreIsolated(t *testing.T) {
	t.Parallel()
	// The guest answers what stands at 512, then leaves its arguments there and counts in a global.
	m := New()
	m.Memory(1, -1)
	g := m.Global(true, '0')
	m.Func("malloc", T{I32}, T{I32}, 0, Const(4096))
	m.Func("tool", T{I32, I32, I32, I32}, T{I32}, 0,
		Get(outPtr), Const(512), Const(64), MemoryCopy, Get(outPtr), GetGlobal(g), Store8(0), Get(outLenPtr), Const(8), Store(0),
		Const(512), Get(argsPtr), Get(argsLen), MemoryCopy, GetGlobal(g), Const(1), Add, SetGlobal(g), Const(0))
	m.Data(512, "01234567")
	r := runner(t, open(t, folder(t, m.Bytes(), manifest)).List())
	for i := range 5 {
		if got, _, _ := run(t, r, "it", fmt.Sprintf(`{"secret":%d}`, i)); got.Content != "01234567" {
			t.Errorf("call %d sees %q", i, got.Content)
		}
	}
}

func TestManifest(t *testing.T) {
	t.Parallel()
	wasm := sumModule().Bytes()
	good := manifest
	for _, tt := range []struct{ name, text, want string }{
		{"unknown field", good + "network: true\n", "line 6: there is no field network"},
		{"unknown limit", good + "limits: {fuel: 5}\n", "fuel"},
		{"unknown grant", good + "grants: {env: [HOME]}\n", "env"},
		{"a limit of none", good + "limits: {host_calls: 0}\n", "line 6"},
		{"a negative limit", good + "limits: {memory_pages: -1}\n", "limit"},
		{"too many pages", good + "limits: {memory_pages: 65536}\n", "memory_pages"},
		{"a timeout without a unit", good + "limits: {timeout: 5}\n", "timeout"},
		{"twice", good + "name: other\n", "already"},
		{"another module", good + "sha256: " + strings.Repeat("0", 64) + "\n", "another one"},
		{"no digest", good + "sha256: abc\n", "64 digits"},
		{"no name", strings.Replace(good, "name: it\n", "", 1), "name"},
		{"no allowlist", strings.Replace(good, "allowlist: [\"*\"]\n", "", 1), "allowlist"},
		{"an effect that is none", strings.Replace(good, "read_only", "readonly", 1), "effect"},
		{"a folder above", good + "grants: {files: [{path: ../secrets, guest: /data}]}\n", "below"},
		{"a folder elsewhere", good + "grants: {files: [{path: /etc, guest: /data}]}\n", "below"},
		{"a folder that is not there", good + "grants: {files: [{path: none, guest: /data}]}\n", "none"},
		{"two documents", good + "---\nname: x\n", "more than one"},
		{"empty", "", "empty"},
		{"a schema that is no object", strings.Replace(good, "{type: object}", "[1]", 1), "object"},
		{"no export of that name", good + "export: run\n", "run"},
		{"an export of another type", good + "export: malloc\n", "malloc"},
		{"a module that is too large", good + "limits: {module_bytes: 100}\n", "module_bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f, err := wasmtool.OpenFolder(folder(t, wasm, tt.text), nil)
			if err == nil {
				err = f.Ready(t.Context())
				if cerr := f.Close(); cerr != nil {
					t.Error(cerr)
				}
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want a word of %q", err, tt.want)
			}
		})
	}
	t.Run("JSON", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		write(t, dir, "x.wasm", wasm)
		write(t, dir, "x.json", fmt.Appendf(nil, `{"name":"add","description":"d","allowlist":["sum"],"schema":{"type":"object","minProperties":1},"sha256":"%x"}`, sha256.Sum256(wasm)))
		if got, _, _ := run(t, runner(t, open(t, dir).List()), "add", `{"a":1,"b":1}`); got.Content != `{"sum":2}` {
			t.Errorf("%q %s", got.Code, got.Content)
		}
		write(t, dir, "x.yaml", []byte(good))
		if _, err := wasmtool.OpenFolder(dir, nil); err == nil {
			t.Error("two manifests were taken")
		}
	})
}

// Reload replaces a module by the one that its file holds now. Runs that have begun keep the old module until Refresh.
func TestReload(t *testing.T) {
	t.Parallel()
	answer := func(s string) []byte {
		m := toolModule(0, reply(16, len(s)))
		m.Data(16, s)
		return m.Bytes()
	}
	dir := folder(t, answer(`"one"`), manifest)
	f := open(t, dir)
	set, err := tool.NewSet(f.List()...)
	if err != nil {
		t.Fatal(err)
	}
	r, err := tool.NewRunner(set, &tool.Options{Policy: policy.AllowAll()})
	if err != nil {
		t.Fatal(err)
	}
	before := r.Begin(&lathe.RunInfo{}, nil)
	ask := func(w *tool.Work) string {
		out := w.Execute(t.Context(), 1, []tool.Call{{ToolCall: lathe.ToolCall{Name: "it", Arguments: "{}"}}}, func(event.Data) {})
		return out.Messages[0].Parts[0].(lathe.ToolResult).Content
	}
	if changed, err := f.Reload(t.Context(), set.Replace); changed || err != nil {
		t.Errorf("nothing has changed, and Reload returns %v %v", changed, err)
	}
	write(t, dir, "it.wasm", answer(`"two"`))
	if changed, err := f.Reload(t.Context(), set.Replace); !changed || err != nil {
		t.Fatalf("Reload returns %v %v", changed, err)
	}
	if got := ask(before); got != "one" {
		t.Errorf("a run that had begun sees %q", got)
	}
	before.Refresh()
	if got := ask(before); got != "two" {
		t.Errorf("after its turn it sees %q", got)
	}
	write(t, dir, "it.wasm", []byte("broken"))
	if changed, err := f.Reload(t.Context(), set.Replace); changed || err == nil {
		t.Errorf("a broken module was taken: %v %v", changed, err)
	}
	write(t, dir, "it.yaml", []byte(strings.Replace(manifest, "name: it", "name: not a name", 1)))
	write(t, dir, "it.wasm", answer(`"three"`))
	if changed, err := f.Reload(t.Context(), set.Replace); changed || err == nil {
		t.Errorf("a broken name was taken: %v %v", changed, err)
	}
	if got, _, _ := run(t, r, "it", "{}"); got.Content != "two" {
		t.Errorf("after a bad reload: %q", got.Content)
	}
	write(t, dir, "it.yaml", []byte(manifest))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	seen := make(chan struct{}, 1)
	go func() {
		defer close(done)
		f.Watch(ctx, time.Millisecond, func(origin string, tools []lathe.Tool) error {
			defer func() { seen <- struct{}{} }()
			return set.Replace(origin, tools)
		}, nil)
	}()
	<-seen
	cancel()
	<-done
	if got, _, _ := run(t, r, "it", "{}"); got.Content != "three" {
		t.Errorf("after the watch: %q", got.Content)
	}
}

func FuzzParseManifest(f *testing.F) {
	f.Add([]byte(manifest))
	f.Add([]byte(`{"name":"a","description":"b","allowlist":["*"],"limits":{"timeout":"1s"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if m, err := wasmtool.ParseManifest(text); err == nil && (m.Name == "" || len(m.Allowlist) == 0) {
			t.Error("an incomplete manifest was taken")
		}
	})
}

// Whatever a module returns for its arena, its output length and its return code, the call is answered, and the content that
// the model gets comes from the memory range that the module was given.
func FuzzT32ABI(f *testing.F) {
	f.Add(int32(0), int32(5), int32(4096), int32(8192))
	f.Add(int32(-28), int32(-1), int32(4096), int32(8192))
	f.Add(int32(0), int32(70_000), int32(-8), int32(64))
	f.Add(int32(-28), int32(5000), int32(65530), int32(1<<20))
	f.Fuzz(func(t *testing.T, rc, n, base, size int32) {
		m := New()
		m.Memory(2, 2)
		m.Func("tool", T{I32, I32, I32, I32}, T{I32}, 0, Get(outLenPtr), Const(n), Store(0), Const(rc))
		m.Func("tool_arena_ptr", nil, T{I32}, 0, Const(base))
		m.Func("tool_arena_len", nil, T{I32}, 0, Const(size))
		got, reason, code := run(t, runner(t, open(t, folder(t, m.Bytes(), manifest)).List()), "it", "{}")
		inside := base != 0 && uint64(uint32(base))+uint64(uint32(size)) <= 2<<16
		switch {
		case !inside && reason != lathe.ReasonGuestFault:
			t.Errorf("an arena at %d of %d: run ends %q", base, size, reason)
		case inside && reason != "":
			t.Errorf("a good arena: run ends %q", reason)
		case got.Code == "" && (rc != 0 || uint32(n) > 1<<16):
			t.Errorf("rc %d with %d bytes is a success", rc, uint32(n))
		case code != 0 && code != int(rc):
			t.Errorf("rc %d is shown as %d", rc, code)
		}
	})
}

// No module runs after its timeout, wherever it spends its time.
func TestHostileModulesTimeOut(t *testing.T) {
	t.Parallel()
	for _, h := range Hostile() {
		if h.Limit != "" || !h.AtStart && h.Name != "malloc" && h.Name != "calls" && h.Name != "fill_calls" {
			continue // package wasmrt has the others
		}
		t.Run(h.Name, func(t *testing.T) {
			t.Parallel()
			r := runner(t, open(t, folder(t, h.Bytes, manifest+"limits: {timeout: 30ms}\n")).List())
			if got, reason, _ := run(t, r, "it", "{}"); got.Code != lathe.CodeTimeout || reason != "" {
				t.Errorf("%q %s, run ends %q", got.Code, got.Content, reason)
			}
		})
	}
}
