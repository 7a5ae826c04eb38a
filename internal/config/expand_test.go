package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/lathe-run/lathe"
)

func loadText(t *testing.T, text string, opts *LoadOptions) (*Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lathe.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(path, opts)
}

// A mapping of anything becomes JSON: members in their order, numbers as they are written, words
// that YAML takes for something else as they are meant.
func TestMappingsOfAnything(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"{}":           `{}`,
		"{b: 1, a: 2}": `{"b":1,"a":2}`,
		"{n: 1.50, e: 1e3, big: 12345678901234567890, hex: 0x10, neg: -0.0}": `{"n":1.50,"e":1e3,"big":12345678901234567890,"hex":16,"neg":-0.0}`,
		"{t: true, f: False, no: no, z: null, s: '1', tilde: ~}":             `{"t":true,"f":false,"no":"no","z":null,"s":"1","tilde":null}`,
		"{l: [1, [x], {y: z}], d: 2001-01-01}":                               `{"l":[1,["x"],{"y":"z"}],"d":"2001-01-01"}`,
		`{q: "<\"\u00e9\n>"}`:                                                `{"q":"<\"é\n>"}`,
	} {
		c, err := loadText(t, "models: {m: {request_overrides: "+in+"}}", nil)
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if got := string(c.Models["m"].RequestOverrides); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
		again, err := loadText(t, string(c.YAML()), nil)
		if err != nil {
			t.Errorf("%s is shown as what cannot be read: %v\n%s", in, err, c.YAML())
		} else if got := string(again.Models["m"].RequestOverrides); got != want && in != "{}" {
			t.Errorf("%s: shown and read again it is %s", in, got)
		}
	}
	for in, want := range map[string]string{
		"x":                 "wants a mapping",
		"[1]":               "wants one value, not a list",
		"{a: .nan}":         "is not a value that JSON has",
		"{a: 1,\n b: .nan}": ":2: models.m.request_overrides: \".nan\"",
		"{a: 1, a: 2}":      "",
		"{? [x] : 1}":       "a key is a plain word",
		"{a: &x 1, b: *x}":  "anchors and aliases are not read here",
		"{a: '${HOME}'}":    "references ${…} are read in keys, headers and addresses only",
		"{a: " + strings.Repeat("[", 40) + strings.Repeat("]", 40) + "}": "is nested too deeply",
	} {
		_, err := loadText(t, "models: {m: {request_overrides: "+in+"}}", nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", in, err, want)
		}
	}
}

func TestExpand(t *testing.T) {
	t.Parallel()
	const text = `
models:
  plain: {}
  m:
    profile: p
    label: own
    transforms: {message: [a]}
  off: {profile: p, dialect: tags}
tool_calling: {on_limit: stop}
`
	asked := map[string]bool{}
	opts := &LoadOptions{Overrides: []Override{{"--x", "models.m.transforms.tool", "t"}}, Expand: func(m *Model, isSet func(string) bool) Expansion {
		asked[m.Name] = true
		if m.Name == "m" && (!isSet("label") || !isSet("transforms.message") || !isSet("transforms.tool") || isSet("dialect")) {
			t.Error("isSet does not say what stands in the file")
		}
		if m.Profile == "" {
			return Expansion{}
		}
		return Expansion{Set: []Expanded{
			{Key: "label", Value: "theirs", From: "profile p"}, {Key: "dialect", Value: "hermes", From: "profile p"},
			{Key: "transforms.message", Value: "b,a", From: "profile p", Whole: true},
			{Key: "tool_use_mode", Value: "disabled", From: "profile p", Run: true}, {Key: "on_limit", Value: "finish", From: "profile p", Run: true},
		}}
	}}
	c, err := loadText(t, text, opts)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]bool{"m": true, "off": true, "plain": true}, asked); diff != "" {
		t.Errorf("asked for (-want +got):\n%s", diff)
	}
	m := c.Models["m"]
	if m.Label != "own" || m.Dialect != "hermes" || strings.Join(m.Transforms.Message, ",") != "b,a" || c.Models["off"].Dialect != "tags" {
		t.Errorf("got %+v and dialect %s", m, c.Models["off"].Dialect)
	}
	for key, want := range map[string]string{"label": "lathe.yaml:6", "dialect": "profile p", "transforms.message": "lathe.yaml:7", "transforms.tool": "--x"} {
		if got := c.Origin("models.m." + key); got != want {
			t.Errorf("%s comes from %s, want %s", key, got, want)
		}
	}
	got := c.SettingsFor(m)
	if got.ToolUseMode != lathe.ModeDisabled || got.OnLimit != lathe.OnLimitStop {
		t.Errorf("with the model: %+v", got)
	}
	if c.Settings().ToolUseMode != lathe.ModeRelaxed || c.SettingsFor(c.Models["plain"]) != c.Settings() {
		t.Error("what one model's profile says reaches the others")
	}
}

func TestExpandProblems(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		out  Expansion
		want string
	}{
		{Expansion{Problems: []Problem{{Key: "profile", Message: "no such"}}}, "lathe.yaml:1: models.m.profile: no such"},
		{Expansion{Set: []Expanded{{Key: "nothing", From: "preset x"}}}, "models.m.nothing: preset x sets a key that is not there"},
		{Expansion{Set: []Expanded{{Key: "include_usage", Value: "maybe", From: "preset x"}}}, "models.m.include_usage: preset x: unknown value"},
		{Expansion{Set: []Expanded{{Key: "tool_use_mode", Value: "maybe", From: "preset x", Run: true}}}, "preset x: unknown value"},
		{Expansion{Set: []Expanded{{Key: "base_url", Value: "ftp:x", From: "preset x"}}}, "models.m.base_url: preset x: "},
	} {
		_, err := loadText(t, "models: {m: {profile: p}}", &LoadOptions{Expand: func(*Model, func(string) bool) Expansion { return tt.out }})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %q", err, tt.want)
		}
	}
}
