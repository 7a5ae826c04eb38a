package dialect

// A grammar is the row of a dialect whose calls are tags around unquoted values: the tags, each with its spellings, and how names and
// values are written in them. The parser tagged reads them all:
//
//	wrap call NAME { param KEY VALUE paramClose } callClose wrapClose
//	<tool_call> <function=write> <parameter=path> a.txt </parameter> </function> </tool_call>
//
// If call is empty, the name follows wrap. If keyClose is set, the key is the content of param, and valueTag opens the value:
//
//	wrap NAME { param KEY keyClose valueTag VALUE paramClose } wrapClose
//	<tool_call>write <arg_key>path</arg_key> <arg_value>a.txt</arg_value> </tool_call>
type grammar struct {
	wrap, wrapClose    []string
	call, callClose    []string
	param, paramClose  []string
	keyClose, valueTag []string
	nameEnd            []string // texts that may follow a name after wrap

	attrs   bool       // names are in an attribute name="…", otherwise they follow the tag, up to `>`
	typed   bool       // the attribute string="true" marks a value as a string
	newline bool       // one newline after the opening tag of a value and one before its closing tag are not part of it
	paired  bool       // the newlines of newline are only removed as a pair; a second one alone is part of the value
	python  bool       // None is read as null
	json    bool       // wrap may contain a JSON object with name and arguments; the text after the name may be JSON in every grammar
	single  bool       // a single parameter `arguments` or `input` that the tool does not declare contains all arguments
	think   thinkMarks // the block of thinking; zero: `<think>`
	drops   []string   // marks without content, such as the end of the turn: the parser removes them
	layout  layout     // the texts with which calls are written
	// reserved are further marks that must be escaped in text from outside when a prompt is written.
	reserved []string

	// messages: the text is a sequence of messages, each with a header that names its recipient.
	messages                bool
	start, message, endings []string

	// All marks, and the role of each by its index; newGrammar sets them.
	list  []string
	roles []role
	marks *marks
}

// A role is the function of a mark in a grammar.
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

// newGrammar numbers the marks and returns the grammar.
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

// role returns the role of a mark by its index. For text and the marks of thinking it is roleText.
func (g *grammar) role(mark int) role {
	if mark < 0 || mark >= len(g.roles) {
		return roleText
	}
	return g.roles[mark]
}

func (g *grammar) parser(o Options) fullParser {
	t := &tagged{attempt: attempt{reader: newReader(o, g.marks)}, grammar: g}
	t.reader.run, t.reader.close = t.read, t.finish
	t.prose = newProse(&t.reader, len(g.list))
	if g.messages {
		t.message.phase = messageHeader
	}
	t.value.init(&t.reader)
	t.value.python = g.python
	t.payload.init(&t.reader, o.MaxPayloadBytes, plainPayload)
	return t
}

// An ArgumentWriter is a [Parser] for a format in which arguments may be written in a form other than JSON. The parser then writes their
// text as JSON. Test for it with a type assertion.
type ArgumentWriter interface {
	// WritesArguments reports whether argument text that the parser has returned was written by the parser. It is always true for a format
	// whose arguments are never JSON.
	WritesArguments() bool
}
