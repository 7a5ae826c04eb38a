package wasmtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Rust returns a Rust compiler and the first of the targets that an installed compiler supports. It searches PATH and the path of
// Debian's rustc. If it finds none, the test is skipped.
func Rust(t testing.TB, targets ...string) (rustc, target string) {
	t.Helper()
	for _, target := range targets {
		for _, rustc := range []string{"rustc", "/usr/bin/rustc"} {
			lib, err := exec.CommandContext(t.Context(), rustc, "--print", "target-libdir", "--target", target).Output()
			if err != nil {
				continue
			}
			if std, _ := filepath.Glob(filepath.Join(strings.TrimSpace(string(lib)), "libcore-*.rlib")); len(std) > 0 {
				return rustc, target
			}
		}
	}
	t.Skip("no rustc has the target " + strings.Join(targets, " or "))
	return "", ""
}

// C returns the command of a C compiler that builds for WASI with its C library. If none exists, the test is skipped.
func C(t testing.TB) []string {
	t.Helper()
	probe := filepath.Join(t.TempDir(), "probe.c")
	if err := os.WriteFile(probe, []byte("#include <stdio.h>\nint main(void) { return puts(\"\") < 0; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, cc := range [][]string{{"clang"}, {"zig", "cc"}} {
		args := append(append([]string(nil), cc[1:]...), "--target=wasm32-wasi", "-o", filepath.Join(t.TempDir(), "probe.wasm"), probe)
		if exec.CommandContext(t.Context(), cc[0], args...).Run() == nil {
			return cc
		}
	}
	t.Skip("neither clang nor zig builds C for WASI")
	return nil
}
