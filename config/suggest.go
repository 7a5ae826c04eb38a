package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe/internal/nearest"
)

// A vocabulary is a closed list of words, and what people write instead of them.
type vocabulary struct {
	words  []string
	others [][2]string // what is written, what it is called
}

// String lists the words for the reference.
func (v *vocabulary) String() string { return "`" + strings.Join(v.words, "`, `") + "`" }

// check returns nil for a word, else an error that names the right one where there is one.
func (v *vocabulary) check(s string) error {
	if slices.Contains(v.words, s) && s != "function:NAME" {
		return nil
	}
	all := strings.Join(v.words, ", ")
	for _, o := range v.others {
		if strings.EqualFold(o[0], s) {
			return fmt.Errorf("%s is called %s here (%s)", quote(s), quote(o[1]), all)
		}
	}
	if near := nearest.Word(s, v.words); near != "" {
		return fmt.Errorf("unknown value %s, did you mean %s? (%s)", quote(s), quote(near), all)
	}
	return fmt.Errorf("unknown value %s (%s)", quote(s), all)
}

func unknownModel(name string, names []string) error {
	switch near := nearest.Word(name, names); {
	case name == "":
		return fmt.Errorf("default_model is not set, and there are several models (%s)", strings.Join(names, ", "))
	case near != "":
		return fmt.Errorf("unknown model %s, did you mean %s?", quote(name), quote(near))
	case len(names) > 0:
		return fmt.Errorf("unknown model %s (%s)", quote(name), strings.Join(names, ", "))
	default:
		return fmt.Errorf("unknown model %s: no models are configured", quote(name))
	}
}

// quote quotes what somebody wrote, cut to a length that fits a line.
func quote(s string) string {
	const most = 40
	if len(s) > most {
		return strconv.Quote(strings.ToValidUTF8(s[:most], "")) + "…"
	}
	return strconv.Quote(s)
}
