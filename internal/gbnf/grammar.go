// Package gbnf writes grammars in GBNF, the notation of llama.cpp, which xgrammar reads as its EBNF. A grammar restricts what a model can
// generate: the server masks each token with which no text of the grammar continues.
//
// An expression is the right side of a rule. The expressions that the functions return are complete: they can be part of a sequence, and
// an operator can follow them. Names of rules consist of letters and digits, because llama.cpp does not allow underscores in them.
package gbnf

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/lathe-run/lathe/internal/text"
)

const (
	// MaxBytes is the maximal size of the text of a grammar. Servers parse it with each request.
	MaxBytes = 512 << 10
	// maxRules is the maximal number of rules of a grammar.
	maxRules = 20_000
	// maxRead is the maximal number of bytes of schemas that are read. A part counts again for each reference to it.
	maxRead = 8 << 20
	// perPart is the number of bytes that each part counts in addition to its own.
	perPart = 256
)

// errTooLarge is the error for a grammar of more than [MaxBytes] or maxRules, and for schemas of which more than maxRead is read.
var errTooLarge = errors.New("the grammar is too large")

// A Builder collects the rules of one grammar. It must not be used by several goroutines at once.
type Builder struct {
	rules  []string          // the body of each rule
	places map[string]int    // index in rules of each rule, by name
	byBody map[string]string // name of the rule with a body
	known  map[string]string // name of the rule of a text expression, by its key
	bytes  int
	read   int
	err    error

	loosened []string
}

// Fail stores the first error, which [Builder.Grammar] returns. Later errors are ignored.
func (b *Builder) Fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// Err returns the first error, or nil.
func (b *Builder) Err() error { return b.err }

// Part counts the bytes of a part of a schema before it is read, and reports whether the builder has no error. After 8 MiB (maxRead) it
// fails with errTooLarge. The size of the grammar does not limit reading, because parts that references repeat share one rule.
func (b *Builder) Part(size int) bool {
	b.read += perPart + size
	if b.read > maxRead {
		b.Fail(errTooLarge)
	}
	return b.err == nil
}

// Loosen records that the grammar does not enforce the keyword of the schema at path.
func (b *Builder) Loosen(path, keyword string) {
	entry := text.Clip(path, maxPath) + "." + text.Clip(keyword, maxPath)
	if len(b.loosened) < maxLoosened && !slices.Contains(b.loosened, entry) {
		b.loosened = append(b.loosened, entry)
	}
}

// Limits of [Builder.Loosened], whose entries are in the log of each model call.
const (
	maxLoosened = 256 // entries
	maxPath     = 256 // bytes of a path, and of a keyword
)

// Loosened returns what [Builder.Loosen] recorded, at most 256 entries.
func (b *Builder) Loosened() []string { return b.loosened }

// Rule adds a rule and returns its name: hint, which consists of letters, and a number. Equal bodies share one rule.
func (b *Builder) Rule(hint, body string) string {
	if name, ok := b.byBody[body]; ok {
		return name
	}
	name := b.reserve(hint)
	b.define(name, body)
	if b.byBody == nil {
		b.byBody = map[string]string{}
	}
	b.byBody[body] = name
	return name
}

// reserve returns the name of a rule whose body is set later by define, for rules that refer to themselves.
func (b *Builder) reserve(hint string) string {
	if len(b.rules) >= maxRules {
		b.Fail(errTooLarge)
		return "root"
	}
	name := hint + strconv.Itoa(len(b.rules))
	if b.places == nil {
		b.places = map[string]int{}
	}
	b.places[name] = len(b.rules)
	b.rules = append(b.rules, "")
	return name
}

func (b *Builder) define(name, body string) {
	if i, ok := b.places[name]; ok { // false after reserve has failed
		b.rules[i] = body
	}
	b.bytes += len(name) + len(body) + len(" ::= \n")
	if b.bytes > MaxBytes {
		b.Fail(errTooLarge)
	}
}

