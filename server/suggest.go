package server

import "github.com/lathe-run/lathe/internal/text"

// mean returns a sentence that suggests the known word that is nearest to s; "" if none is near.
func mean(s string, words []string) string {
	if w := text.Nearest(s, words); w != "" {
		return " Did you mean " + w + "?"
	}
	return ""
}
