package config

import (
	"regexp"
	"strings"
	"testing"
)

var starter = Starter{Name: "llama3:8b", Head: "A configuration.", Model: []StarterSetting{
	{Key: "base_url", Value: `"http://127.0.0.1:1/v1"`}, {Key: "model", Value: `"llama3:8b"`},
	{Key: "supports_parallel", Value: "false", Why: "parallel-ignored"}, {Key: "transforms.tool", Value: "[]"}}}

func startedEnv() *LoadOptions {
	return &LoadOptions{Environ: []string{"OPENAI_API_KEY=0123456789abcdef", "LATHE_TEAM_KEY=0123456789abcdef"}}
}

// The file is a configuration, and stays one when the settings that stand there as comments are put in force.
func TestStarterIsAConfiguration(t *testing.T) {
	t.Parallel()
	text := string(starter.YAML())
	cfg, err := loadText(t, text, startedEnv())
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if m := cfg.Models["llama3:8b"]; cfg.DefaultModel != "llama3:8b" || m == nil || m.SupportsParallel || m.BaseURL.Reveal() != "http://127.0.0.1:1/v1" || len(cfg.Keys) > 0 {
		t.Errorf("%+v", cfg)
	}
	commented := regexp.MustCompile(`(?m)^( *)#([a-z_]+:)`)
	comments := len(commented.FindAllString(text, -1))
	all := commented.ReplaceAllString(text, "$1$2")
	if cfg, err = loadText(t, all, startedEnv()); err != nil {
		t.Fatalf("with every setting: %v\n%s", err, all)
	}
	if cfg.Tools.MCP["files"].Command == "" || len(cfg.Keys) != 1 || comments < 10 {
		t.Errorf("with every setting: %s", all)
	}
}

// Each setting of the file has the documentation of docs/config.md before it.
func TestStarterHasTheDocumentationOfItsSettings(t *testing.T) {
	t.Parallel()
	text := strings.Join(strings.Fields(strings.ReplaceAll(string(starter.YAML()), "#", "")), " ")
	for _, field := range []string{"Config.DefaultModel", "Model.BaseURL", "Model.Key", "Tools.Builtin", "Serve.Store"} {
		doc, ok := comments()[field]
		if want := strings.Join(strings.Fields(strings.ReplaceAll(doc, "#", "")), " "); !ok || !strings.Contains(text, want) {
			t.Errorf("the comment of %s is not there: %q", field, want)
		}
	}
}
