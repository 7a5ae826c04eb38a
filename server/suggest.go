package server

import (
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/setting"
	"github.com/lathe-run/lathe/internal/text"
)

// mean returns a sentence that suggests one of words for s, with a space before it: the current name if s is the former
// name of a setting, else the nearest word. It returns "" if no word is near.
func mean(s string, words []string) string {
	for _, r := range setting.Rows[lathe.Settings]() {
		if r.Tag.Get("was") == s && slices.Contains(words, r.Key) {
			return " It is called " + r.Key + "."
		}
	}
	if w := text.Nearest(s, words); w != "" {
		return " Did you mean " + w + "?"
	}
	return ""
}
