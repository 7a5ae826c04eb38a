package dialect

// A grammar is the row of a dialect whose calls are tags around raw values: the tags, each with
// its spellings, and what is written inside of them. One parser, tagged, reads them all:
//
//	wrap [ call NAME callEnd ] { param KEY paramEnd VALUE close } closeCall closeWrap
//
// Where call is missing, the name stands behind the wrapper; where keyEnd is set, the key stands
// behind param, and a tag of its own opens the value.
type grammar struct {
	wrap, wrapClose    []string
	call, callClose    []string
	param, paramClose  []string
	keyClose, valueTag []string
	nameEnd            []string // may stand after a name behind the wrapper

	attrs   bool // names stand in an attribute name="…", else behind the tag, up to `>`
	typed   bool // the attribute string="true" says that a value is a string
	newline bool // one newline after the opening tag of a value and one before its closing tag are not part of it
	paired  bool // they are only together, for the template writes none: without the first the second is part of the value
	python  bool // None is null
	json    bool // the wrapper may hold a JSON object with name and arguments; what follows the name may be JSON in every grammar
	single  bool // an only parameter `arguments` or `input` that the tool does not have is the whole arguments
	think   thinkMarks
	drops   []string // marks that say nothing: the end of the turn
	layout  layout
	// reserved are further marks that text from outside must not hold when it is written.
	reserved []string

	// messages says that the text is a row of messages, each with a header that names whom it is for.
	messages                bool
	start, message, endings []string

	list  []string
	roles []role
	marks *marks
}

// A role says what a mark is.
type role uint8

const (
	roleText role = iota
	roleWrap
	roleWrapClose
	roleCall
	roleCallClose
	roleParam
	roleParamClose
	roleKeyClose
	roleValue
	roleNameEnd
	roleStart
	roleMessage
	roleEnd
	roleDrop
)

// newGrammar numbers the marks.
func newGrammar(g grammar) *grammar {
	add := func(list []string, r role) {
		for _, text := range list {
			g.list = append(g.list, text)
			g.roles = append(g.roles, r)
		}
	}
	add(g.wrap, roleWrap)
	add(g.wrapClose, roleWrapClose)
	add(g.call, roleCall)
	add(g.callClose, roleCallClose)
	add(g.param, roleParam)
	add(g.paramClose, roleParamClose)
	add(g.keyClose, roleKeyClose)
	add(g.valueTag, roleValue)
	add(g.nameEnd, roleNameEnd)
	add(g.start, roleStart)
	add(g.message, roleMessage)
	add(g.endings, roleEnd)
	add(g.drops, roleDrop)
	if g.think == (thinkMarks{}) {
		g.think = plainThink
	}
	g.marks = newMarks(false, withThink(g.list, g.think)...)
	return &g
}

// role returns what the mark is; the marks of thinking are text to it.
func (g *grammar) role(mark int) role {
	if mark < 0 || mark >= len(g.roles) {
		return roleText
	}
	return g.roles[mark]
}

func (g *grammar) parser(o Options) Parser {
	t := &tagged{attempt: attempt{reader: newReader(o, g.marks)}, g: g}
	t.reader.run, t.reader.close = t.read, t.finish
	t.prose = newProse(&t.reader, len(g.list))
	t.turn.header = g.messages
	t.value.init(&t.reader)
	t.value.python = g.python
	t.payload.init(&t.reader, o.MaxPayloadBytes, plainPayload)
	return t
}

// An ArgumentWriter is a [Parser] of a format whose arguments are not JSON: the parser writes the argument text as
// JSON. For a format with both kinds, WritesArguments reports
// whether the parser has read such arguments. Test for it with a type assertion.
type ArgumentWriter interface {
	WritesArguments() bool
}

func writesArguments(p Parser) bool {
	w, ok := p.(ArgumentWriter)
	return ok && w.WritesArguments()
}

func (w wrapped) WritesArguments() bool     { return writesArguments(w.Parser) }
func (a *autoParser) WritesArguments() bool { return writesArguments(a.parser) }
