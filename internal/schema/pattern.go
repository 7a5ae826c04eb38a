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
	for i := 0; i < len(expr); i++ {
		switch c := expr[i]; {
		case c == '\\' && i+1 < len(expr):
			end := i + 2
			switch e := expr[i+1]; {
			case e == 'x' || e == 'u':
				n := hexDigits(expr[end:], e == 'u')
				if n == 0 {
					return "", fmt.Errorf("the escape \\%c without its digits is not in ECMA-262", e)
				}
				end += n
			case isLetter(e) && !strings.ContainsRune("dDwWsSbBpPkcfnrtv", rune(e)):
				return "", fmt.Errorf("the escape \\%c is not in ECMA-262", e)
			case (e == 'p' || e == 'P') && strings.HasPrefix(expr[end:], "{"):
				end += strings.IndexByte(expr[end:], '}') + 1
			}
			b.WriteString(expr[i:end])
			rest := expr[end:]
			if inClass && strings.ContainsRune("dDwWsSpP", rune(expr[i+1])) && len(rest) > 1 && rest[0] == '-' && rest[1] != ']' {
				b.WriteString(`\-`)
				end++
			}
			i = end - 1
			continue
		case c == '[' && inClass && isPOSIXClass(expr[i:]):
			return "", errors.New("the class [:name:] is not in ECMA-262")
		case c == '[':
			inClass = true
		case c == ']':
			inClass = false
		}
		b.WriteByte(expr[i])
	}
	return b.String(), nil
}

// hexDigits returns the length of the digits after \x or \u, including braces, or 0 if they are missing.
func hexDigits(s string, isUnicode bool) int {
	n, want := 0, 2
	if isUnicode {
		if digits, isBraced := strings.CutPrefix(s, "{"); isBraced {
			s, _, isBraced = strings.Cut(digits, "}")
			if want = max(len(s), 1); !isBraced {
				return 0
			}
			n = 2 // the braces
		} else {
			want = 4
		}
	}
	if len(s) < want || strings.Trim(s[:want], "0123456789abcdefABCDEF") != "" {
		return 0
	}
	return n + want
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
