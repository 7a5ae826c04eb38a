package connect

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// rewrite writes a JSON file anew, with further values at the paths given.
func rewrite(t *testing.T, path string, more map[string]any) {
	t.Helper()
	text, err := ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n, err := parseJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	tree := treeJSON(n)
	for at, value := range more {
		if err := set(tree.(map[string]any), strings.Split(at, "/"), value); err != nil {
			t.Fatal(err)
		}
	}
	if text, err = json.MarshalIndent(tree, "", "    "); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Agents write their JSON files anew when they start, with members and defaults of their own, in another order and indentation. Undo
// then takes out what was written, also by writes of different models, and keeps the rest.
func TestUndoAfterTheAgentRewroteItsFile(t *testing.T) {
	for _, a := range Agents {
		for _, old := range []bool{false, true} {
			t.Run(a.Name+map[bool]string{true: "/existing"}[old], func(t *testing.T) {
				home := t.TempDir()
				files := a.Files(dirs(home), &Settings{URL: "http://127.0.0.1:8700", Model: "m.1/x=y", KeyEnv: "K"})
				second := a.Files(dirs(home), &Settings{URL: "http://127.0.0.1:8700", Model: "m2"})
				third := a.Files(dirs(home), &Settings{URL: "http://127.0.0.1:8700", Model: "[x=y]"}) // a key, not a selector
				if slices.ContainsFunc(files, func(f File) bool { return f.Format != JSON && f.Format != DotEnv }) {
					t.Skip("agents do not rewrite files of this format")
				}
				for _, f := range files {
					if old {
						if err := errors.Join(os.MkdirAll(filepath.Dir(f.Path), 0o700), os.WriteFile(f.Path, []byte(existing[f.Format]), 0o600)); err != nil {
							t.Fatal(err)
						}
					}
				}
				record := filepath.Join(home, "config", "connect", a.Name+".json")
				for _, files := range [][]File{files, second, third} {
					if _, err := Write(record, files); err != nil {
						t.Fatal(err)
					}
				}
				own := map[string]any{"$schema": "https://agent.example/config.json", "own/[id=x]/a": true}
				written := map[string]any{"$schema": own["$schema"], "own/[id=x]/a": true}
				if a.Name == "cline" {
					written["providers/openai-compatible/updatedAt"] = "2026-11-28T08:00:00.000Z"
				}
				for _, f := range files {
					if f.Format == JSON {
						rewrite(t, f.Path, written)
					}
				}
				changes, err := Undo(record)
				if err != nil {
					t.Fatal(err)
				}
				for i, f := range files {
					if len(changes[i].Left) > 0 || changes[i].Backup != "" {
						t.Errorf("left %v, backup %s", changes[i].Left, changes[i].Backup)
					}
					text, err := ReadFile(f.Path)
					if err != nil {
						t.Fatal(err)
					}
					if f.Format != JSON {
						if string(text) != existing[f.Format] && old || text != nil && !old {
							t.Errorf("%s is %q", f.Path, text)
						}
						continue
					}
					got, err := f.Format.Decode(text)
					if err != nil {
						t.Fatal(err)
					}
					want := map[string]any{}
					if old {
						if want, err = f.Format.Decode([]byte(existing[f.Format])); err != nil {
							t.Fatal(err)
						}
					}
					for at, value := range own {
						if err := set(want, strings.Split(at, "/"), value); err != nil {
							t.Fatal(err)
						}
					}
					if d := cmp.Diff(plain(want), plain(got)); d != "" {
						t.Errorf("-want +got\n%s", d)
					}
				}
				if left, err := os.ReadDir(filepath.Join(home, "config")); err != nil || len(left) > 0 {
					t.Errorf("left behind: %v, %v", left, err)
				}
			})
		}
	}
}

// Settings that have another value than they were given are left and named, and then the backup stays.
func TestUndoLeavesWhatItsUserChanged(t *testing.T) {
	home := t.TempDir()
	record := filepath.Join(home, "record")
	files := Find("opencode").Files(dirs(home), &Settings{URL: "http://127.0.0.1:8700", Model: "m"})
	path := files[0].Path
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(`{"theme":"dark","model":"a/b","small_model":"a/c"}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(record, files); err != nil {
		t.Fatal(err)
	}
	rewrite(t, path, map[string]any{"theme": "light", "model": "x/y", "small_model": Absent, "provider/lathe/name": "mine", "provider/other/npm": "o"})
	changes, err := Undo(record)
	want := []Change{{Path: path, Changed: true, Backup: path + backupSuffix, Left: []string{"provider.lathe.name", "model"}}}
	if d := cmp.Diff(want, changes); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got, err := JSON.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]any{"theme": "light", "model": "x/y", "provider": map[string]any{"lathe": map[string]any{"name": "mine"}, "other": map[string]any{"npm": "o"}}}, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if _, err := os.Stat(path + backupSuffix); err != nil {
		t.Error(err)
	}
}

// A removed setting is not restored into a value of another kind.
func TestUndoLeavesValuesOfAnotherKind(t *testing.T) {
	for env, want := range map[string]string{`["a","b"]`: `{"env":["a","b"]}`, `"a"`: `{"env":"a"}`, `[]`: `{"env":[]}`, `null`: `{"env":{"ANTHROPIC_API_KEY":"k"}}`} {
		home := t.TempDir()
		record := filepath.Join(home, "record")
		files := Find("claude-code").Files(dirs(home), &Settings{URL: "http://127.0.0.1:8700", Model: "m"})
		path := files[0].Path
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(`{"env":{"ANTHROPIC_API_KEY":"k"}}`), 0o600)); err != nil {
			t.Fatal(err)
		}
		if _, err := Write(record, files); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(`{"env":`+env+`}`), 0o600); err != nil {
			t.Fatal(err)
		}
		changes, err := Undo(record)
		if err != nil {
			t.Fatal(err)
		}
		if left := changes[0].Left; slices.Equal(left, []string{"env.ANTHROPIC_API_KEY"}) != (env != "null") {
			t.Errorf("env is %s: left %v", env, left)
		}
		text, err := os.ReadFile(path)
		if got := rawjson.CompactText(text); got != want || err != nil {
			t.Errorf("env is %s: %s, %v; want %s", env, got, err, want)
		}
	}
}
