package schema

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dlclark/regexp2/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxBacktracking is the largest size of the backtracking stack of one match, in entries: 8 MB.
const maxBacktracking = 1_000_000

// A pattern is a regular expression of ECMA-262 with the flag u. It may be used by several goroutines at once.
type pattern struct {
	expr string
	re   *regexp2.Regexp
}

// A slowMatch is the panic value of MatchString if a match reaches a limit: a result of false would make a value valid under `not` or
// `patternProperties`.
type slowMatch struct{ message string }

// newPattern compiles an expression. The error says what is not in ECMA-262 or not supported.
func newPattern(expr string) (*pattern, error) {
	read, err := ecmaScript(expr)
	if err != nil {
		return nil, err
	}
	re, err := regexp2.Compile(read, regexp2.ECMAScript, regexp2.Unicode, regexp2.OptionMaxBacktrackingStackSize(maxBacktracking))
	if err != nil {
		reason, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "error parsing regexp: "), " in `")
		return nil, errors.New(reason)
	}
	re.MatchTimeout = MaxPatternTime
	return &pattern{expr, re}, nil
}

// String returns the expression as written in the schema.
func (p *pattern) String() string { return p.expr }

// MatchString reports whether the text contains a match, with the panics of the function match.
func (p *pattern) MatchString(text string) bool {
	found, _ := match(p, text, math.MaxInt)
	return found
}

// match makes one attempt at a match. It returns whether the text contains one, the time of the attempt, and an error if it reached
// MaxPatternTime. If it reaches maxBacktracking, it panics with a slowMatch.
func (p *pattern) match(text string) (found bool, took time.Duration, err error) {
	start := time.Now()
	found, err = p.re.MatchString(text)
	took = time.Since(start)
	if errors.Is(err, regexp2.ErrBacktrackingStackLimit) {
		panic(slowMatch{fmt.Sprintf("matching with the pattern %s needs more than %d backtracking steps", p.expr, maxBacktracking)})
	}
	return found, took, err
}

// ecmaScript returns the expression in the syntax of regexp2. It refuses syntax of other languages that regexp2 would interpret
// differently, and escapes the hyphen in [\w-.], which ECMA-262 allows only without the flag u.
func ecmaScript(expr string) (string, error) {
	var b strings.Builder
	inClass := false
	for rest := expr; rest != ""; {
		n := 1 // number of bytes of rest that are read
		switch {
		case rest[0] == '\\' && len(rest) > 1:
			var err error
			if n, err = escapeLength(rest); err != nil {
				return "", err
			}
		case rest[0] == '[' && inClass && isPOSIXClass(rest):
			return "", errors.New("the class [:name:] is not in ECMA-262")
		case rest[0] == '[':
			inClass = true
		case rest[0] == ']':
			inClass = false
		}
		isSet := n > 1 && strings.IndexByte("dDwWsSpP", rest[1]) >= 0 // an escape for a set of characters
		b.WriteString(rest[:n])
		rest = rest[n:]
		if inClass && isSet && len(rest) > 1 && rest[0] == '-' && rest[1] != ']' {
			b.WriteString(`\-`)
			rest = rest[1:]
		}
	}
	return b.String(), nil
}

// escapeLength returns the number of bytes of the escape with which s begins, such as \d, \x20, \u{1F600} or \p{L}.
func escapeLength(s string) (int, error) {
	const start = len(`\d`)
	digits := 0
	switch c := s[1]; {
	case c == 'x':
		digits = hexDigits(s[start:], 2)
	case c == 'u' && strings.HasPrefix(s[start:], "{"):
		braced, _, closed := strings.Cut(s[start+1:], "}")
		if n := hexDigits(braced, max(len(braced), 1)); closed && n > 0 {
			digits = n + len("{}")
		}
	case c == 'u':
		digits = hexDigits(s[start:], 4)
	case isLetter(c) && strings.IndexByte("dDwWsSbBpPkcfnrtv", c) < 0:
		return 0, fmt.Errorf("the escape \\%c is not in ECMA-262", c)
	case (c == 'p' || c == 'P') && strings.HasPrefix(s[start:], "{"):
		return start + strings.IndexByte(s[start:], '}') + 1, nil
	default:
		return start, nil
	}
	if digits == 0 {
		return 0, fmt.Errorf("the escape \\%c without its digits is not in ECMA-262", s[1])
	}
	return start + digits, nil
}

// hexDigits returns n if s begins with n hexadecimal digits, otherwise 0.
func hexDigits(s string, n int) int {
	if len(s) < n || strings.Trim(s[:n], "0123456789abcdefABCDEF") != "" {
		return 0
	}
	return n
}

// isPOSIXClass reports whether s begins with a class such as [:alpha:].
func isPOSIXClass(s string) bool {
	name, ok := strings.CutPrefix(s, "[:")
	name, _, closed := strings.Cut(name, ":]")
	return ok && closed && name != "" && strings.Trim(name, "^abcdefghijklmnopqrstuvwxyz") == ""
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// patterns compiles each regular expression of one schema once, and limits their total size.
type patterns struct {
	known   map[string]jsonschema.Regexp
	refused map[string]error
	size    int
	over    error // not nil if size exceeds MaxPatternSize
}

func newPatterns() *patterns {
	return &patterns{known: map[string]jsonschema.Regexp{}, refused: map[string]error{}}
}

// compile implements [jsonschema.RegexpEngine]. It records the reason for each refused expression.
func (p *patterns) compile(expr string) (jsonschema.Regexp, error) {
	if known := p.known[expr]; known != nil {
		return known, nil
	}
	if p.size += len(expr); p.size > MaxPatternSize {
		p.over = fmt.Errorf("regular expressions of more than %d bytes", MaxPatternSize)
	}
	if p.over != nil {
		return nil, p.over
	}
	c, err := newPattern(expr)
	if err != nil {
		p.refused[expr] = err
		return nil, err
	}
	p.known[expr] = c
	return c, nil
}

// problems returns a message for each refused expression in a document, with its location and the reason.
func (p *patterns) problems(doc any) []string {
	var found []string
	add := func(at, expr string) {
		if err := p.refused[expr]; err != nil {
			found = append(found, fmt.Sprintf("at %q: the pattern %s cannot be matched: %v", at, cut(strconv.Quote(expr)), err))
		}
	}
	parts(doc, "", func(at string, s map[string]any) {
		if expr, ok := s["pattern"].(string); ok {
			add(at+"/pattern", expr)
		}
		named, _ := s["patternProperties"].(map[string]any)
		for expr := range named {
			add(at+"/patternProperties", expr)
		}
	})
	slices.Sort(found)
	return found
}
