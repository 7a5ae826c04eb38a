package config

import (
	"reflect"
	"strings"
	"testing"
)

// Each setting of a run is one flag, and what the flag says reaches its key.
func TestRunSettings(t *testing.T) {
	t.Parallel()
	flags := map[string]bool{}
	for _, s := range RunSettings() {
		if flags[s.Flag] {
			t.Errorf("--%s stands twice", s.Flag)
		}
		flags[s.Flag] = true
		if strings.ContainsAny(s.Flag, "._") || s.Doc == "" || s.Default == "" {
			t.Errorf("%+v", s)
		}
		c, err := Load("", &LoadOptions{Overrides: []Override{{"--" + s.Flag, s.Key, s.Default}}})
		if err != nil {
			t.Errorf("--%s %s: %v", s.Flag, s.Default, err)
		} else if got := c.Origin(s.Key); got != "--"+s.Flag {
			t.Errorf("%s comes from %s, want --%s", s.Key, got, s.Flag)
		}
	}
	if len(flags) < 30 || flags["enabled"] || !flags["max-iterations"] || !flags["tool-use-mode"] {
		t.Errorf("got flags %v", flags)
	}
}

// kindOf completes the kind of one setting, also while another goroutine loads a file.
func TestSettingsShareNoKind(t *testing.T) {
	t.Parallel()
	owners := map[*kind]string{}
	for _, in := range []reflect.Type{reflect.TypeFor[Config](), reflect.TypeFor[Model]()} {
		for _, s := range settingsOf(in) {
			if other := owners[s.kind]; other != "" {
				t.Errorf("%s and %s share a kind", s.path, other)
			}
			owners[s.kind] = s.path
		}
	}
	if len(owners) < 100 {
		t.Errorf("got %d settings", len(owners))
	}
}

func TestAboutNamesTheSettingOfAKey(t *testing.T) {
	for key, want := range map[string][2]string{
		"serve.addr":                    {"Address to listen on.", "127.0.0.1:8700"},
		"policy.tools.calculator":       {"", ""},
		"models.a.b/c:1.5.base_url":     {"", ""},
		"tools.mcp.notes.start_timeout": {"", "30s"},
		"no.such.key":                   {"", ""},
	} {
		doc, def := About(key)
		if (doc == "") != (key == "no.such.key") || !strings.HasPrefix(doc, want[0]) || def != want[1] {
			t.Errorf("%s: %q, default %q", key, doc, def)
		}
	}
	model, _ := About("models.a.b/c:1.5.base_url")
	if of, _ := About("models.local.base_url"); of != model {
		t.Errorf("the documentation depends on the name of the entry: %q, %q", of, model)
	}
}
