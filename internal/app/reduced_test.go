package app_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe/internal/app"
)

// A model whose server gets schemas reduced is listed with the parts, and the server says so once when the tools are registered.
func TestReducedSchemasAreListedAndWarnedOf(t *testing.T) {
	t.Parallel()
	text := `
models:
  google: {wire: gemini, base_url: "http://127.0.0.1:1/v1beta"}
  plain: {base_url: "http://127.0.0.1:1/v1"}
  text: {wire: gemini, base_url: "http://127.0.0.1:1/v1beta", dialect: hermes}
  sim: {provider: sim, model: sim/demo}
tools:
  builtin: []
  egress: {private: ["127.0.0.1"]}
  http:
    find: {description: Finds., url: "http://127.0.0.1:1/find", allowlist: ["*"], parameters: {q: {schema: {type: string, pattern: "^secret-pattern"}}}}
    list: {description: Lists., url: "http://127.0.0.1:1/list", allowlist: ["*"]}
`
	cfg := load(t, text)
	set, err := app.NewToolSet(cfg)
	if err != nil {
		t.Fatal(err)
	}
	got, err := app.ReducedTools(cfg, set)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string][]app.ReducedTool{"google": {{Tool: "find", Parts: []string{"schema.properties.q.pattern"}}}}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	var log lines
	open(t, text, &app.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if s := log.String(); strings.Count(s, "schemas of tools are reduced") != 1 || !strings.Contains(s, "model=google tools=1") || strings.Contains(s, "secret-pattern") {
		t.Errorf("the log: %s", s)
	}
}
