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

func dirs(home string) *Dirs { return &Dirs{Home: home, Getenv: func(string) string { return "" }} }

// existing is what stands in the file of each format before.
var existing = map[*Format]string{
	JSON:   "{\n\t\"theme\": \"dark <b>\",\n\t\"env\": {\"EDITOR\": \"vi\", \"ANTHROPIC_API_KEY\": \"k\"},\n\t\"limit\": 12345678901234567890\n}\n",
	YAML:   "# mine\nname: me\nversion: 1.0.0\nschema: v1\nmodels:\n  - name: other # kept\n    provider: ollama\n    model: tiny\n",
	TOML:   "# mine\nmodel = \"gpt\" # the old one\napproval_policy = \"never\"\nnotes = '''\nmodel = \"no\"\n'''\n\n[mcp_servers.files]\ncommand = \"files\"\nmodel = \"x\"\n",
	DotEnv: "# mine\nexport OTHER=\"1\"\nGEMINI_API_KEY=k\n",
}

// The settings of each agent are added to a new file and to one with other settings, twice with the same result; every
// other setting stays, and Undo restores each byte.
func TestSettingsAreAddedAndTakenBack(t *testing.T) {
	for _, a := range Agents {
		for _, key := range []string{"", "LATHE_API_KEY"} {
			for _, old := range []bool{false, true} {
				t.Run(a.Name+"/"+key+map[bool]string{true: "/existing"}[old], func(t *testing.T) {
					testSettings(t, a, "m.1/x=y", key, old)
				})
				t.Run(a.Name+"/"+key+map[bool]string{true: "/existing"}[old]+"/selector", func(t *testing.T) {
					testSettings(t, a, "[x=y]", key, old) // a path with this name must not select an object in a list
				})
			}
		}
	}
}

func testSettings(t *testing.T, a *Agent, model, key string, old bool) {
	home := t.TempDir()
	s := &Settings{URL: "http://127.0.0.1:8700", Model: model, KeyEnv: key}
	files, before := a.Files(dirs(home), s), map[string]string{}
	for _, f := range files {
		if !old {
			continue
		}
		before[f.Path] = existing[f.Format]
		if err := errors.Join(os.MkdirAll(filepath.Dir(f.Path), 0o700), os.WriteFile(f.Path, []byte(existing[f.Format]), 0o640)); err != nil {
			t.Fatal(err)
		}
	}
	record := filepath.Join(home, "record", a.Name+".json")
	var written []string
	for range 2 {
		if _, err := Write(record, files); err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f.Path)
			if err != nil {
				t.Fatal(err)
			}
			written = append(written, string(text))
			f.check(t, before[f.Path], text)
		}
	}
	given := "" // the variable is in neither of these files
	if a.Name == "gemini-cli" || a.Name == "cline" {
		given = key
	}
	read, differences, err := Read(a, dirs(home), given)
	if err != nil || len(differences) > 0 || *read != *s {
		t.Errorf("read %+v, %v, %v; want %+v", read, differences, err, s)
	}
	if d := cmp.Diff(written[:len(files)], written[len(files):]); d != "" {
		t.Errorf("the second time:\n%s", d)
	}
	if _, err := Undo(record); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := ReadFile(f.Path)
		if err != nil || string(text) != before[f.Path] || (text == nil) == old {
			t.Errorf("after Undo %s is %q, %v; want %q", f.Path, text, err, before[f.Path])
		}
		left, _ := filepath.Glob(f.Path + ".*")
		if len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
	if _, err := Undo(record); !errors.Is(err, ErrNothingWritten) {
		t.Errorf("the second Undo: %v", err)
	}
}

