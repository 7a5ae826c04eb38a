package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/config"
)

// The model of --base-url is served under the name that it has on its server, and is the default.
func TestServeOffersTheModelOfTheCommandLine(t *testing.T) {
	t.Parallel()
	cmd := serveCommand()
	if err := cmd.ParseFlags([]string{"--base-url", "http://127.0.0.1:1/v1", "--model", "org/tiny:1b"}); err != nil {
		t.Fatal(err)
	}
	f := serveFlags{}
	f.BaseURL, f.Model = "http://127.0.0.1:1/v1", "org/tiny:1b"
	file := filepath.Join(t.TempDir(), "lathe.yaml")
	load := func(yaml string) (*config.Config, error) {
		if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
			t.Fatal(err)
		}
		return f.loadConfig(cmd, file)
	}
	cfg, err := load("models: {fast: {provider: sim, model: sim/demo}}")
	if err != nil {
		t.Fatal(err)
	}
	a, err := app.New(cfg, &app.Options{Aliases: f.aliases()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Close() }()
	rec := httptest.NewRecorder()
	a.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1/v1/models", http.NoBody))
	var got struct{ Data []struct{ ID string } }
	if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil || len(got.Data) != 2 || got.Data[0].ID != "fast" || got.Data[1].ID != "org/tiny:1b" {
		t.Errorf("served %s, %v", rec.Body, err)
	}
	if entry, err := cfg.Model(""); err != nil || entry.Model != "org/tiny:1b" {
		t.Errorf("the default is %+v, %v", entry, err)
	}
	if _, err := load(`models: {"org/tiny:1b": {provider: sim}}`); err == nil || !strings.Contains(err.Error(), "a model of this name") {
		t.Errorf("a name twice: %v", err)
	}
}

// The image probes the address at which it serves, with flags that the binary has.
func TestImageProbesTheDaemon(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(filepath.Join("..", "..", "deploy", "Containerfile"))
	if err != nil {
		t.Fatal(err)
	}
	probe := regexp.MustCompile(`(?m)^HEALTHCHECK .*CMD \["/lathe", "serve", (.*)\]$`).FindStringSubmatch(string(b))
	if probe == nil {
		t.Fatal("the image has no HEALTHCHECK")
	}
	cmd := serveCommand()
	if err := cmd.ParseFlags(strings.Split(strings.ReplaceAll(probe[1], `"`, ""), ", ")); err != nil {
		t.Fatal(err)
	}
	addr := cmd.Flags().Lookup("addr").Value.String()
	if ready := cmd.Flags().Lookup("ready").Value.String(); ready != "true" || !strings.Contains(string(b), `"--addr", "0.0.0.0:`+strings.TrimPrefix(addr, "127.0.0.1:")) {
		t.Errorf("the probe asks %s, ready %s", addr, ready)
	}
}
