package server

import "github.com/lathe-run/lathe/internal/nearest"

// mean returns a sentence that suggests the known word that is nearest to s; "" if none is near.
func mean(s string, words []string) string {
	if w := nearest.Word(s, words); w != "" {
		return " Did you mean " + w + "?"
	}
	return ""
}
