package config

import (
	"reflect"
	"slices"
	"strings"

	"github.com/lathe-run/lathe/secret"
)

// KnownSecrets returns the values that the configuration refers to outside of itself, addresses
// left out: those of secrets.values under their name, others under their key, such as models.fast.key.
func (c *Config) KnownSecrets() map[string]secret.Secret {
	out := map[string]secret.Secret{}
	add := func(path string, v reflect.Value) {
		if v.Type() != reflect.TypeFor[Ref]() {
			return // Interface would copy the value
		}
		if ref := v.Interface().(Ref); ref.shown != "" && ref.shown != ref.Reveal() && !ref.IsZero() {
			out[secretName(strings.TrimPrefix(path, "secrets.values."))] = ref.Secret()
		}
	}
	walk("", c.rows(), func(path string, r *row) {
		if r.kind.shape == table {
			for _, name := range namesIn(r.v) {
				add(path+"."+name, r.v.MapIndex(reflect.ValueOf(name)))
			}
			return
		}
		if !slices.Contains([]string{"base_url", "url", "server"}, r.name()) { // URLs are not secrets
			add(path, r.v)
		}
	})
	return out
}

// secretName replaces the characters of a path that are not allowed in the name of a secret.
func secretName(path string) string {
	name := strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '.' || isToolName(string(r)) == nil) {
			return r
		}
		return '_'
	}, path)
	return name[:min(len(name), 128)]
}
