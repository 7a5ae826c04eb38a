// Package gbnf writes grammars in GBNF, the notation of llama.cpp, which xgrammar reads as its EBNF. They constrain what a model
// can write: a server masks each token that no text of the grammar continues with.
//
// An expression is the right side of a rule. Expressions that the functions return are complete: they may stand in a sequence or
// before an operator. The names of rules are letters and digits only, because llama.cpp allows no underscore in them.
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
	// MaxBytes bounds the text of a grammar. Servers parse it with each request.
	MaxBytes = 512 << 10
	// maxRules bounds the rules of a grammar.
	maxRules = 20_000
	// maxRead bounds the bytes of schemas that are read, each part anew for each reference to it.
	maxRead = 8 << 20
	// perPart is what a part counts beside its bytes.
	perPart = 256
)

// errTooLarge reports a grammar of more than [MaxBytes], of too many rules, or of schemas that refer to parts of themselves too often.
var errTooLarge = errors.New("the grammar is too large")

// A Builder collects the rules of one grammar. It is used by one goroutine.
type Builder struct {
	rules  []rule
	places map[string]int    // name of a rule to its place in rules
	byBody map[string]string // expression to the rule with it
	known  map[string]string // key of a compiled part to its rule
	bytes  int
	read   int
	err    error

	loosened []string
}

type rule struct{ name, body string }

// Fail keeps the first error, which [Builder.Grammar] returns.
func (b *Builder) Fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// Err returns the first error.
func (b *Builder) Err() error { return b.err }

// Part counts the bytes of a part of a schema that is read, and reports whether the builder has no error. It fails with errTooLarge
// after 8 MiB: parts that references repeat share one rule, so the size of the grammar does not bound them.
func (b *Builder) Part(size int) bool {
	if b.read += perPart + size; b.read > maxRead {
		b.Fail(errTooLarge)
	}
	return b.err == nil
}

// Loosen records that the grammar allows more than the schema does, because of the keyword at a path.
func (b *Builder) Loosen(path, keyword string) {
	entry := text.Clip(path, maxPath) + "." + text.Clip(keyword, maxPath)
	if len(b.loosened) < maxLoosened && !slices.Contains(b.loosened, entry) {
		b.loosened = append(b.loosened, entry)
	}
}

// Limits of [Builder.Loosened], whose entries are in the log of each model call.
const (
	maxLoosened = 256
	maxPath     = 256 // bytes of a path, and of a keyword
)

// Loosened returns what [Builder.Loosen] recorded, at most 256 entries.
func (b *Builder) Loosened() []string { return b.loosened }

// Rule adds a rule and returns its name: the hint, which is letters, and a number. Equal bodies share one rule.
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

// reserve returns the name of a rule whose body follows by define, for rules that refer to themselves.
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
	b.rules = append(b.rules, rule{name: name})
	return name
}

func (b *Builder) define(name, body string) {
	if i, ok := b.places[name]; ok { // not if there are too many
		b.rules[i].body = body
	}
	if b.bytes += len(name) + len(body) + len(" ::= \n"); b.bytes > MaxBytes {
		b.Fail(errTooLarge)
	}
}

// Grammar returns the text of the grammar, one rule a line, the rule root first. The other rules follow in the order in which root
// reaches them; rules that it does not reach are left out.
func (b *Builder) Grammar(root string) (string, error) {
	if b.err != nil {
		return "", b.err
	}
	bodies := make(map[string]string, len(b.rules))
	for _, r := range b.rules {
		bodies[r.name] = r.body
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
		body, ok := bodies[name]
		if !ok || body == "" {
			return "", fmt.Errorf("the grammar has no rule %q", name)
		}
		text.WriteString(name + " ::= " + body + "\n")
		queue = references(queue, body)
	}
	if text.Len() > MaxBytes {
		return "", errTooLarge
	}
	return text.String(), nil
}

// references appends the names of rules in an expression.
func references(dst []string, body string) []string {
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case c == '"' || c == '[':
			end := byte('"')
			if c == '[' {
				end = ']'
			}
			for i++; i < len(body) && body[i] != end; i++ {
				if body[i] == '\\' {
					i++
				}
			}
		case c == '{':
			for i < len(body) && body[i] != '}' {
				i++
			}
		case isLetter(c):
			from := i
			for i < len(body) && (isLetter(body[i]) || isDigit(body[i])) {
				i++
			}
			dst = append(dst, body[from:i])
			i--
		}
	}
	return dst
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

// Empty is the expression of the empty text.
const Empty = `""`

// Literal returns the expression of a text.
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

// AnyOf returns the expression of one of the alternatives. Equal alternatives count once.
func AnyOf(alternatives []string) string {
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

// Sequence returns the expression of one part after another.
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

// Optional returns the expression of the part or nothing.
func Optional(part string) string {
	if part == Empty {
		return Empty
	}
	return "(" + part + ")?"
}

// Repeat returns the expression of the part, from least to most times; most < 0: any number of times.
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

// appendClass appends a character as it stands in a class. llama.cpp reads two digits after \x, xgrammar as many as there are, so the
// escape is the one with four digits.
func appendClass(dst []byte, r rune) []byte {
	switch {
	case r < utf8.RuneSelf && (isLetter(byte(r)) || isDigit(byte(r))):
		return append(dst, byte(r))
	case r < utf8.RuneSelf:
		return fmt.Appendf(dst, `\u%04X`, r)
	}
	return utf8.AppendRune(dst, r)
}

// Except returns the expression of one character that is neither in list nor NUL. xgrammar 0.1.27 does not exclude those beyond ASCII.
func Except(list string) string {
	not := []rune(list)
	slices.Sort(not)
	out := []byte(`[^\u0000`)
	for _, r := range slices.Compact(not) {
		out = appendClass(out, r)
	}
	return string(append(out, ']'))
}
