package guest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/wasmrt/wasmtest"
)

// sums runs a module that was built from one of the examples.
func sums(t *testing.T, file string) {
	t.Helper()
	wasm, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(nil)
	r := runGuest(t, wasm, w, nil, nil)
	r.ended(t, 0)
	calls := w.calls()
	if len(calls) != 1 || calls[0].Result != `{"sum":42}` || !strings.Contains(r.out, "42") {
		t.Errorf("results %+v; it prints %s", calls, r.out)
	}
	if want := string(usageJSON(r.Usage)); !strings.Contains(r.out, want) || r.Usage.TotalTokens == 0 {
		t.Errorf("it prints %s, want the metrics %s", r.out, want)
	}
}

// build runs a compiler.
func build(t *testing.T, env []string, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

func TestExampleInGo(t *testing.T) {
	t.Parallel()
	testdata.NeedAll(t) // it compiles the standard library for WebAssembly
	wasm := filepath.Join(t.TempDir(), "sum.wasm")
	build(t, []string{"GOOS=wasip1", "GOARCH=wasm", "GOFLAGS="}, "go", "build", "-o", wasm, "../examples/guest-go")
	sums(t, wasm)
}

func TestExampleInRust(t *testing.T) {
	t.Parallel()
	testdata.NeedAll(t)
	rustc, target := wasmtest.Rust(t, "wasm32-wasip1", "wasm32-wasi") // newer and older compilers call it so
	wasm := filepath.Join(t.TempDir(), "sum.wasm")
	build(t, nil, rustc, "--edition", "2021", "--target", target, "-O", "-C", "link-arg=--export-table", "-o", wasm, "../examples/guest-rust/sum.rs")
	sums(t, wasm)
}

func TestExampleInC(t *testing.T) {
	t.Parallel()
	testdata.NeedAll(t)
	cc := wasmtest.C(t)
	wasm := filepath.Join(t.TempDir(), "sum.wasm")
	build(t, nil, cc[0], append(cc[1:], "--target=wasm32-wasi", "-O2", "-Wl,--export-table", "-o", wasm, "../examples/guest-c/sum.c")...)
	sums(t, wasm)
}

// C that is written with the names of <errno.h> works: the numbers of a function are read in both ways, and spear.h has the
// names for the numbers of the host. The page has WASI's numbers.
func TestErrnoByNameInC(t *testing.T) {
	t.Parallel()
	testdata.NeedAll(t)
	cc := wasmtest.C(t)
	source, err := os.ReadFile("../examples/guest-c/sum.c")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/internals/guest-abi.md")
	if err != nil {
		t.Fatal(err)
	}
	here, wasi := "", ""
	for _, m := range regexp.MustCompile(`(?m)^\| (\d+) \| (E[A-Z]+) \| (\d+) \|`).FindAllStringSubmatch(string(page), -1) {
		wasi += "_Static_assert(" + m[2] + " == " + m[3] + ", \"\");\n"
		here += "_Static_assert(SPEAR_" + m[2] + " == " + m[1] + " && " + m[2] + " == " + m[1] + ", \"\");\n"
	}
	if strings.Count(wasi, "\n") != 9 {
		t.Fatalf("the page has other numbers:\n%s", wasi)
	}
	dir := t.TempDir()
	large := strings.NewReplacer("-SPEAR_ENOSPC", "-ENOSPC", "char text[64]", "static char text[6000]", "%ld}", "%ld%5000s}",
		`number(args, "\"b\""));`, `number(args, "\"b\""), "");`).Replace(string(source))
	for name, c := range map[string]struct {
		text  string
		flags []string
	}{
		"names of errno.h": {"#include <errno.h>\n" + wasi + large, nil},
		"names of spear.h": {"#include <errno.h>\n" + here + large, []string{"-include", "../examples/guest-c/spear.h", "-DSPEAR_ERRNO"}},
	} {
		file := filepath.Join(dir, name+".c")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		wasm := filepath.Join(dir, name+".wasm")
		build(t, nil, cc[0], slices.Concat(cc[1:], c.flags, []string{"--target=wasm32-wasi", "-I../examples/guest-c", "-O2", "-Wl,--export-table", "-o", wasm, file})...)
		b, err := os.ReadFile(wasm)
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(nil)
		r := runGuest(t, b, w, nil, nil)
		r.ended(t, 0)
		if calls := w.calls(); len(calls) != 1 || !strings.HasPrefix(calls[0].Result, `{"sum":42  `) || len(calls[0].Result) < 5000 {
			t.Errorf("%s: results %+v", name, calls)
		}
	}
}
