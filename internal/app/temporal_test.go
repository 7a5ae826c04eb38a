package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/config"
)

// activity is a tool of tools.temporal as a test makes it.
type activity struct {
	spec *lathe.ToolSpec
	args []string
}

func (a *activity) Spec() *lathe.ToolSpec { return a.spec }

func (a *activity) Call(_ context.Context, args json.RawMessage) (*lathe.Output, error) {
	a.args = append(a.args, string(args))
	return &lathe.Output{Data: json.RawMessage(`{"degrees":4,"station":"x"}`)}, nil
}

// documented returns the configuration of docs/temporal.md.
func documented(t *testing.T) string {
	t.Helper()
	doc, err := os.ReadFile("../../docs/temporal.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(doc), "```yaml\n")
	yaml, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatal("docs/temporal.md has no configuration")
	}
	return yaml
}

// The tools of tools.temporal are made by the function of the options, from the definition in the configuration.
func TestTemporalTools(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "script.txt")
	if err := os.WriteFile(script, []byte("-- turn --\ncall: weather {\"city\":\"Oslo\"}\n-- turn --\nexpect: {\"degrees\":4}\ntext: It is 4.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var made *activity
	var entry *config.TemporalTool
	a := open(t, documented(t), &app.Options{Script: script, TemporalTool: func(spec *lathe.ToolSpec, c *config.TemporalTool) (lathe.Tool, error) {
		made, entry = &activity{spec: spec}, c
		return made, nil
	}})
	rec := httptest.NewRecorder()
	a.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/v1/chat/completions",
		strings.NewReader(`{"model":"sim/script","messages":[{"role":"user","content":"How cold is it in Oslo?"}]}`)))
	if rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), "It is 4.") {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	if s := made.spec; s.Name != "weather" || s.Effect != lathe.ReadOnly || s.Timeout.String() != "10s" || s.Origin != "temporal:weather" || len(made.args) != 1 || made.args[0] != `{"city":"Oslo"}` {
		t.Errorf("%+v was called with %s", s, made.args)
	}
	if entry.Queue != "weather" || entry.Heartbeat.String() != "2s" || entry.MaxAttempts != 3 {
		t.Errorf("%+v", entry)
	}
}

// A program that cannot execute activities checks and lists the tools of tools.temporal. It refuses to run with them, also at a reload,
// and the error names the program that can.
func TestTemporalToolsWithoutTemporal(t *testing.T) {
	t.Parallel()
	cfg := load(t, documented(t))
	if err := app.Check(t.Context(), cfg); err != nil {
		t.Error(err)
	}
	set, err := app.NewToolSet(cfg)
	if err != nil {
		t.Fatal(err)
	}
	listed, ok := set.Lookup("weather")
	if !ok {
		t.Fatal("the tool is not listed")
	}
	_, called := listed.Call(t.Context(), json.RawMessage(`{"city":"Oslo"}`))
	_, started := app.New(cfg, nil)
	model, err := cfg.Model("sim/demo")
	if err != nil {
		t.Fatal(err)
	}
	_, session := app.OpenSession(t.Context(), cfg, model, nil)
	reloaded := open(t, "", nil).Reload(cfg)
	for how, err := range map[string]error{"call": called, "start": started, "session": session, "reload": reloaded} {
		if want := map[bool]lathe.Code{true: lathe.CodeUnavailable, false: lathe.CodeInvalidConfig}[how == "call"]; lathe.CodeOf(err) != want || !strings.Contains(err.Error(), app.InTemporal) {
			t.Errorf("%s: %v", how, err)
		}
	}
}

// What is wrong with a tool of tools.temporal is a problem of its entry.
func TestTemporalToolProblems(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lathe.yaml")
	if err := os.WriteFile(path, []byte("tools:\n  temporal:\n    odd:\n      description: Has a schema that is none.\n      queue: odd\n      allowlist: ['*']\n      schema: {type: nothing}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := app.LoadConfig(path, &app.LoadOptions{Environ: []string{}})
	if problems := config.ProblemsOf(err); len(problems) != 1 || problems[0].Key != "tools.temporal.odd" || problems[0].Line != 3 {
		t.Errorf("%v", err)
	}
	_, err = app.New(load(t, documented(t)), &app.Options{TemporalTool: func(*lathe.ToolSpec, *config.TemporalTool) (lathe.Tool, error) {
		return nil, errors.New("no such queue")
	}})
	if lathe.CodeOf(err) != lathe.CodeInvalidConfig || !strings.Contains(err.Error(), "tools.temporal.weather: no such queue") {
		t.Errorf("%v", err)
	}
}
