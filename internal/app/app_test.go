package app_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/leaktest"
)

func load(t *testing.T, yaml string) *config.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lathe.yaml")
	if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := app.LoadConfig(path, &app.LoadOptions{Environ: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func open(t *testing.T, yaml string, opts *app.Options) *app.App {
	t.Helper()
	a, err := app.New(load(t, yaml), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

func get(t *testing.T, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1"+path, http.NoBody))
	return rec
}

// A reload replaces models and keeps the Go tools of the program; one that fails changes nothing.
func TestReloadKeepsTheToolsOfTheProgram(t *testing.T) {
	t.Parallel()
	a := open(t, "models: {one: {provider: sim, model: sim/demo}}", &app.Options{Tools: []lathe.Tool{weather()}})
	h := a.Handler()
	want := func(model string) {
		t.Helper()
		if got := get(t, h, "/v1/models").Body.String(); !strings.Contains(got, `"`+model+`"`) || strings.Count(got, `"object":"model"`) != 1 {
			t.Errorf("served %s, want %s", got, model)
		}
		if got := get(t, h, "/api/tools").Body.String(); !strings.Contains(got, `"weather"`) {
			t.Errorf("tools: %s", got)
		}
	}
	want("one")
	if err := a.Reload(load(t, "models: {two: {provider: sim, model: sim/demo}}")); err != nil {
		t.Fatal(err)
	}
	want("two")
	err := a.Reload(load(t, "models: {three: {provider: sim, model: sim/none}}"))
	if lathe.CodeOf(err) != lathe.CodeInvalidRequest {
		t.Errorf("a model that is not simulated: %v", err)
	}
	want("two")
}

// New returns an error for every configuration that cannot be served, and stops what it has started.
func TestNewRefusesWhatCannotBeServed(t *testing.T) {
	defer leaktest.Since(t)()
	rule := load(t, "policy: {rules: {r: {decision: deny, when: 'true'}}}")
	r := rule.Policy.Rules["r"]
	r.When = "this is no condition"
	rule.Policy.Rules["r"] = r
	for name, tc := range map[string]struct {
		cfg  *config.Config
		code lathe.Code
	}{
		"a rule that was changed after it was loaded": {rule, lathe.CodeInvalidConfig},
		"a model that is not simulated":               {load(t, "models: {m: {provider: sim, model: sim/none}}"), lathe.CodeInvalidRequest},
		"a store of another kind":                     {load(t, "serve: {store: 'mongo:x'}"), lathe.CodeInvalidRequest},
		"a store in a folder that is not there":       {load(t, "serve: {store: 'sqlite:"+filepath.Join(t.TempDir(), "none", "x.db")+"'}"), lathe.CodeInternal},
		"a tool name twice":                           {load(t, "tools: {builtin: [calculator]}"), lathe.CodeInvalidConfig},
	} {
		opts := &app.Options{}
		if strings.Contains(name, "twice") {
			opts.Tools = []lathe.Tool{weather(), weather()}
		}
		a, err := app.New(tc.cfg, opts)
		if a != nil || lathe.CodeOf(err) != tc.code {
			t.Errorf("%s: %v, want %s", name, err, tc.code)
		}
	}
}

// Close without Shutdown stops everything, may be called twice, and leaves no reload possible.
func TestCloseStopsEverything(t *testing.T) {
	defer leaktest.Since(t)()
	cfg := load(t, "models: {one: {provider: sim, model: sim/demo}}")
	a, err := app.New(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Reload(cfg); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Reload(cfg); err == nil {
		t.Error("a closed application was reloaded")
	}
}

// After Shutdown has begun, /readyz fails; a store of the caller stays open until the caller closes it.
func TestShutdownLeavesTheStoreOfTheCaller(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	kept, err := app.OpenStore("sqlite:"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	a := open(t, "serve: {store: none}", &app.Options{Store: kept})
	h := a.Handler()
	if got := get(t, h, "/readyz").Code; got != http.StatusOK {
		t.Errorf("ready: %d", got)
	}
	if left := a.Shutdown(t.Context()); left != 0 {
		t.Errorf("%d runs are left", left)
	}
	if got := get(t, h, "/readyz").Code; got != http.StatusServiceUnavailable {
		t.Errorf("after the shutdown: %d", got)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := kept.Ended(context.Background(), nil, time.Now(), 1); err != nil {
		t.Errorf("the store: %v", err)
	}
	if err := kept.Close(); err != nil {
		t.Fatal(err)
	}
}
