package dialect

import (
	"strings"

	"github.com/lathe-run/lathe"
)

// A gemmaForm is the row of a dialect that writes calls as `call:NAME{key:value,…}` between marks. A string in it is surrounded by quote
// marks of the format, and nothing in the string is escaped.
type gemmaForm struct {
	open, close, quote string
	drops              []string   // marks without content, such as the end of the turn: the parser removes them
	think              thinkMarks // the marks of thinking
	bareThink          string     // another opening of the block of thinking; "" if none exists

	marks *marks
	base  int
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

func (f *gemmaForm) parser(o Options) Parser {
	g := &gemma{attempt: attempt{reader: newReader(o, f.marks)}, f: f}
	g.reader.run, g.reader.close = g.read, g.finish
	g.prose = newProse(&g.reader, f.base)
	g.lit.bare, g.lit.emit = true, g.args
	return g
}

// gemma is the parser of a gemmaForm. It returns the arguments as they arrive. One pair of marks may contain several calls.
type gemma struct {
	attempt
	f     *gemmaForm // the row of the dialect
	state gemmaState
	head  []byte  // the part of `call:NAME` that was read
	lit   literal // reads the arguments
	depth int     // number of open marks in an unreadable call
}

type gemmaState uint8

const (
	gemmaText gemmaState = iota
	gemmaGap             // white space after a call
	gemmaHead
	gemmaArgs
	gemmaTail // after the closing brace of the arguments
	gemmaBad
)

const gemmaCall = "call:"

func (g *gemma) read() {
	for {
		text, mark, ok := g.next()
		if !ok {
			return
		}
		g.scanned(text, mark)
	}
}

// scanned reads one token of the scanner: a run of text (mark is negative) or a mark.
func (g *gemma) scanned(text string, mark int) {
	switch g.state {
	case gemmaText:
		g.outside(text, mark)
	case gemmaGap:
		if !g.inGap(text, mark) {
			g.state = gemmaText
			g.outside(text, mark)
		}
	case gemmaBad:
		g.keep(text)
		g.inBad(mark)
	default:
		g.inside(text, mark)
	}
}

// outside reads a token between calls.
func (g *gemma) outside(text string, mark int) {
	if mark == g.f.base+2 {
		mark = g.f.base
	}
	switch {
	case mark < 0:
		g.prose.text(text)
	case g.prose.mark(mark, text):
	case mark == gemmaOpen:
		g.begin(text)
		g.head = g.head[:0]
		g.state = gemmaHead
	case mark == gemmaQuote:
		g.prose.text(text)
	default: // a closing mark without an opening one, or the end of the turn
		g.raw = g.raw[:0]
		g.state = gemmaGap
	}
}

// inside reads a token inside a call.
func (g *gemma) inside(text string, mark int) {
	if g.state == gemmaArgs {
		switch {
		case mark == gemmaQuote && g.lit.atMark():
			if g.lit.state == literalBad {
				g.reject(text, mark)
			} else {
				g.keep(text)
			}
		case mark < 0 || g.lit.inString():
			g.value(text)
		default:
			g.reject(text, mark)
		}
		return
	}
	switch {
	case mark == gemmaClose && g.state == gemmaTail && len(g.head) == 0:
		g.end(false)
		g.leave()
		g.state = gemmaGap
	case mark < 0:
		g.structure(text)
	default:
		g.reject(text, mark)
	}
}

// structure reads `call:NAME{`, at the beginning of a call and after the arguments of the one before.
func (g *gemma) structure(text string) {
	for text != "" {
		c := text[0]
		switch {
		case space(c) && len(g.head) == 0:
			if g.full(text[:1]) {
				g.spoil(lathe.CodePayloadTooLarge)
				g.keep(text)
				return
			}
		case c == '{' && len(g.head) > len(gemmaCall):
			name := strings.TrimSpace(string(g.head[len(gemmaCall):]))
			if !g.means(name) && (name == "" || strings.ContainsAny(name, "}[]<>\n\t ")) {
				g.reject(text, -1)
				return
			}
			g.name = g.toolName([]byte(name))
			g.start("", g.name, false)
			g.lit.reset()
			g.state = gemmaArgs
			g.value(text)
			return
		case len(g.head) >= len(gemmaCall)+maxNameBytes || len(g.head) < len(gemmaCall) && c != gemmaCall[len(g.head)]:
			g.reject(text, -1)
			return
		case g.state == gemmaTail: // the name of a further call may begin here
			text = text[1:]
			if g.head = append(g.head, c); len(g.head) == len(gemmaCall) {
				g.end(false)
				g.begin(gemmaCall)
				g.state = gemmaHead
			}
			continue
		default:
			g.head = append(g.head, c)
		}
		g.keep(text[:1])
		text = text[1:]
	}
}

// value reads the next part of the arguments.
func (g *gemma) value(text string) {
	for text != "" && g.lit.state < literalDone {
		n := g.lit.scan(text[:g.fit(text)])
		g.keep(text[:n])
		text = text[n:]
	}
	switch g.lit.state {
	case literalDone:
		g.head = g.head[:0]
		g.state = gemmaTail
		g.structure(text)
	case literalBad:
		g.reject(text, -1)
	}
}

// reject marks the call as unreadable because of text or mark, which the syntax does not allow here.
func (g *gemma) reject(text string, mark int) {
	if g.state == gemmaTail {
		g.keep(string(g.head))
	}
	g.spoil(lathe.CodePayloadParseError)
	g.keep(text)
	g.inBad(mark)
}

// spoil marks the call as unreadable, with code.
func (g *gemma) spoil(code lathe.Code) {
	g.ruin(code)
	g.depth, g.state = 1, gemmaBad
}

// inBad counts the nested marks in an unreadable call, and ends the call at the closing mark that matches its first.
func (g *gemma) inBad(mark int) {
	switch mark {
	case gemmaOpen:
		g.depth++
	case gemmaClose:
		g.depth--
	}
	if g.depth == 0 {
		g.giveUp()
		g.state = gemmaText
	}
}

// finish ends the text: it closes or reports the call that is open.
func (g *gemma) finish() {
	switch g.state {
	case gemmaHead:
		g.cut = true
		g.spoil(lathe.CodeIncompleteCall)
		g.giveUp()
	case gemmaArgs:
		g.end(true)
	case gemmaTail:
		g.end(false)
	case gemmaBad:
		g.giveUp()
	}
}