// Grammar returns the text of the grammar, one rule a line, first the rule root with the expression root. The other rules follow in the
// order in which root refers to them; rules without a reference are omitted. It returns the first error of the builder.
func (b *Builder) Grammar(root string) (string, error) {
	if b.err != nil {
		return "", b.err
	}
	var text strings.Builder
	text.WriteString("root ::= " + root + "\n")
	seen := map[string]bool{}
	queue := references(nil, root)
	for i := 0; i < len(queue); i++ {
		name := queue[i]
		if seen[name] {
			continue
		}
		seen[name] = true
		at, ok := b.places[name]
		if !ok || b.rules[at] == "" {
			return "", fmt.Errorf("the grammar has no rule %q", name)
		}
		body := b.rules[at]
		text.WriteString(name + " ::= " + body + "\n")
		queue = references(queue, body)
	}
	if text.Len() > MaxBytes {
		return "", errTooLarge
	}
	return text.String(), nil
}

// references appends the names of the rules to which an expression refers.
func references(dst []string, body string) []string {
	for body != "" {
		n := 1
		switch c := body[0]; {
		case c == '"':
			n = literalLen(body, '"')
		case c == '[':
			n = literalLen(body, ']')
		case c == '{': // a number of repetitions
			n = literalLen(body, '}')
		case isLetter(c):
			for n < len(body) && (isLetter(body[n]) || isDigit(body[n])) {
				n++
			}
			dst = append(dst, body[:n])
		}
		body = body[n:]
	}
	return dst
}

// literalLen returns the length of the literal, class or count at the beginning of body, up to end, which a backslash escapes.
func literalLen(body string, end byte) int {
	for i := 1; i < len(body); i++ {
		switch body[i] {
		case '\\':
			i++
		case end:
			return i + 1
		}
	}
	return len(body)
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

// Empty is the expression that matches the empty text.
const Empty = `""`

// Literal returns the expression that matches text.
func Literal(text string) string {
	out := make([]byte, 0, len(text)+8)
	out = append(out, '"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			out = append(out, '\\', byte(r))
		case r == '\n':
			out = append(out, '\\', 'n')
		case r == '\t':
			out = append(out, '\\', 't')
		case r == '\r':
			out = append(out, '\\', 'r')
		case r < ' ' || r == 0x7f:
			out = fmt.Appendf(out, `\u%04X`, r)
		default:
			out = utf8.AppendRune(out, r)
		}
	}
	return string(append(out, '"'))
}

// AnyOf returns the expression that matches one of the alternatives. Equal alternatives are written once.
func AnyOf(alternatives ...string) string {
	var list []string
	for _, a := range alternatives {
		if !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	if len(list) == 1 {
		return list[0]
	}
	return "(" + strings.Join(list, " | ") + ")"
}

// Sequence returns the expression that matches the parts in order.
func Sequence(parts ...string) string {
	list := slices.DeleteFunc(slices.Clone(parts), func(p string) bool { return p == Empty || p == "" })
	switch len(list) {
	case 0:
		return Empty
	case 1:
		return list[0]
	}
	return "(" + strings.Join(list, " ") + ")"
}

// Optional returns the expression that matches part or the empty text.
func Optional(part string) string {
	if part == Empty {
		return Empty
	}
	return "(" + part + ")?"
}

// Repeat returns the expression that matches part least to most times. A negative most means no limit.
func Repeat(part string, least, most int) string {
	switch {
	case most == 0 || part == Empty:
		return Empty
	case least == 0 && most < 0:
		return "(" + part + ")*"
	case least == 1 && most < 0:
		return "(" + part + ")+"
	case most < 0:
		return "(" + part + "){" + strconv.Itoa(least) + ",}"
	case least == 1 && most == 1:
		return part
	case least == 0 && most == 1:
		return Optional(part)
	}
	return "(" + part + "){" + strconv.Itoa(least) + "," + strconv.Itoa(most) + "}"
}

// appendClass appends a character in the form for a character class. llama.cpp reads two digits after \x, and xgrammar all that follow,
// so it uses the escape with four digits.
func appendClass(dst []byte, r rune) []byte {
	switch {
	case r < utf8.RuneSelf && (isLetter(byte(r)) || isDigit(byte(r))):
		return append(dst, byte(r))
	case r < utf8.RuneSelf:
		return fmt.Appendf(dst, `\u%04X`, r)
	}
	return utf8.AppendRune(dst, r)
}

// Except returns the expression that matches one character which is neither in list nor NUL. xgrammar 0.1.27 does not exclude characters
// beyond ASCII.
func Except(list string) string {
	not := []rune(list)
	slices.Sort(not)
	out := []byte(`[^\u0000`)
	for _, r := range slices.Compact(not) {
		out = appendClass(out, r)
	}
	return string(append(out, ']'))
}
