//go:build unix

package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/lathe-run/lathe/internal/app"
)

// A pipe in place of a file that the configuration names is an error, and not a wait for a writer.
func TestPipesInPlaceOfFilesAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "wasm"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pipe", "wasm/tool.wasm", "wasm/tool.yaml"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for what, yaml := range map[string]string{
		"a key":               `keys: {a: {key: "${file:pipe}"}}`,
		"a key of a model":    `models: {m: {base_url: "http://127.0.0.1:1/v1", model: m, key: "${file:pipe}"}}`,
		"a file of keys":      `{keys: {a: {sha256: "` + strings.Repeat("0", 64) + `"}}, serve: {keys_file: pipe}}`,
		"a certificate":       `serve: {tls: {cert: pipe, key: pipe}}`,
		"a script":            `{sim: {scripts: {s: pipe}}, models: {m: {provider: sim, model: sim/s}}}`,
		"an OpenAPI document": `tools: {openapi: {o: {file: pipe, server: "http://127.0.0.1:1", operations: ["*"], allowlist: ["*"]}}}`,
		"a module":            `tools: {wasm: {dir: wasm}}`,
	} {
		path := filepath.Join(dir, strings.ReplaceAll(what, " ", "-")+".yaml")
		if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := app.LoadConfig(path, &app.LoadOptions{Environ: []string{}})
		if err == nil {
			err = app.Check(t.Context(), cfg)
		}
		if err == nil {
			var a *app.App
			if a, err = app.New(cfg, &app.Options{}); err == nil {
				_ = a.Close() // the error is what is missing
			}
		}
		if err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
