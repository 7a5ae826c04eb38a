package schema

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"

	"github.com/lathe-run/lathe/internal/jsonschema"
)

// A pattern is a regular expression and, where it is simple enough, its steps: each takes as many
// characters of one set as there are, within bounds. Steps that come through have found a match;
// where they do not, the expression itself decides.
type pattern struct {
	re     *regexp.Regexp
	size   int  // instructions of the compiled expression
	simple bool // there are steps
	steps  []step
	toEnd  bool // anchored at the end
}

type step struct {
	set      [2]uint64 // of ASCII characters
	min, max int       // max -1: any number
}

func (s *step) has(c byte) bool { return c < 0x80 && s.set[c>>6]>>(c&63)&1 != 0 }

func newPattern(expr string) (*pattern, error) {
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, err
	}
	p := &pattern{}
	p.simple = p.read(tree)
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, err
	}
	p.size = len(prog.Inst)
	p.re, err = regexp.Compile(expr)
	return p, err
}

// String returns the expression.
func (p *pattern) String() string { return p.re.String() }

// MatchString reports whether the text holds a match.
func (p *pattern) MatchString(text string) bool { return p.re.MatchString(text) }

// match is MatchString for bytes.
func (p *pattern) match(text []byte) bool { return p.simple && p.take(text) || p.re.Match(text) }

// work is the cost of matching a text of that length, in units of maxWork.
func (p *pattern) work(length int) int { return 1 + p.size*length/4 }

func (p *pattern) take(text []byte) bool {
	i := 0
	for k := range p.steps {
		s := &p.steps[k]
		start := i
		for i < len(text) && i-start != s.max && s.has(text[i]) {
			i++
		}
		if i-start < s.min {
			return false
		}
	}
	return i == len(text) || !p.toEnd
}

// read fills steps and reports whether the expression can be written so.
func (p *pattern) read(tree *syntax.Regexp) bool {
	parts := []*syntax.Regexp{tree}
	if tree.Op == syntax.OpConcat {
		parts = tree.Sub
	}
	if len(parts) == 0 || parts[0].Op != syntax.OpBeginText {
		return false
	}
	parts = parts[1:]
	if n := len(parts); n > 0 && parts[n-1].Op == syntax.OpEndText {
		p.toEnd = true
		parts = parts[:n-1]
	}
	for _, part := range parts {
		if !p.add(part) {
			return false
		}
	}
	return true
}

func (p *pattern) add(part *syntax.Regexp) bool {
	least, limit := 1, 1
	switch part.Op {
	case syntax.OpCapture:
		return p.add(part.Sub[0])
	case syntax.OpConcat:
		return !slices.ContainsFunc(part.Sub, func(sub *syntax.Regexp) bool { return !p.add(sub) })
	case syntax.OpEmptyMatch:
		return true
	case syntax.OpLiteral:
		if part.Flags&syntax.FoldCase != 0 {
			return false
		}
		for _, r := range part.Rune {
			p.addSet([]rune{r, r}, 1, 1)
		}
		return true
	case syntax.OpStar:
		least, limit = 0, -1
	case syntax.OpPlus:
		limit = -1
	case syntax.OpQuest:
		least = 0
	case syntax.OpRepeat:
		least, limit = part.Min, part.Max
	}
	if len(part.Sub) == 1 {
		part = part.Sub[0]
	}
	switch {
	case part.Op == syntax.OpCharClass:
		p.addSet(part.Rune, least, limit)
	case part.Op == syntax.OpLiteral && len(part.Rune) == 1 && part.Flags&syntax.FoldCase == 0:
		p.addSet([]rune{part.Rune[0], part.Rune[0]}, least, limit)
	case part.Op == syntax.OpAnyCharNotNL:
		p.addSet([]rune{0, '\n' - 1, '\n' + 1, 0x7f}, least, limit)
	default:
		return false
	}
	return true
}

// addSet adds a step for the ASCII characters of the ranges; the others are left to the expression.
func (p *pattern) addSet(ranges []rune, least, limit int) {
	s := step{min: least, max: limit}
	for i := 0; i < len(ranges); i += 2 {
		for c := ranges[i]; c <= min(ranges[i+1], 0x7f); c++ {
			s.set[c>>6] |= 1 << (c & 63)
		}
	}
	if n := len(p.steps); n > 0 && p.steps[n-1].set == s.set && least == 1 && limit == 1 &&
		p.steps[n-1].min == p.steps[n-1].max {
		p.steps[n-1].min++
		p.steps[n-1].max++
		return
	}
	p.steps = append(p.steps, s)
}

// patterns compiles the regular expressions of one schema, which are bounded together.
type patterns struct {
	size int
	over error // set where they are beyond the bound
}

func (p *patterns) compile(expr string) (jsonschema.Regexp, error) {
	if p.over != nil {
		return nil, p.over
	}
	c, err := newPattern(expr)
	if err != nil {
		return nil, err
	}
	if p.size += c.size; p.size > MaxPatternSize {
		p.over = fmt.Errorf("regular expressions of more than %d instructions", MaxPatternSize)
		return nil, p.over
	}
	return c, nil
}
