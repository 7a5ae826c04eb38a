package app_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/lathe-run/lathe/internal/app"
)

// A server may listen on a public address exactly if its configuration refuses requests without a key, also if the keys are only in a file.
func TestPublicAddressNeedsKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "keys.txt"), []byte("# no key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, public := range map[string]bool{
		"serve: {addr: '0.0.0.0:8700'}":                      false,
		"serve: {addr: '0.0.0.0:8700', keys_file: keys.txt}": true,
		"serve: {addr: '0.0.0.0:8700'}\nkeys: {a: {sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08}}": true,
	} {
		path := filepath.Join(dir, "lathe.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := app.LoadConfig(path, &app.LoadOptions{Environ: []string{}})
		if err != nil {
			t.Fatal(err)
		}
		if err := app.CheckAddr(cfg, "127.0.0.1:8700"); err != nil {
			t.Errorf("%s: a loopback address: %v", text, err)
		}
		if err := app.CheckAddr(cfg, cfg.Serve.Addr); (err == nil) != public || public != cfg.RequiresKey() {
			t.Errorf("%s: %v", text, err)
		}
		if err := app.Check(t.Context(), cfg); (err == nil) != public {
			t.Errorf("%s: check: %v", text, err)
		}
	}
}
