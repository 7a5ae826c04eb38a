package config

import (
	"slices"
	"strings"
	"testing"
)

// Each other word for a setting, a former name of it included, is an error that says the name.
func TestOtherNamesOfSettingsSayTheName(t *testing.T) {
	t.Parallel()
	meant := map[string][]string{} // by the other word, with its section: a few words are those of two settings
	for _, r := range Default().rows() {
		for _, word := range r.also {
			section := strings.TrimSuffix(r.path, r.name())
			meant[section+word] = append(meant[section+word], r.name())
		}
	}
	for _, r := range Default().rows() {
		for _, word := range r.also {
			path := strings.Split(r.path, ".")
			path[len(path)-1] = word
			text := strings.Join(path, ": {") + ": 1" + strings.Repeat("}", len(path)-1)
			_, err := parse("lathe.yaml", []byte(text), &LoadOptions{})
			key := strings.Join(path, ".")
			says := func(err error) bool {
				return err != nil && slices.ContainsFunc(meant[key], func(name string) bool {
					return strings.Contains(err.Error(), "unknown key, it is called "+name+" here")
				})
			}
			if !says(err) {
				t.Errorf("%s: %v", text, err)
			}
			_, err = Load("", &LoadOptions{Overrides: []Override{{From: "--flag", Key: key, Value: "1"}}})
			if !says(err) {
				t.Errorf("--flag %s: %v", key, err)
			}
		}
	}
}
