package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// TestModuleCanBeInstalled makes a module proxy of files from the tree. The module has no replace directive, which `go install
// MODULE@VERSION` refuses, and its files can be a module's. `make releasetest` installs the program from the proxy and runs it.
func TestModuleCanBeInstalled(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	text := read(t, filepath.Join(root, "go.mod"))
	mod, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(mod.Replace)+len(mod.Exclude) > 0 {
		t.Errorf("go.mod has %d replace and %d exclude directives, which count in the main module alone", len(mod.Replace), len(mod.Exclude))
	}
	proxy := t.TempDir()
	dir := filepath.Join(proxy, filepath.FromSlash(mod.Module.Mod.Path), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	tree := filepath.Join(t.TempDir(), "tree") // what git ignores, such as node_modules, is not published
	if err := copyTree(root, tree); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, testVersion+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	if err := zip.CreateFromDir(f, module.Version{Path: mod.Module.Mod.Path, Version: testVersion}, tree); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{testVersion + ".mod": text, testVersion + ".info": fmt.Appendf(nil, `{"Version":%q}`, testVersion), "list": []byte(testVersion + "\n")} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	cache := strings.TrimSpace(string(out)) // has the other modules
	own := t.TempDir()
	env := append(os.Environ(), "GOPROXY=file://"+filepath.ToSlash(proxy)+",file://"+filepath.ToSlash(cache)+"/cache/download", "GOSUMDB=off", "GOFLAGS=-trimpath -modcacherw",
		"GOMODCACHE="+filepath.Join(own, "mod"), "GOBIN="+filepath.Join(own, "bin"), "GOWORK=off")
	golang := func(args ...string) (string, error) {
		cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "go", args...)
		cmd.Dir, cmd.Env = own, env
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := golang("mod", "download", "-json", mod.Module.Mod.Path+"@"+testVersion); err != nil || strings.Contains(out, `"Error"`) {
		t.Fatalf("%v\n%s", err, out)
	}
	if !full {
		t.Log("the program is not built from the proxy: make releasetest does")
		return
	}
	if out, err := golang("install", mod.Module.Mod.Path+"/cmd/lathe@"+testVersion); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	name := "lathe"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	version, err := exec.CommandContext(t.Context(), filepath.Join(own, "bin", name), "version").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(version), "lathe "+testVersion+" ") {
		t.Errorf("%v, %s", err, version)
	}
}
