package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/lathe-run/lathe/internal/secret"
)

// KnownSecrets returns the values that the configuration refers to outside of itself, addresses
// left out: those of secrets.values under their name, others under their key, such as models.fast.key.
func (c *Config) KnownSecrets() map[string]secret.Secret {
	out := map[string]secret.Secret{}
	collect(out, "", c.keys())
	for _, name := range slices.Sorted(maps.Keys(c.Models)) {
		collect(out, "models."+name+".", c.Models[name].keys())
	}
	return out
}

func collect(out map[string]secret.Secret, base string, rows []key) {
	add := func(path string, v value) {
		if ref, ok := v.(refValue); ok && ref.p.shown != "" && ref.p.shown != ref.p.Reveal() && !ref.p.IsZero() {
			out[secretName(strings.TrimPrefix(path, "secrets.values."))] = ref.p.Secret()
		}
	}
	for i := range rows {
		path := base + rows[i].path
		switch v := rows[i].v.(type) {
		case grouper:
			for _, g := range v.groups() {
				collect(out, path+"."+g.name+".", g.rows)
			}
		case tabler:
			for _, e := range v.entries() {
				add(path+"."+e.name, e.v)
			}
		default:
			switch rows[i].last() {
			case "base_url", "url", "server": // addresses
			default:
				add(path, v)
			}
		}
	}
}

// secretName keeps the characters that a name in a token may have.
func secretName(path string) string {
	name := strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '.' || isToolName(string(r)) == nil) {
			return r
		}
		return '_'
	}, path)
	return name[:min(len(name), 128)]
}
