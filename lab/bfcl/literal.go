package bfcl

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode"

	"github.com/lathe-run/lathe/internal/lazy"
)

// Parts of patterns for source text. They match Unicode blanks and word characters.
const (
	blanks   = `[\t-\r\x1c-\x20\x85\p{Z}]*`
	blanks1  = `[\t-\r\x1c-\x20\x85\p{Z}]+`
	word     = `[\p{L}\p{N}_]`
	fraction = `(?:\.[0-9]+)?`
	exponent = `(?:[eE][+-]?[0-9]+)?`
)

// lineEnd matches one optional line end after a literal.
const lineEnd = `\n?`

var (
	plainFloat = lazy.Regexp(`^-?[0-9]+` + fraction + exponent + lineEnd + `$`)
	shortFloat = lazy.Regexp(`^-?[0-9]+` + fraction + lineEnd + `$`)
	anyFloat   = lazy.Regexp(`^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)` + exponent + `$`)
	infinite   = lazy.Regexp(`(?i)^[+-]?inf(?:inity)?$`)
	signedNaN  = lazy.Regexp(`(?i)^[+-]?nan$`)
	grouped    = lazy.Regexp(`[0-9]_[0-9]`)
)

func trim(s string) string { return strings.TrimFunc(s, isBlank) }

func isBlank(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// within returns s without its first and its last character.
func within(s string) string {
	r := []rune(s)
	if len(r) < 2 {
		return ""
	}
	return string(r[1 : len(r)-1])
}

func quotedBy(s, quote string) bool {
	return strings.HasPrefix(s, quote) && strings.HasSuffix(s, quote)
}

// wholeOrText parses an integer literal. Other text is returned as a text.
func wholeOrText(s string) value {
	if v, ok := wholeNumber(strings.TrimSuffix(s, "\n")); ok {
		return v
	}
	return textValue(s)
}

// suffixed parses an integer literal with one of the suffixes.
func suffixed(s, suffixes string) (value, bool) {
	t := strings.TrimSuffix(s, "\n")
	if t == "" || !strings.Contains(suffixes, t[len(t)-1:]) {
		return value{}, false
	}
	return wholeNumber(t[:len(t)-1])
}

func floatOf(s string) value {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return textValue(s)
	}
	return value{kind: float, real: f}
}

// javaFloat parses a literal with the suffix f or F.
func javaFloat(s string) (value, bool) {
	t := strings.TrimSuffix(s, "\n")
	if t == "" || !strings.Contains("fF", t[len(t)-1:]) || !plainFloat().MatchString(t[:len(t)-1]) {
		return value{}, false
	}
	return floatOf(t[:len(t)-1]), true
}

// numberOrText parses a number as Python does, which allows a plus sign, underscores between digits, and the names of infinity and NaN.
// Other text is returned as a text.
func numberOrText(s string) value {
	t := trim(s)
	digits := t
	for grouped().MatchString(digits) {
		digits = grouped().ReplaceAllStringFunc(digits, func(m string) string { return m[:1] + m[2:] })
	}
	if v, ok := wholeNumber(strings.TrimPrefix(digits, "+")); ok && !strings.HasPrefix(digits, "+-") {
		return v
	}
	switch {
	case signedNaN().MatchString(t):
		return value{kind: float, real: math.NaN()}
	case anyFloat().MatchString(digits), infinite().MatchString(t):
		return floatOf(digits)
	}
	return textValue(s)
}
