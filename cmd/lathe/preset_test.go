package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/preset"
)

// load reads a configuration as the command does.
func load(t *testing.T, text string, over ...config.Override) *config.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lathe.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := loadConfig(path, over)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// profileNames returns the profiles of docs/presets.md, which a test of package preset compares with the code.
func profileNames(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile("../../docs/presets.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "<!-- profiles -->")
	table, _, _ := strings.Cut(rest, "<!-- end -->")
	var names []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)`").FindAllStringSubmatch(table, -1) {
		names = append(names, m[1])
	}
	if len(names) < 10 {
		t.Fatalf("the page has the profiles %q", names)
	}
	return names
}

// Every key of a configuration with a profile is what it is without, but for those that the
// profile says. The settings of runs are the documented defaults, whatever the model is called.
func TestProfilesChangeOnlyWhatTheyName(t *testing.T) {
	t.Parallel()
	rows := func(cfg *config.Config) map[string]string {
		list, err := cfg.Shown()
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]string{}
		for _, r := range list {
			out[r.Key] = r.Value
		}
		return out
	}
	for _, profile := range profileNames(t) {
		for _, model := range []string{"gpt-5", "deepseek/deepseek-chat", "deepseek-reasoner", "google/gemini-3-pro", "x-reasoner"} {
			plain := load(t, "models: {m: {model: "+model+"}}")
			cfg := load(t, "models: {m: {model: "+model+", profile: "+profile+"}}")
			patch, err := preset.For(profile, model)
			if err != nil {
				t.Fatal(err)
			}
			with := rows(cfg)
			for key, want := range rows(plain) {
				name := strings.TrimPrefix(key, "models.m.")
				if kind, ok := strings.CutPrefix(name, "transforms."); ok {
					name = kind + "_transforms"
				}
				switch {
				case key == "models.m.profile", patch.Sets(name) && name != key:
				case strings.HasPrefix(name, "price.") || name == "output_limit": // of the list of the profile's vendor
					if with[key] != want && want != "unknown" && with[key] != "unknown" && with[key] != "0" && want != "0" {
						t.Errorf("%s with %s: %s is %q, without %q: want one list", profile, model, key, with[key], want)
					}
				case with[key] != want:
					t.Errorf("%s with %s: %s is %q, without %q", profile, model, key, with[key], want)
				}
			}
			m, err := cfg.Model("m")
			if err != nil {
				t.Fatal(err)
			}
			if got, want := cfg.SettingsFor(m), config.Default().Settings(); got != want {
				t.Errorf("%s with %s: runs have %+v, want %+v", profile, model, got, want)
			}
			vendor, _ := strings.CutSuffix(profile, "_responses") // another wire of the same vendor
			if m.Label != vendor {
				t.Errorf("%s is called %q in metrics", profile, m.Label)
			}
		}
	}
}

func TestAModelWithoutToolsHasNone(t *testing.T) {
	t.Parallel()
	const text = "models: {m: {model: minimax/minimax-m2-her, profile: openrouter}}\n"
	cfg := load(t, text)
	m, err := cfg.Model("m")
	if err != nil {
		t.Fatal(err)
	}
	if got := cfg.SettingsFor(m).ToolUseMode; got != lathe.ModeDisabled || m.SupportsTools {
		t.Errorf("got mode %s, and tools: %v", got, m.SupportsTools)
	}
	if got := cfg.Settings().ToolUseMode; got != lathe.ModeRelaxed {
		t.Errorf("other models have the mode %s", got)
	}
	// An explicit setting wins.
	for _, cfg := range []*config.Config{
		load(t, text+"tool_calling: {tool_use_mode: enforced}\n"),
		load(t, text, config.Override{From: "--tool-use-mode", Key: "tool_calling.tool_use_mode", Value: "enforced"}),
	} {
		if m, err = cfg.Model("m"); err != nil {
			t.Fatal(err)
		}
		if got := cfg.SettingsFor(m).ToolUseMode; got != lathe.ModeEnforced {
			t.Errorf("got mode %s, want the one that was set", got)
		}
	}
}

func TestOwnValuesAreAddedToThoseOfPresets(t *testing.T) {
	t.Parallel()
	cfg := load(t, `
models:
  m:
    profile: deepseek
    base_url: http://localhost:1/v1
    presets: [gemini_openrouter_compat, content_tag_tool_call_fallback]
    transforms:
      message: [Assistant-Tool-Calls-Content-Null-If-Blank]
      tool_call: []
    request_overrides: {top_k: 40, provider: {order: [a, b]}, note: "1", off: false, half: .5, none: null}
`)
	m, err := cfg.Model("m")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(m.Transforms.Message, " "); got != "assistant_tool_calls_reasoning_content_empty_if_missing "+
		"assistant_tool_calls_signature_skip_validator_if_missing assistant_tool_calls_content_null_if_blank" {
		t.Errorf("messages: %s", got)
	}
	if len(m.Transforms.ToolCall) != 0 {
		t.Errorf("an empty list leaves %v", m.Transforms.ToolCall)
	}
	if !slices.Contains(m.Transforms.Response, "assistant_content_tool_call_tags_to_tool_calls") {
		t.Errorf("responses: %v", m.Transforms.Response)
	}
	if m.BaseURL.Reveal() != "http://localhost:1/v1" || m.ReasoningField != "reasoning_content" {
		t.Errorf("base_url %s, reasoning_field %s", m.BaseURL, m.ReasoningField)
	}
	got := ""
	for _, o := range app.Overrides(m) {
		got += o.Name + "=" + string(o.Value) + " "
	}
	if want := `top_k=40 provider={"order":["a","b"]} note="1" off=false half=0.5 `; got != want {
		t.Errorf("overrides: %s, want %s", got, want)
	}
	for key, want := range map[string]string{"transforms.message": "lathe.yaml:8", "transforms.response": "preset content_tag_tool_call_fallback",
		"reasoning_field": "profile deepseek", "base_url": "lathe.yaml:5", "dialect": "default"} {
		if got := cfg.Origin("models.m." + key); got != want {
			t.Errorf("%s comes from %s, want %s", key, got, want)
		}
	}
	// What is shown reads as the same.
	again := load(t, string(cfg.YAML()))
	if string(again.YAML()) != string(cfg.YAML()) {
		t.Errorf("shown:\n%s\nread and shown again:\n%s", cfg.YAML(), again.YAML())
	}
}

func TestModelOfAProfileIsWrapped(t *testing.T) {
	t.Parallel()
	cfg := load(t, "models: {a: {profile: mistral}, b: {}}")
	for name, wrapped := range map[string]bool{"a": true, "b": false} {
		m, err := cfg.Model(name)
		if err != nil {
			t.Fatal(err)
		}
		bare, err := app.NewProvider(m, nil)
		if err != nil {
			t.Fatal(err)
		}
		model, err := app.Decorate(cfg, m, bare)
		if err != nil {
			t.Fatal(err)
		}
		if (model != bare) != wrapped {
			t.Errorf("%s: wrapped is %v", name, model != bare)
		}
	}
}
