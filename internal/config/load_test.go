package config

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/lathe-run/lathe"
)

var update = flag.Bool("update", false, "write golden files and docs/config.md again")

// The files of a case: lathe.yaml, env (NAME=value lines), flags (FROM KEY=VALUE lines), and what
// references name. What is wanted is in problems, exactly, or in values: each key that was set,
// with where it was.
func TestLoad(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			name, got := loadCase(t, ar)
			for i, f := range ar.Files {
				if f.Name != "problems" && f.Name != "values" {
					continue
				}
				if *update {
					ar.Files[i] = txtar.File{Name: name, Data: []byte(got)}
					if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
						t.Fatal(err)
					}
				} else if diff := cmp.Diff(string(f.Data), got); f.Name != name || diff != "" {
					t.Errorf("want %s, got %s (-want +got):\n%s", f.Name, name, diff)
				}
				return
			}
			t.Fatal("the case wants nothing")
		})
	}
}

func loadCase(t *testing.T, ar *txtar.Archive) (name, got string) {
	t.Helper()
	dir := t.TempDir()
	opts := LoadOptions{Tools: []string{"calculate", "clock", "echo"}, Dialects: []string{"auto", "harmony", "hermes", "native", "tags"}}
	path := ""
	for _, f := range ar.Files {
		switch f.Name {
		case "env":
			opts.Environ = strings.Split(strings.TrimSpace(string(f.Data)), "\n")
		case "flags":
			for line := range strings.Lines(string(f.Data)) {
				from, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
				key, value, _ := strings.Cut(rest, "=")
				opts.Overrides = append(opts.Overrides, Override{from, key, value})
			}
		default:
			if err := os.WriteFile(filepath.Join(dir, f.Name), f.Data, 0o600); err != nil {
				t.Fatal(err)
			}
			if f.Name == "lathe.yaml" {
				path = filepath.Join(dir, f.Name)
			}
		}
	}
	c, err := Load(path, &opts)
	if err != nil {
		if lathe.CodeOf(err) != lathe.CodeInvalidConfig || ProblemsOf(err) == nil {
			t.Fatalf("got %v with code %s, want problems with code %s", err, lathe.CodeOf(err), lathe.CodeInvalidConfig)
		}
		return "problems", ProblemsOf(err).Error() + "\n"
	}
	return "values", describe(c)
}

