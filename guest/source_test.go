package guest_test

import (
	"os"
	"os/exec"
	"path/filepath"
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
