package dialect

// thinkBlocks are the marks of thinking that [NewThink] recognizes.
var thinkBlocks = []thinkMarks{plainThink, {"<seed:think>", "</seed:think>"}, {"[THINK]", "[/THINK]"},
	{"<|START_THINKING|>", "<|END_THINKING|>"}}

var onlyThinkMarks = newMarks(false, withThink(nil, thinkBlocks...)...)

// NewThink returns a parser that returns the text between think marks, such as <think>, as reasoning, and reads no calls. It is for models that
// make native calls and write their reasoning into their text. opts may be nil.
func NewThink(opts *Options) Parser {
	return withPrefix(func(o Options) fullParser {
		t := &thinkParser{reader: newReader(o, onlyThinkMarks)}
		t.reader.run = t.read
		t.prose = newProse(&t.reader, 0)
		return t
	}, opts)
}

type thinkParser struct {
	reader
	prose prose
}

func (t *thinkParser) read() {
	for {
		text, mark, ok := t.next()
		switch {
		case !ok:
			return
		case mark < 0:
			t.prose.text(text)
		default:
			t.prose.mark(mark, text)
		}
	}
}
