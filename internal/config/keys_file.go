package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lathe-run/lathe/internal/regular"
	"github.com/lathe-run/lathe/internal/text"
)

// The limits of the file of `serve.keys_file`.
const (
	MaxFileKeys      = 200_000 // keys
	maxKeysFileBytes = 64 << 20
	maxKeysLine      = 512 // bytes
)

// A FileKey is a key in the file that serve.keys_file names.
type FileKey struct {
	SHA256 [sha256.Size]byte `key:"-"`
	// Profile is the entry of [Config].Keys whose rights, limits, group and budget the key has.
	Profile string `key:"-"`
}

// readKeysFile reads the keys of `serve.keys_file` into FileKeys. It reports each invalid line as a problem of that file.
func (l *loader) readKeysFile() {
	const key = "serve.keys_file"
	path := absolute(l.cfg.dir, l.cfg.Serve.KeysFile)
	if path == "" {
		return
	}
	b, err := regular.Read(path, maxKeysFileBytes)
	if err == nil && len(b) > maxKeysFileBytes {
		err = fmt.Errorf("%s is larger than %s", path, formatSize(maxKeysFileBytes))
	}
	if err != nil {
		l.at(key, err.Error())
		return
	}
	l.cfg.FileKeys = map[string]FileKey{}
	profiles := strings.Join(slices.Sorted(maps.Keys(l.cfg.Keys)), ", ")
	byHash := map[[sha256.Size]byte]string{}
	note := func(line int, message string) {
		if len(l.problems) <= maxProblems {
			l.problems = append(l.problems, Problem{File: filepath.Base(path), Line: line, Message: message})
		}
	}
	line := 0
	for content := range bytes.Lines(b) {
		line++
		if len(content) > maxKeysLine+1 {
			note(line, fmt.Sprintf("the line has more than %d bytes", maxKeysLine))
			return
		}
		text := strings.TrimSpace(string(content))
		if text == "" || text[0] == '#' {
			continue
		}
		if len(l.cfg.FileKeys) == MaxFileKeys {
			note(line, fmt.Sprintf("the file has more than %d keys", MaxFileKeys))
			return
		}
		if err := addFileKey(l.cfg, text, byHash, profiles); err != nil {
			note(line, err.Error())
		}
	}
}

// addFileKey adds the key of a line to FileKeys, and its name to byHash. profiles lists the names of Keys for errors.
func addFileKey(cfg *Config, line string, byHash map[[sha256.Size]byte]string, profiles string) error {
	name, k, err := parseFileKey(line)
	if err != nil {
		return err
	}
	other, hashTaken := byHash[k.SHA256]
	_, nameTaken := cfg.FileKeys[name]
	switch {
	case hashTaken:
		return fmt.Errorf("the key %s is the same as %s", name, other)
	case cfg.Keys[name] != nil:
		return fmt.Errorf("%s is a name of keys, too", quote(name))
	case cfg.Keys[k.Profile] == nil:
		return fmt.Errorf("unknown key %s: want a name of keys, whose rights and limits the key gets (%s)", quote(k.Profile), profiles)
	case nameTaken:
		return fmt.Errorf("the name %s is there twice", quote(name))
	}
	cfg.FileKeys[name], byHash[k.SHA256] = k, name
	return nil
}

// parseFileKey parses a line NAME SHA256 ENTRY. Its errors contain no part of the hash or the key.
func parseFileKey(line string) (name string, k FileKey, err error) {
	parts := strings.Fields(line)
	if len(parts) != 3 {
		return "", k, errors.New("want NAME SHA256 ENTRY: a name, the SHA-256 of the key in 64 hex digits, and a name of keys whose rights and limits the key gets")
	}
	if err := isRuleName(parts[0]); err != nil {
		return "", k, fmt.Errorf("the first word is no name: %w", err)
	}
	hash, err := hex.DecodeString(parts[1])
	if err != nil || len(hash) != sha256.Size {
		return "", k, errors.New("the second word is no SHA-256: want 64 hex digits, which `lathe keys new` prints")
	}
	k.SHA256 = [sha256.Size]byte(hash)
	for i, word := range parts {
		if i != 1 && sha256.Sum256([]byte(word)) == k.SHA256 {
			return "", k, fmt.Errorf("word %d is the key itself: the file has only its SHA-256, and at the end a name of keys", i+1)
		}
	}
	k.Profile = parts[2]
	return parts[0], k, nil
}

// HasKey reports whether a key has this name, in Keys or in the file of serve.keys_file.
func (c *Config) HasKey(name string) bool {
	_, ok := c.FileKeys[name]
	return ok || c.Keys[name] != nil
}

// RequiresKey reports whether requests without a key are refused: Keys is not empty, or serve.keys_file is set, even to a file without
// keys.
func (c *Config) RequiresKey() bool { return len(c.Keys) > 0 || c.FileKeys != nil }

// keysFileWarnings returns warnings about names in lists of keys that no key has, and about entries of Keys that no key uses.
func (c *Config) keysFileWarnings() (out []Problem) {
	if c.FileKeys == nil {
		return nil
	}
	warn := func(key, message string) {
		out = append(out, c.warning(key, message))
	}
	for name, k := range text.ByName(c.Keys) {
		if absent := c.absentKeys(k.Approve, "own", "others"); absent != "" {
			warn("keys."+name+".approve", absent)
		}
	}
	for name, w := range text.ByName(c.Workers) {
		if absent := c.absentKeys(w.Keys); absent != "" {
			warn("workers."+name+".keys", absent)
		}
	}
	if len(c.FileKeys) == 0 {
		warn("serve.keys_file", "the file has no keys: requests with a key of the file are refused, and so are requests without a key")
	}
	if len(c.FileKeys) == 0 || c.Serve.OIDC.IsSet() {
		return out
	}
	used := map[string]bool{}
	for _, k := range c.FileKeys {
		used[k.Profile] = true
	}
	for name, k := range text.ByName(c.Keys) {
		if !used[name] && k.Key.IsZero() && k.SHA256 == "" {
			warn("keys."+name, "it has no key, and no line of serve.keys_file names it: no request has its rights")
		}
	}
	return out
}

// maxAbsentKeys is the largest number of names in a warning.
const maxAbsentKeys = 20

// absentKeys returns a warning about names in a list that are neither keys nor one of the words, or "".
func (c *Config) absentKeys(list []string, words ...string) string {
	var absent []string
	for _, name := range list {
		if !slices.Contains(words, name) && !c.HasKey(name) {
			absent = append(absent, quote(name))
		}
	}
	if len(absent) == 0 {
		return ""
	}
	text := strings.Join(absent[:min(len(absent), maxAbsentKeys)], ", ")
	if more := len(absent) - maxAbsentKeys; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return "ignored, since no key has the name: " + text + "; remove names of revoked keys from the list"
}
