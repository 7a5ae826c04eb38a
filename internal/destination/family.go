package destination

import (
	"slices"
	"strconv"
	"strings"
)

// mistral are the words by which names of models with Mistral's templates and servers are recognised.
var mistral = []string{"mistral", "ministral", "mixtral", "magistral", "devstral", "codestral", "pixtral"}

// A family is the vendor line, the variant and the version of a model, as its name gives them.
type family struct {
	name    string // claude, gemini, gpt, o or mistral; "": not known
	variant string // opus, pro, …: the word that distinguishes models of one generation
	version int    // major*100 + minor, such as 405 for 4.5; 0: not known
}

// familyOf reads the name of a model in any of the forms in use: claude-sonnet-4-5-20250929, anthropic/claude-sonnet-4.5,
// us.anthropic.claude-3-5-haiku-20241022-v1:0, models/gemini-2.5-pro, gpt-4o.
func familyOf(model string) family {
	words := strings.FieldsFunc(strings.ToLower(model), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	for i, w := range words {
		rest := words[i+1:]
		switch {
		case w == "claude", w == "gemini":
			f := family{name: w, version: version(rest)}
			if i := slices.IndexFunc(rest, letters); i >= 0 {
				f.variant = rest[i]
			}
			return f
		case w == "gpt" && len(rest) > 0 && rest[0] != "oss", w == "chatgpt":
			f := family{name: "gpt", version: version(rest)}
			if f.version >= 3000 { // Azure writes 3.5 as 35
				f.version = f.version / 1000 * 100
			}
			return f
		case isReasoning(w) && (i == 0 || words[i-1] == "openai"):
			return family{name: "o", version: int(w[1]-'0') * 100}
		case w == "nemo", slices.ContainsFunc(mistral, func(m string) bool { return strings.HasPrefix(w, m) }):
			return family{name: "mistral"}
		}
	}
	return family{}
}

// isReasoning reports whether w is the name of one of OpenAI's reasoning models o1 to o9.
func isReasoning(w string) bool { return len(w) == 2 && w[0] == 'o' && w[1] >= '1' && w[1] <= '9' }

// version returns the first number of one or two digits and the number after it as major*100 + minor: 405 for "4", "5". Letters after the
// digits, as in 4o, are ignored. It returns 0 if there is no such number.
func version(words []string) int {
	for i, w := range words {
		major, ok := small(w)
		if !ok {
			continue
		}
		if i+1 < len(words) && len(words[i+1]) <= 2 {
			if minor, ok := small(words[i+1]); ok {
				return major*100 + minor
			}
		}
		return major * 100
	}
	return 0
}

func small(w string) (n int, ok bool) {
	digits := len(w) - len(strings.TrimLeft(w, "0123456789"))
	if digits == 0 || digits > 2 || !letters(w[digits:]) {
		return 0, false
	}
	n, _ = strconv.Atoi(w[:digits])
	return n, true
}

func letters(w string) bool { return strings.Trim(w, "abcdefghijklmnopqrstuvwxyz") == "" }
