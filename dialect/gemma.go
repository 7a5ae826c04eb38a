package dialect

import (
	"strings"

	"github.com/lathe-run/lathe"
)

// A gemmaForm is the row of a dialect that writes calls as `call:NAME{key:value,…}` between marks. A string in it is surrounded by quote
// marks of the format, and nothing in the string is escaped:
//
//	<|tool_call>call:write{path:<|"|>a.txt<|"|>,n:3}call:list{}<tool_call|>
type gemmaForm struct {
	open, close, quote string
	drops              []string   // marks without content, such as the end of the turn: the parser removes them
	think              thinkMarks // the marks of thinking
	bareThink          string     // another opening of the block of thinking; "" if none exists

	marks *marks
	base  int // index in marks of the opening mark of think; its closing mark and bareThink follow
}

// The marks of a gemmaForm by their index in the list of marks; drops follow from gemmaDrops.
const (
	gemmaOpen = iota
	gemmaClose
	gemmaQuote
	gemmaDrops
)

func newGemmaForm(f gemmaForm) *gemmaForm {
	list := append([]string{f.open, f.close, f.quote}, f.drops...)
	f.base = len(list)
	list = withThink(list, f.think)
	if f.bareThink != "" {
		list = append(list, f.bareThink)
	}
	f.marks = newMarks(false, list...)
	return &f
}

func (f *gemmaForm) parser(o Options) fullParser {
	g := &gemma{attempt: attempt{reader: newReader(o, f.marks), opens: gemmaOpen, closes: gemmaClose}, form: f}
	g.reader.run, g.reader.close = func() { g.readTokens(g) }, g.finish
	g.prose = newProse(&g.reader, f.base)
	g.lit.bare, g.lit.emit = true, g.args
	return g
}

// gemma is the parser of a gemmaForm. It returns the arguments as they arrive. One pair of marks may contain several calls.
type gemma struct {
	attempt
	form  *gemmaForm // the row of the dialect
	state gemmaState // the part of the call
	head  []byte     // the part of `call:NAME` that was read
	lit   literal    // reads the arguments
}

type gemmaState uint8

const (
	gemmaHead gemmaState = iota
	gemmaArgs
	gemmaTail // after the closing brace of the arguments
)

const gemmaCall = "call:"

// outside reads a token between calls.
func (g *gemma) outside(text string, mark int) {
	if mark == g.form.base+2 { // bareThink
		mark = g.form.base
	}
	switch {
	case mark < 0:
		g.prose.text(text)
	case g.prose.mark(mark, text): // the mark belongs to the prose, which has read it
	case mark == gemmaOpen:
		g.begin(text)
		g.head = g.head[:0]
		g.place, g.state = insideCall, gemmaHead
	case mark == gemmaQuote:
		g.prose.text(text)
	default: // a closing mark without an opening one, or the end of the turn
		g.raw = g.raw[:0]
		g.place = afterCall
	}
}

// inside reads a token inside a call.
func (g *gemma) inside(text string, mark int) {
	switch {
	case g.state == gemmaArgs:
		g.argToken(text, mark)
	case g.state == gemmaTail && mark == gemmaClose && len(g.head) == 0:
		g.end(whole)
		g.leave()
		g.place = afterCall
	case mark < 0:
		g.readHead(text)
	default:
		g.reject(text, mark)
	}
}

// argToken reads a token inside the arguments.
func (g *gemma) argToken(text string, mark int) {
	inQuotes := g.lit.inString() && g.lit.state != literalRaw // the mark is text there
	switch {
	case mark == gemmaQuote && !inQuotes:
		g.lit.stringMark()
		if g.lit.state == literalBad {
			g.reject(text, mark)
		} else {
			g.keep(text)
		}
	case mark < 0 || g.lit.inString():
		g.readArgs(text)
	default:
		g.reject(text, mark)
	}
}

// readHead reads `call:NAME{`, at the beginning of a call and after the arguments of the one before.
func (g *gemma) readHead(text string) {
	for ; text != ""; text = text[1:] {
		c := text[0]
		isBlank := space(c) && len(g.head) == 0 // before `call:`
		switch {
		case isBlank && g.full(text[:1]):
			g.becomeUnreadable(lathe.CodePayloadTooLarge)
			g.keep(text)
			return
		case isBlank:
			g.keep(text[:1])
		case c == '{' && len(g.head) > len(gemmaCall):
			g.openCall(text)
			return
		case !g.headContinues(c):
			g.reject(text, -1)
			return
		default:
			g.addHead(text[:1])
		}
	}
}

// headContinues reports whether c may follow head in `call:NAME`.
func (g *gemma) headContinues(c byte) bool {
	n := len(g.head)
	if n < len(gemmaCall) {
		return c == gemmaCall[n]
	}
	return n < len(gemmaCall)+maxNameBytes
}

// addHead appends s, one byte, to head. After the arguments of a call, that call remains open until `call:` shows that a further one begins.
func (g *gemma) addHead(s string) {
	g.head = append(g.head, s...)
	switch {
	case g.state == gemmaHead:
		g.keep(s)
	case len(g.head) == len(gemmaCall):
		g.end(whole)
		g.begin(gemmaCall)
		g.state = gemmaHead
	}
}

// openCall opens the call whose name ends head; text are its arguments.
func (g *gemma) openCall(text string) {
	name := strings.TrimSpace(string(g.head[len(gemmaCall):]))
	if !g.means(name) && (name == "" || strings.ContainsAny(name, "}[]<>\n\t ")) {
		g.reject(text, -1)
		return
	}
	g.name = g.toolName([]byte(name))
	g.start("", g.name)
	g.lit.reset()
	g.state = gemmaArgs
	g.readArgs(text)
}

// readArgs reads the next part of the arguments.
func (g *gemma) readArgs(text string) {
	for text != "" && g.lit.state < literalDone {
		n := g.lit.scan(text[:g.checkLimit(text)])
		g.keep(text[:n])
		text = text[n:]
	}
	switch g.lit.state {
	case literalDone:
		g.head = g.head[:0]
		g.state = gemmaTail
		g.readHead(text)
	case literalBad:
		g.reject(text, -1)
	}
}

// reject marks the call as unreadable; the part of a further call that was read belongs to it.
func (g *gemma) reject(text string, mark int) {
	if g.state == gemmaTail {
		g.keep(string(g.head))
	}
	g.attempt.reject(text, mark)
}

// finish ends the text: it closes or reports the call that is open.
func (g *gemma) finish() {
	switch {
	case g.place == insideUnreadable:
		g.endUnreadable()
	case g.place != insideCall:
	case g.state == gemmaHead:
		g.cut = true
		g.becomeUnreadable(lathe.CodeIncompleteCall)
		g.endUnreadable()
	default:
		g.end(g.state == gemmaArgs)
	}
}
