package config_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/config"
)

// loadKeys loads a configuration that names a file of keys with that text.
func loadKeys(t *testing.T, text string) (*config.Config, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "keys.txt"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "lathe.yaml")
	if err := os.WriteFile(path, []byte("serve: {keys_file: keys.txt}\nkeys:\n  team: {tools: []}\n  own: {sha256: \""+strings.Repeat("c", 64)+"\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return config.Load(path, nil)
}

func TestKeysFile(t *testing.T) {
	t.Parallel()
	a, b := strings.Repeat("a", 64), strings.Repeat("B", 64)
	cfg, err := loadKeys(t, "# keys\n\nann "+a+" team\r\n  bob\t"+b+"  own\n")
	if err != nil {
		t.Fatal(err)
	}
	ann, bob := cfg.FileKeys["ann"], cfg.FileKeys["bob"]
	if len(cfg.FileKeys) != 2 || ann.Profile != "team" || bob.Profile != "own" || fmt.Sprintf("%x", ann.SHA256) != a || fmt.Sprintf("%X", bob.SHA256) != b {
		t.Errorf("%+v", cfg.FileKeys)
	}
	if shown := string(cfg.YAML()); strings.Contains(shown, "ann") || !strings.Contains(shown, "keys_file: keys.txt") {
		t.Errorf("the configuration shows the keys of the file, or not its name:\n%s", shown)
	}
}

// Each wrong line is named by its number, and no error has a hash.
func TestKeysFileRefusesWrongLines(t *testing.T) {
	t.Parallel()
	a, b := strings.Repeat("a", 64), strings.Repeat("b", 64)
	for text, want := range map[string]string{
		"ann " + a:                                        "keys.txt:1: want NAME SHA256 ENTRY",
		"ann " + a + " team x":                            "keys.txt:1: want NAME SHA256 ENTRY",
		"\nann " + a[1:] + " team":                        "keys.txt:2: the second word is no SHA-256",
		"ann " + a + "0 team":                             "keys.txt:1: the second word is no SHA-256",
		"ann " + a[1:] + "g team":                         "keys.txt:1: the second word is no SHA-256",
		"a/b " + a + " team":                              "keys.txt:1: the first word is no name",
		"ann " + a + " tame":                              `keys.txt:1: unknown key "tame": want a name of keys`,
		"team " + a + " team":                             `keys.txt:1: "team" is a name of keys, too`,
		"ann " + a + " team\nann " + b + " team":          `keys.txt:2: the name "ann" is there twice`,
		"ann " + a + " team\nbob " + a + " team":          "keys.txt:2: the key bob is the same as ann",
		"ann " + a + " team\n" + strings.Repeat("x", 600): "keys.txt:2: the line has more than 512 bytes",
	} {
		_, err := loadKeys(t, text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), a[:32]) {
			t.Errorf("%q: %v, want %q and no hash", text, err, want)
		}
	}
	key := "lathe-0123456789abcdef"
	for _, line := range []string{"ann %x " + key, key + " %x team"} {
		_, err := loadKeys(t, fmt.Sprintf(line, sha256.Sum256([]byte(key))))
		if err == nil || !strings.Contains(err.Error(), "is the key itself") || strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v, want an error without the key", line, err)
		}
	}
	for _, path := range []string{"missing.txt", "."} {
		file := filepath.Join(t.TempDir(), "lathe.yaml")
		if err := os.WriteFile(file, []byte("serve: {keys_file: "+path+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := config.Load(file, nil); err == nil || !strings.Contains(err.Error(), "serve.keys_file: ") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestKeysFileIsBounded(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	for i := range config.MaxFileKeys + 1 {
		fmt.Fprintf(&many, "k%d %x team\n", i, sha256.Sum256(fmt.Append(nil, i)))
	}
	if _, err := loadKeys(t, many.String()); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("keys.txt:%d: the file has more than %d keys", config.MaxFileKeys+1, config.MaxFileKeys)) {
		t.Errorf("%v", err)
	}
	if _, err := loadKeys(t, strings.Repeat("#\n", 33<<20)); err == nil || !strings.Contains(err.Error(), "is larger than 64") {
		t.Errorf("%v", err)
	}
}

// The last key of the file can be removed. Requests still need a key.
func TestKeysFileWithoutKeys(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "# nothing\n"} {
		cfg, err := loadKeys(t, text)
		if err != nil {
			t.Fatal(err)
		}
		warned := slices.ContainsFunc(cfg.Warnings(), func(p config.Problem) bool { return p.Key == "serve.keys_file" })
		if cfg.FileKeys == nil || len(cfg.FileKeys) > 0 || !cfg.RequiresKey() || !warned {
			t.Errorf("%q: %v %v %v", text, cfg.FileKeys, cfg.RequiresKey(), cfg.Warnings())
		}
	}
	if none := config.Default(); none.RequiresKey() {
		t.Error("a configuration without keys requires one")
	}
}

// With a file of keys, lists may name keys that were removed from it. Without a file such a name is an error.
func TestListsMayNameRemovedKeys(t *testing.T) {
	t.Parallel()
	const lists = `
keys:
  boss: {sha256: "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc", approve: [own, ann, boss, gone, left]}
workers: {pool: {token: "${TOKEN}", tools: ["*"], keys: [ann, gone]}}
`
	load := func(serve string) (*config.Config, error) {
		dir := t.TempDir()
		for name, text := range map[string]string{"keys.txt": "ann " + strings.Repeat("a", 64) + " boss\n", "lathe.yaml": serve + lists} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return config.Load(filepath.Join(dir, "lathe.yaml"), &config.LoadOptions{Environ: []string{"TOKEN=0123456789abcdef"}})
	}
	cfg, err := load("serve: {keys_file: keys.txt}")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, p := range cfg.Warnings() {
		got[p.Key] = p.Message
	}
	const ignored = "ignored, since no key has the name: "
	if !strings.HasPrefix(got["keys.boss.approve"], ignored+`"gone", "left";`) || !strings.HasPrefix(got["workers.pool.keys"], ignored+`"gone";`) || len(got) != 2 {
		t.Errorf("warnings: %q", got)
	}
	if _, err := load(""); err == nil || !strings.Contains(err.Error(), "workers.pool.keys: unknown key") {
		t.Errorf("without a file: %v", err)
	}
}

func TestWarningsOfRemovedKeysAreBounded(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range 30 {
		names = append(names, fmt.Sprint("gone", i))
	}
	cfg := config.Default()
	cfg.FileKeys = map[string]config.FileKey{}
	cfg.Workers = map[string]*config.Workers{"pool": {Keys: names}}
	all := fmt.Sprint(cfg.Warnings())
	if !strings.Contains(all, `"gone19" and 10 more;`) || strings.Contains(all, "gone20") {
		t.Errorf("%s", all)
	}
}

func TestKeysFileWarnsOfEntriesWithoutKeys(t *testing.T) {
	t.Parallel()
	for profile, want := range map[string]string{"team": "", "own": "keys.team"} {
		cfg, err := loadKeys(t, "ann "+strings.Repeat("a", 64)+" "+profile)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, p := range cfg.Warnings() {
			if strings.Contains(p.Message, "serve.keys_file") {
				got += p.Key
			}
		}
		if got != want {
			t.Errorf("%s: a warning about %q, want %q", profile, got, want)
		}
	}
}