// describe lists the keys that were set.
func describe(c *Config) string {
	var lines []string
	walk("", c.rows(), func(path string, r *row) {
		o := c.Origin(path)
		if o == "default" {
			return
		}
		line := fmt.Sprintf("%s = %s (%s)\n", path, textOf(r.kind, r.v), o)
		if r.kind.shape == table {
			for _, name := range namesIn(r.v) {
				line += fmt.Sprintf("\t%s = %s\n", name, textOf(r.kind.values, r.v.MapIndex(reflect.ValueOf(name))))
			}
		}
		lines = append(lines, line)
	})
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// textOf returns a value as one would write it in a variable; "" for a map.
func textOf(k *kind, v reflect.Value) string {
	switch k.shape {
	case list:
		return strings.Join(k.items(v), ",")
	case table, group:
		return ""
	default:
		return k.text(v)
	}
}

func TestLoadReadsNoFileAndEmptyFiles(t *testing.T) {
	t.Parallel()
	want := string(Default().YAML())
	for _, content := range []string{"", "\n", "# nothing\n", "---\n", "{}\n", "models:\ntools:\npolicy:\n  effects:\n"} {
		path := filepath.Join(t.TempDir(), "lathe.yaml")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, p := range []string{path, ""} {
			c, err := Load(p, nil)
			if err != nil {
				t.Errorf("%q: %v", content, err)
			} else if got := string(c.YAML()); got != want {
				t.Errorf("%q is not the default:\n%s", content, got)
			}
		}
	}
}

func TestLoadReadsOnlyWhatIsThereAndSmall(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := Load(filepath.Join(dir, "absent.yaml"), nil)
	if lathe.CodeOf(err) != lathe.CodeInvalidConfig || !strings.Contains(err.Error(), "absent.yaml") {
		t.Errorf("absent file: got %v", err)
	}
	for _, n := range []int{maxConfigBytes, maxConfigBytes + 1} {
		path := filepath.Join(dir, "lathe.yaml")
		if err := os.WriteFile(path, []byte("#"+strings.Repeat("x", n-1)), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(path, nil); (err != nil) != (n > maxConfigBytes) {
			t.Errorf("%d bytes: got %v", n, err)
		}
	}
	for _, n := range []int{maxSecretBytes, maxSecretBytes + 1} {
		if err := os.WriteFile(filepath.Join(dir, "key"), []byte(strings.Repeat("x", n)), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Load("", &LoadOptions{Overrides: []Override{{"--key", "models.m.key", "${file:" + filepath.Join(dir, "key") + "}"}}})
		if (err != nil) != (n > maxSecretBytes) {
			t.Errorf("a key of %d bytes: got %v", n, err)
		}
	}
}

func TestLoadBoundsItsErrors(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 250 {
		fmt.Fprintf(&b, "wrong%d: 1\n", i)
	}
	path := filepath.Join(t.TempDir(), "lathe.yaml")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Load(path, nil)
	ps := ProblemsOf(err)
	if len(ps) != maxProblems+1 || ps[maxProblems].String() != "and 150 more" {
		t.Errorf("got %d problems, the last %v", len(ps), ps[len(ps)-1])
	}
}

func TestModelLookUp(t *testing.T) {
	t.Parallel()
	several := Default()
	several.Models = map[string]*Model{"fast": {Name: "fast"}, "strong": {Name: "strong"}}
	one := Default()
	one.Models = map[string]*Model{"only": {Name: "only"}}
	chosen := Default()
	chosen.Models, chosen.DefaultModel = several.Models, "strong"
	tests := []struct {
		c          *Config
		name, want string
		err        string
	}{
		{Default(), "", "sim/demo", ""},
		{Default(), "sim/slow", "sim/slow", ""},
		{Default(), "gpt", "", `config: invalid_config: unknown model "gpt": no models are configured`},
		{one, "", "only", ""},
		{several, "", "", "config: invalid_config: default_model is not set, and there are several models (fast, strong)"},
		{several, "fats", "", `config: invalid_config: unknown model "fats", did you mean "fast"?`},
		{several, "zzzzzzzz", "", `config: invalid_config: unknown model "zzzzzzzz"; configured: fast, strong`},
		{chosen, "", "strong", ""},
		{chosen, "fast", "fast", ""},
	}
	for _, tt := range tests {
		m, err := tt.c.Model(tt.name)
		if err != nil {
			if err.Error() != tt.err {
				t.Errorf("%q: got %v, want %s", tt.name, err, tt.err)
			}
		} else if m.Name != tt.want || tt.err != "" {
			t.Errorf("%q: got %s, want %s%s", tt.name, m.Name, tt.want, tt.err)
		}
	}
	m, _ := Default().Model("sim/tags")
	if m.Provider != "sim" || m.Label != "" || m.Model != "sim/tags" || !m.SupportsTools || m.Dialect != "native" {
		t.Errorf("a simulated model: got %+v", m)
	}
}

// Not parallel: it changes the working directory. A path in the file starts at the file, one in a
// flag or a variable where the program does.
func TestRelativePathsOfReferences(t *testing.T) {
	beside, here := t.TempDir(), t.TempDir()
	for dir, key := range map[string]string{beside: "beside", here: "here"} {
		if err := os.WriteFile(filepath.Join(dir, "key"), []byte(key), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(beside, "lathe.yaml")
	if err := os.WriteFile(path, []byte("models: {file: {key: '${file:key}'}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(here)
	c, err := Load(path, &LoadOptions{Environ: []string{"LATHE_TELEMETRY_ARGS_PREVIEW_KEY=${file:key}"},
		Overrides: []Override{{"--key-file", "models.flag.key", "${file:key}"}}})
	if err != nil {
		t.Fatal(err)
	}
	for what, got := range map[string]string{"beside": c.Models["file"].Key.Reveal(), "here": c.Models["flag"].Key.Reveal()} {
		if got != what {
			t.Errorf("got the key %q, want the one %s", got, what)
		}
	}
	if got := c.Telemetry.ArgsPreviewKey.Reveal(); got != "here" {
		t.Errorf("a variable's key: got %q, want the one here", got)
	}
}
