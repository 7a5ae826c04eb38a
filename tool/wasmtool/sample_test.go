package wasmtool_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/wasmrt/wasmtest"
)

// block returns the first block of that language in a page of docs.
func block(t testing.TB, name, language string) []byte {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(page), "\n```"+language+"\n")
	code, _, end := strings.Cut(rest, "\n```")
	if !ok || !end {
		t.Fatalf("%s has no %s", name, language)
	}
	return []byte(code + "\n")
}

// addsUp checks a module that does what the sample sum does.
func addsUp(t testing.TB, file string) {
	t.Helper()
	wasm, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r := runner(t, open(t, folder(t, wasm, manifest)).List())
	for range 3 {
		if got, reason, _ := run(t, r, "it", `{"a":7,"b":35}`); got.Content != `{"sum":42}` || reason != "" {
			t.Errorf("%q %s, run ends %q", got.Code, got.Content, reason)
		}
	}
}

// The Go of the page for authors is a tool.
func TestSampleGo(t *testing.T) {
	t.Parallel()
	testdata.NeedAll(t) // it compiles the standard library for WebAssembly
	dir := t.TempDir()
	write(t, dir, "main.go", block(t, "internals/tools-wasm.md", "go"))
	write(t, dir, "go.mod", []byte("module sum\n\ngo 1.26\n"))
	wasm := filepath.Join(dir, "sum.wasm")
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-buildmode=c-shared", "-o", wasm)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOWORK=off", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	addsUp(t, wasm)
	b, err := os.ReadFile(wasm)
	if err != nil {
		t.Fatal(err)
	}
	r := runner(t, open(t, folder(t, b, manifest)).List())
	if got, _, rc := run(t, r, "it", `{"A":"x"}`); got.Code != lathe.CodeExecutionFailed || rc != -22 {
		t.Errorf("bad arguments: %q rc %d", got.Code, rc)
	}
}

// The Rust of the page is one, too, where its compiler has the target.
func TestSampleRust(t *testing.T) {
	t.Parallel()
	testdata.NeedAll(t)
	rustc, target := wasmtest.Rust(t, "wasm32-unknown-unknown")
	dir := t.TempDir()
	write(t, dir, "sum.rs", block(t, "internals/tools-wasm.md", "rust"))
	wasm := filepath.Join(dir, "sum.wasm")
	if out, err := exec.Command(rustc, "--target", target, "--crate-type", "cdylib", "-O", "-o", wasm, filepath.Join(dir, "sum.rs")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	addsUp(t, wasm)
}

// The C of the page echoes, where clang can link for WASI.
func TestSampleC(t *testing.T) {
	t.Parallel()
	testdata.NeedAll(t)
	cc := wasmtest.C(t)
	dir := t.TempDir()
	write(t, dir, "echo.c", block(t, "internals/tools-wasm.md", "c"))
	wasm := filepath.Join(dir, "echo.wasm")
	args := append(cc[1:], "--target=wasm32-wasi", "-mexec-model=reactor", "-O2", "-o", wasm, filepath.Join(dir, "echo.c"))
	if out, err := exec.Command(cc[0], args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	b, err := os.ReadFile(wasm)
	if err != nil {
		t.Fatal(err)
	}
	r := runner(t, open(t, folder(t, b, manifest)).List())
	if got, _, _ := run(t, r, "it", `{"a":7}`); got.Content != `{"a":7}` {
		t.Errorf("%q %s", got.Code, got.Content)
	}
}
