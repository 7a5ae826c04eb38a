package dialect

import (
	"slices"
	"strings"
	"sync"

	"github.com/lathe-run/lathe"
)

// NewAuto returns a parser for text of unknown dialect. It selects the dialect by the first mark of a dialect in the text, such as
// <tool_call>. The text before that mark is text or reasoning. Marks in Markdown code do not count. The parser is a [Chooser]. opts may be
// nil.
func NewAuto(opts *Options) Parser { return auto.NewParser(opts) }

// A Chooser is a [Parser] that detects which dialect it reads. Test for it with a type assertion.
type Chooser interface {
	// Chosen returns the name of the dialect that the parser has detected, or "" before the first mark.
	Chosen() string
}

// An autoParser reads prose up to the first mark of a dialect, and passes all text from that mark on to the parser of the dialect.
type autoParser struct {
	reader
	prose    prose
	dialects []*Dialect // the dialect of each mark, by the number of the mark
	chosen   *Dialect   // nil before the first mark
	parser   fullParser // the parser of chosen
}

// An autoMarks holds the marks that autoParser searches for: the openings of all dialects and the marks of thinking.
type autoMarks struct {
	marks    *marks
	dialects []*Dialect // the dialect of each opening, by the number of its mark
}

var (
	currentOpenings = sync.OnceValue(func() autoMarks {
		return openings(func(d *Dialect) []string { return slices.Concat(d.marks, d.ownMarks) })
	})
	// allOpenings includes those of deprecated syntax.
	allOpenings = sync.OnceValue(func() autoMarks {
		return openings(func(d *Dialect) []string { return slices.Concat(d.marks, d.ownMarks, d.oldMarks) })
	})
)

// openings returns the openings of all dialects of the table.
func openings(of func(*Dialect) []string) autoMarks {
	var all autoMarks
	var list []string
	for _, d := range table {
		for _, mark := range of(d) {
			list = append(list, strings.ToLower(mark))
			all.dialects = append(all.dialects, d)
		}
	}
	all.marks = newMarks(true, withThink(list, plainThink)...)
	return all
}

func newAuto(o Options) fullParser {
	all := currentOpenings()
	if o.AllowDeprecatedSyntax {
		all = allOpenings()
	}
	a := &autoParser{reader: newReader(o, all.marks), dialects: all.dialects}
	a.reader.run = a.read
	a.prose = newProse(&a.reader, len(all.dialects))
	return a
}

func (a *autoParser) Chosen() string {
	if a.chosen == nil {
		return ""
	}
	return a.chosen.name
}

func (a *autoParser) Anomalies() Anomalies {
	if a.parser == nil {
		return Anomalies{}
	}
	return a.parser.Anomalies()
}

func (a *autoParser) WritesArguments() bool { return a.parser != nil && a.parser.WritesArguments() }

func (a *autoParser) Flush(dst []lathe.Delta) ([]lathe.Delta, error) {
	dst, err := a.reader.Flush(dst)
	if a.parser != nil {
		return a.parser.Flush(dst)
	}
	return dst, err
}

func (a *autoParser) read() {
	for a.parser == nil {
		text, mark, ok := a.next()
		switch {
		case !ok:
			return
		case mark < 0:
			a.prose.text(text)
		case !a.prose.mark(mark, text):
			a.chosen = a.dialects[mark]
			a.opts.ThinkingStartsOpen = false
			a.parser = a.chosen.parser(a.opts)
			a.out = a.parser.Append(a.out, text)
		}
	}
	a.out = a.parser.Append(a.out, a.take(len(a.in)))
}