// check reports entries that the text lacks, and settings of before that it lost.
func (f *File) check(t *testing.T, before string, text []byte) {
	t.Helper()
	got, err := f.Format.Decode(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	want, err := f.Format.Decode([]byte(before))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range f.Entries {
		v, ok := Lookup(got, e.Path)
		if had, is := Lookup(want, e.Path); is && e.Holds == "default" {
			e.Value = had
		}
		if ok != (e.Value != Absent) || ok && !equal(v, e.Value) {
			t.Errorf("%v is %v, want %v\n%s", e.Path, v, e.Value, text)
		}
		if err := set(want, e.Path, e.Value); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(plain(want), plain(got)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	for line := range strings.Lines(before) {
		if _, comment, ok := strings.Cut(line, "#"); ok && f.Format != TOML && !strings.Contains(string(text), strings.TrimSpace(comment)) {
			t.Errorf("the comment %q is lost:\n%s", comment, text)
		}
	}
}

// A file that does not parse, or that cannot take the settings without losing others, is not written, and no other file of
// the agent is.
func TestUnreadableSettingsAreLeftAlone(t *testing.T) {
	for _, tt := range []struct {
		format *Format
		text   string
		want   error
	}{
		{JSON, "{\n  // a comment\n}", ErrUnreadable},
		{JSON, `{"a": 1, "a": 2}`, ErrUnreadable},
		{JSON, `[]`, ErrUnreadable},
		{JSON, `{} {}`, ErrUnreadable},
		{JSON, `{"providers": "none"}`, ErrNotEdited},
		{YAML, "a: [", ErrUnreadable},
		{YAML, "models: {}", ErrNotEdited},
		{YAML, "a: 1\n---\nb: 2\n", ErrUnreadable},
		{YAML, "- a", ErrUnreadable},
		{TOML, "model = ", ErrUnreadable},
		{TOML, "model_providers = {lathe = {name = \"x\"}}\n", ErrNotEdited},
		{TOML, "model_providers = 1\n", ErrNotEdited},
		{DotEnv, "what is this", ErrUnreadable},
	} {
		for _, a := range Agents {
			home := t.TempDir()
			files := a.Files(dirs(home), &Settings{URL: "http://127.0.0.1:8700", Model: "m"})
			last := files[len(files)-1]
			if tt.want == ErrNotEdited {
				last = files[0]
			}
			if last.Format != tt.format || tt.text == `{"providers": "none"}` && a.Name != "pi" && a.Name != "cline" {
				continue
			}
			first := ""
			if last.Path != files[0].Path {
				first = existing[files[0].Format]
			}
			for path, text := range map[string]string{files[0].Path: first, last.Path: tt.text} {
				if text == "" {
					continue
				}
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := Write(filepath.Join(home, "record"), files); !errors.Is(err, tt.want) {
				t.Errorf("%s, %q: %v, want %v", a.Name, tt.text, err, tt.want)
			}
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(files[0].Path), "*"+backupSuffix)); len(left) > 0 {
				t.Errorf("%s, %q: a backup is left: %q", a.Name, tt.text, left)
			}
			for _, f := range files {
				text, _ := ReadFile(f.Path)
				if want := map[string]string{files[0].Path: first, last.Path: tt.text}[f.Path]; string(text) != want {
					t.Errorf("%s: %s is %q, want %q", a.Name, f.Path, text, want)
				}
			}
		}
	}
}

// Undo does not touch a file of a format without three-way edits that was changed after it was written, or between two writes.
func TestUndoKeepsLaterEdits(t *testing.T) {
	for _, again := range []bool{false, true} {
		home := t.TempDir()
		record := filepath.Join(home, "record")
		files := Find("codex").Files(dirs(home), &Settings{URL: "http://127.0.0.1:8700", Model: "m"})
		path := files[0].Path
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("a = 1\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
		if _, err := Write(record, files); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("a = 2\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if again {
			if _, err := Write(record, files); err != nil {
				t.Fatal(err)
			}
		}
		text, _ := os.ReadFile(path)
		if _, err := Undo(record); err == nil || !strings.Contains(err.Error(), path+backupSuffix) {
			t.Errorf("again %t: Undo says %v, want the backup named", again, err)
		}
		if now, _ := os.ReadFile(path); string(now) != string(text) {
			t.Errorf("again %t: Undo changed the file", again)
		}
	}
}

// A link to a file stays a link.
func TestLinksStayLinks(t *testing.T) {
	home := t.TempDir()
	files := Find("claude-code").Files(dirs(home), &Settings{URL: "http://127.0.0.1:8700", Model: "m"})
	target := filepath.Join(home, "dotfiles.json")
	err := errors.Join(os.WriteFile(target, []byte("{}"), 0o600), os.MkdirAll(filepath.Dir(files[0].Path), 0o700), os.Symlink(target, files[0].Path))
	if err != nil {
		t.Skip(err)
	}
	if _, err := Write(filepath.Join(home, "record"), files); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(files[0].Path)
	text, _ := os.ReadFile(target)
	if err != nil || info.Mode().IsRegular() || !strings.Contains(string(text), "8700") {
		t.Errorf("the link is %v, and its target %q", info.Mode(), text)
	}
}

// A file that cannot be replaced and restored is refused by name, and nothing is written.
func TestFilesThatCannotBeReplacedAreRefused(t *testing.T) {
	for want, place := range map[string]func(path string) error{
		"is read-only":                            func(path string) error { return os.WriteFile(path, []byte("{}"), 0o400) },
		"is not a regular file":                   func(path string) error { return os.Mkdir(path, 0o700) },
		"is a link to a file that does not exist": func(path string) error { return os.Symlink(path+".gone", path) },
	} {
		home := t.TempDir()
		files := Find("pi").Files(dirs(home), &Settings{URL: "http://127.0.0.1:8700", Model: "m"})
		last := files[len(files)-1].Path
		if err := os.MkdirAll(filepath.Dir(last), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := place(last); err != nil {
			t.Skip(err)
		}
		if _, err := Write(filepath.Join(home, "record"), files); !errors.Is(err, ErrNotReplaced) || !strings.Contains(err.Error(), last+" "+want) {
			t.Errorf("%v, want one with %q", err, want)
		}
		left, err := os.ReadDir(filepath.Dir(last))
		if err != nil || len(left) != 1 {
			t.Errorf("%s: %v, %v: something was written", want, left, err)
		}
		if _, err := os.Lstat(filepath.Join(home, "record")); err == nil {
			t.Errorf("%s: there is a record", want)
		}
	}
}

// An agent that sends a model only the content that its settings name sends images.
func TestAgentsSendImages(t *testing.T) {
	home := t.TempDir()
	files := Find("pi").Files(dirs(home), &Settings{URL: "http://127.0.0.1:8700", Model: "m"})
	if _, err := Write(filepath.Join(home, "record"), files); err != nil {
		t.Fatal(err)
	}
	text, err := ReadFile(files[0].Path)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Providers map[string]struct {
			Models []struct {
				ID    string
				Input []string
			}
		}
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	models := got.Providers[provider].Models
	if len(models) != 1 || models[0].ID != "m" || !slices.Equal(models[0].Input, []string{"text", "image"}) {
		t.Errorf("the models are %+v in\n%s", models, text)
	}
}

// Files of JSON have at most 10,000 levels.
func TestDepthOfJSONIsLimited(t *testing.T) {
	for levels, ok := range map[int]bool{10_000: true, 10_001: false} {
		text := `{"a":` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) + "}"
		if _, err := JSON.Decode([]byte(text)); (err == nil) != ok || !ok && !errors.Is(err, ErrUnreadable) {
			t.Errorf("%d levels: %v", levels, err)
		}
	}
}

// A number in a list of JSON objects is not the string with the same text.
func TestSelectorsMatchStrings(t *testing.T) {
	entries := []Entry{{Path: []string{"modelProviders", "openai", "[id=4]", "name"}, Value: "x"}}
	got, err := JSON.Merge([]byte(`{"modelProviders":{"openai":[{"id":4}]}}`), entries)
	want := `{"modelProviders":{"openai":[{"id":4},{"id":"4","name":"x"}]}}`
	if text := rawjson.CompactText(got); text != want || err != nil {
		t.Errorf("%s, %v; want %s", text, err, want)
	}
}

// Whatever stands in a file: it is refused, or the settings are added and nothing else changes. Merge compares that itself;
// this looks for texts with which it panics or gives a result that it does not accept the second time.
func FuzzMerge(f *testing.F) {
	for format, text := range existing {
		f.Add(format.Name, text)
	}
	f.Fuzz(func(t *testing.T, name, text string) {
		for _, a := range Agents {
			for _, file := range a.Files(dirs("/home"), &Settings{URL: "http://127.0.0.1:8700", Model: "m", KeyEnv: "K"}) {
				if file.Format.Name != name {
					continue
				}
				merged, err := file.Format.Merge([]byte(text), file.Entries)
				if err != nil {
					continue
				}
				again, err := file.Format.Merge(merged, file.Entries)
				if err != nil || string(again) != string(merged) {
					t.Errorf("%s: %v\n%q\n%q", a.Name, err, merged, again)
				}
			}
		}
	})
}
