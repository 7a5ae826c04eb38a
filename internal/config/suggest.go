package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe/internal/text"
)

// Errors for unknown words, models and keys, which suggest the right one.

// A vocabulary is a closed list of words, with other words that users write instead.
type vocabulary struct {
	words  []string
	others [][2]string // pairs of another word and the correct word
	empty  bool        // an empty text is accepted, too
}

// newVocabulary parses words separated by blanks, each in the form "word" or "word=other,words".
func newVocabulary(of string) *vocabulary {
	v := &vocabulary{}
	for _, o := range strings.Fields(of) {
		w, others, _ := strings.Cut(o, "=")
		v.words = append(v.words, w)
		for _, other := range strings.FieldsFunc(others, func(r rune) bool { return r == ',' }) {
			v.others = append(v.others, [2]string{other, w})
		}
	}
	return v
}

// kind returns the kind of a setting with this vocabulary. value returns the value of a word, and text the word of a value.
func (v *vocabulary) kind(value func(word string) any, text func(reflect.Value) string) *kind {
	return &kind{what: "`" + strings.Join(v.words, "`, `") + "`", words: v.words, text: text, parse: func(s string) (any, error) { return value(s), v.check(s) }}
}

// check returns nil for a word of the vocabulary, else an error that names the correct word if there is one.
func (v *vocabulary) check(s string) error {
	if slices.Contains(v.words, s) && s != "function:NAME" || v.empty && s == "" {
		return nil
	}
	all := strings.Join(v.words, ", ")
	for _, o := range v.others {
		if strings.EqualFold(o[0], s) {
			return fmt.Errorf("%s is called %s here (%s)", quote(s), quote(o[1]), all)
		}
	}
	if near := text.Nearest(s, v.words); near != "" {
		return fmt.Errorf("unknown value %s, did you mean %s? (%s)", quote(s), quote(near), all)
	}
	return fmt.Errorf("unknown value %s (%s)", quote(s), all)
}

func unknownModel(name string, names []string) error {
	switch near := text.Nearest(name, names); {
	case name == "":
		return fmt.Errorf("default_model is not set, and there are several models (%s)", strings.Join(names, ", "))
	case near != "":
		return fmt.Errorf("unknown model %s, did you mean %s?", quote(name), quote(near))
	case len(names) > 0:
		return fmt.Errorf("unknown model %s; configured: %s", quote(name), strings.Join(names, ", "))
	default:
		return fmt.Errorf("unknown model %s: no models are configured", quote(name))
	}
}

// quote returns a value of the user in quotation marks, cut to 40 bytes.
func quote(s string) string {
	const most = 40
	if len(s) > most {
		return strconv.Quote(text.Cut(s, most)) + "…"
	}
	return strconv.Quote(s)
}

// maxListed is the largest number of words in an error without a suggestion.
const maxListed = 12

// unknownKey returns the error for an unknown key, with a suggestion: the key with the same meaning, the same key in another section, or a
// key with a similar name.
func (l *loader) unknownKey(rows []row, prefix, name string) string {
	var here []string
	for _, r := range rows {
		rest, ok := strings.CutPrefix(r.path, prefix)
		if !ok {
			continue
		}
		word, deeper, _ := strings.Cut(rest, ".")
		if deeper == "" && slices.Contains(r.also, name) {
			if r.kind.shape == object {
				return "unknown key, it goes into " + word + ": {" + name + ": …}"
			}
			return "unknown key, it is called " + word + " here"
		}
		if !slices.Contains(here, word) {
			here = append(here, word)
		}
	}
	if near := text.Nearest(name, here); near != "" {
		return "unknown key, did you mean " + near + "?"
	}
	all := settingsOf(reflect.TypeFor[Config]())
	inEntries := slices.DeleteFunc(flat(all), func(s *setting) bool { return s.kind.shape == group })
	for _, s := range slices.Concat(all, inEntries) {
		if s.name() == name || s.kind.shape != object && slices.Contains(s.also, name) {
			return "unknown key here, did you mean " + s.path + "?"
		}
	}
	if len(here) == 0 || len(here) > maxListed {
		return "unknown key"
	}
	slices.Sort(here)
	return "unknown key (" + strings.Join(here, ", ") + ")"
}
