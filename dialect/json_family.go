package dialect

// A jsonFamily is the row of a dialect whose calls are JSON inside a tag or after a mark: the
// marks, what stands between a mark and its JSON, and what the JSON's members are called. One
// parser, jsonParser, reads them all.
type jsonFamily struct {
	blocks   []jsonBlock
	sections [][2]string // marks around one call after another
	drops    []string    // marks that say nothing: the end of the turn, the begin of the answer
	cites    bool        // citations `<co>…</co: 0:[1]>`: the text stays, the marks go
	think    thinkMarks  // the block of thinking; zero: `<think>`
	// special says that the marks of thinking are tokens that no text holds: they open anywhere,
	// and one that closes nothing says nothing.
	special bool
	// starts says that the text begins inside of the first block, whose mark is in the prompt.
	starts bool
	id     idRule
	// reserved are further marks that text from outside must not hold when it is written.
	reserved []string

	list  []string
	kinds []jsonMark // by mark
	marks *marks
}

// A jsonBlock opens with a mark and holds one call or a list of calls.
type jsonBlock struct {
	opens []string
	keep  int        // bytes at the mark's end that belong to the JSON
	head  []headPart // what stands between the mark and the JSON; none: the JSON holds the name
	close string     // "": the block ends with its JSON
	fence bool       // the JSON may stand in a code fence
	// quiet says that the mark occurs in text too: only a tool that was offered makes a call,
	// and what is none stays text and is no error.
	quiet  bool
	plain  string // a name that stands before text
	object *objectForm
	// builtin says that NAME.call(KEY=VALUE) may stand in place of the JSON.
	builtin bool
}

// A headPart is a piece of a block's head, up to one of its ends.
type headPart struct {
	field headField
	ends  []headEnd
	json  bool // JSON may come without an end
}

// A headEnd is a mark and the part that follows it; past the last part comes the JSON.
type headEnd struct {
	mark string
	next int
}

type headField uint8

const (
	headName   headField = iota
	headID               // an id
	headIDName           // an id that holds the name: functions.NAME:0
)

// An idRule says where a call's id comes from.
type idRule uint8

const (
	idMade     idRule = iota // the model's where there is one, else it is made
	idPosition               // numbers are positions within the message and are not taken
	idLate                   // nine letters and digits; it may come after the arguments
	idInName                 // functions.NAME:0
)

// A jsonMark says what a mark is.
type jsonMark struct {
	kind markKind
	n    int // of the block or section
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

// newJSONFamily numbers the marks.
func newJSONFamily(f jsonFamily) *jsonFamily {
	add := func(text string, kind markKind, n int) {
		for _, have := range f.list {
			if have == text {
				return
			}
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

func (f *jsonFamily) parser(o Options) Parser {
	p := &jsonParser{reader: newReader(o, f.marks), f: f}
	p.reader.run, p.reader.close = p.read, p.finish
	p.prose = newProse(&p.reader, len(f.list))
	for _, b := range f.blocks {
		p.joins = p.joins || b.quiet
	}
	p.object = callObject{r: &p.reader, opens: p.opens, accepts: p.accepts}
	p.builtin.init(p)
	if f.starts {
		p.openBlock(0, "", 0)
	}
	return p
}
