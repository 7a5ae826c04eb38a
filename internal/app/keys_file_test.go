package app_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/config"
)

// A key of the file of keys has its own name and the rights of its entry. The entry itself is no key, and a reload reads the file again.
func TestKeysOfAFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key := func(name string) string { return name + "-0123456789abcdef" }
	line := func(name, profile string) string {
		return fmt.Sprintf("%s %x %s\n", name, sha256.Sum256([]byte(key(name))), profile)
	}
	path := write("lathe.yaml", `
models: {a: {base_url: "http://127.0.0.1:1/v1"}, b: {base_url: "http://127.0.0.1:1/v1"}}
serve: {keys_file: keys.txt, default_grant: none}
keys:
  one: {models: [a]}
  all: {models: ["*"]}
`)
	load := func() (*config.Config, error) { return app.LoadConfig(path, &app.LoadOptions{Environ: []string{}}) }
	write("keys.txt", line("ann", "one")+line("bob", "all"))
	cfg, err := load()
	if err != nil {
		t.Fatal(err)
	}
	a, err := app.New(cfg, &app.Options{Store: app.NewMemoryStore(), Environ: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	first := a
	t.Cleanup(func() {
		if err := first.Close(); err != nil {
			t.Error(err)
		}
	})
	wants := func(what string, models map[string]string) {
		t.Helper()
		for name, want := range models {
			rec := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1/v1/models", http.NoBody)
			r.Header.Set("Authorization", "Bearer "+key(name))
			a.Handler().ServeHTTP(rec, r)
			var got []string
			for _, m := range []string{"a", "b"} {
				if strings.Contains(rec.Body.String(), `"id":"`+m+`"`) {
					got = append(got, m)
				}
			}
			if s := fmt.Sprint(rec.Code, got); s != want {
				t.Errorf("%s: %s: %s, want %s", what, name, s, want)
			}
		}
	}
	wants("at the start", map[string]string{"ann": "200 [a]", "bob": "200 [a b]", "eve": "401 []", "one": "401 []", "all": "401 []", "": "401 []"})

	write("keys.txt", line("bob", "one")+line("eve", "all"))
	if cfg, err = load(); err != nil {
		t.Fatal(err)
	}
	if err := a.Reload(cfg); err != nil {
		t.Fatal(err)
	}
	wants("after a reload", map[string]string{"ann": "401 []", "bob": "200 [a]", "eve": "200 [a b]", "one": "401 []"})

	write("keys.txt", line("eve", "all")) // the last line for an entry is removed
	if cfg, err = load(); err != nil {
		t.Fatal(err)
	}
	if err := a.Reload(cfg); err != nil {
		t.Fatal(err)
	}
	wants("without keys of an entry", map[string]string{"bob": "401 []", "eve": "200 [a b]", "one": "401 []", "": "401 []"})

	cfg.FileKeys = nil // made by a program: it does not open the server to all
	if err := a.Reload(cfg); err == nil {
		t.Error("entries without keys are taken without a file")
	}
	wants("after a refused reload", map[string]string{"bob": "401 []", "eve": "200 [a b]", "": "401 []"})

	write("keys.txt", "# no key\n")
	if cfg, err = load(); err != nil {
		t.Fatal(err)
	}
	if err := a.Reload(cfg); err != nil {
		t.Fatal(err)
	}
	wants("without keys", map[string]string{"bob": "401 []", "eve": "401 []", "": "401 []"})
	again, err := app.New(cfg, &app.Options{Store: app.NewMemoryStore(), Environ: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	})
	a = again
	wants("after a start without keys", map[string]string{"bob": "401 []", "eve": "401 []", "": "401 []"})
	for path, want := range map[string]string{"/api/session": `"keys_required":true`, "/api/runs": "missing_api_key", "/mcp": "missing_api_key"} {
		rec := httptest.NewRecorder()
		a.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1"+path, http.NoBody))
		if !strings.Contains(rec.Body.String(), want) {
			t.Errorf("%s: %d %s, want %s", path, rec.Code, rec.Body, want)
		}
	}
}
