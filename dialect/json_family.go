package dialect

import "slices"

// A jsonFamily is the row of a dialect whose calls are JSON inside a tag or after a mark: the marks, the text between a mark and its
// JSON, and the names of the JSON's members. The parser jsonParser reads them all.
type jsonFamily struct {
	blocks   []jsonBlock
	sections [][2]string // marks before and after a sequence of calls
	drops    []string    // marks without content, such as the end of the turn or the begin of the answer: the parser removes them
	cites    bool        // citations `<co>…</co: 0:[1]>`: the parser removes the marks and emits the text
	think    thinkMarks  // the block of thinking; zero: `<think>`
	// special: the marks of thinking are special tokens, which no text contains. They open a block anywhere, and a closing mark without a
	// block is dropped.
	special bool
	// starts: the text begins inside the first block, because the prompt ends with the block's mark.
	starts bool
	id     idRule // where the id of a call comes from
	// reserved are further marks that must be escaped in text from outside when a prompt is written.
	reserved []string

	// All marks, and the kind of each by its index; newJSONFamily sets them.
	list  []string
	kinds []jsonMark
	marks *marks
}

// A jsonBlock describes text that begins with one of the marks opens and contains one call or a list of calls.
type jsonBlock struct {
	opens []string   // the marks that open the block
	keep  int        // number of bytes at the end of the mark that belong to the JSON
	head  []headPart // the parts between the mark and the JSON; if none exist, the JSON contains the name
	close string     // the mark that ends the block; "" if the block ends with its JSON
	fence bool       // the JSON may stand in a code fence
	// quiet: the mark also occurs in text. Only the name of an offered tool makes a call, and all else is text without an error.
	quiet  bool
	plain  string      // a name that marks text instead of a call; "" if none exists
	object *objectForm // the members of a call; nil: the JSON is the arguments alone
	// builtin: NAME.call(KEY=VALUE) may replace the JSON.
	builtin bool
}

// A headPart is one part of the head of a block: a word, ended by one of ends. The head `NAME[CALL_ID]ID[ARGS]` has two parts.
type headPart struct {
	field headField
	ends  []headEnd
	json  bool // the JSON may follow without one of ends
}

// A headEnd is a text that ends a part, and the index of the part that follows; the JSON follows if next is the number of parts.
type headEnd struct {
	mark string
	next int
}

type headField uint8

const (
	headName   headField = iota
	headID               // an id
	headIDName           // an id that contains the name: functions.NAME:0
)

// An idRule determines the id of a call.
type idRule uint8

const (
	idMade     idRule = iota // the model's id, or a generated one if it writes none
	idPosition               // numbers are positions in the message and are replaced by generated ids
	idLate                   // nine letters and digits, which may follow the arguments
	idInName                 // functions.NAME:0
)

// A jsonMark is the function of a mark in a family.
type jsonMark struct {
	kind markKind
	n    int // index of the block or section
}

type markKind uint8

const (
	markOpen markKind = iota
	markClose
	markSection
	markSectionEnd
	markDrop
	markCite
)

// newJSONFamily numbers the marks and returns the family.
func newJSONFamily(f jsonFamily) *jsonFamily {
	add := func(text string, kind markKind, n int) {
		if slices.Contains(f.list, text) {
			return
		}
		f.list = append(f.list, text)
		f.kinds = append(f.kinds, jsonMark{kind, n})
	}
	for i, b := range f.blocks {
		for _, text := range b.opens {
			add(text, markOpen, i)
		}
	}
	for i, s := range f.sections {
		add(s[0], markSection, i)
		add(s[1], markSectionEnd, i)
	}
	for i, b := range f.blocks {
		if len(b.close) > 1 && !b.quiet {
			add(b.close, markClose, i)
		}
	}
	for _, text := range f.drops {
		add(text, markDrop, 0)
	}
	if f.cites {
		add("<co>", markDrop, 0)
		add("</co:", markCite, 0)
	}
	if f.think == (thinkMarks{}) {
		f.think = plainThink
	}
	f.marks = newMarks(false, withThink(f.list, f.think)...)
	return &f
}

func (f *jsonFamily) parser(o Options) fullParser {
	p := &jsonParser{reader: newReader(o, f.marks), family: f}
	p.reader.run, p.reader.close = p.read, p.finish
	p.prose = newProse(&p.reader, len(f.list))
	for _, b := range f.blocks {
		p.joins = p.joins || b.quiet
	}
	p.object = callObject{r: &p.reader, opens: p.opens, accepts: p.accepts}
	p.builtin.init(p)
	if f.starts {
		p.openBlock(0, "")
	}
	return p
}
