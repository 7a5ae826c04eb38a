package openai

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// A call is a call of an answer, as far as it was received.
type call struct {
	n        int   // number of the call within the turn
	index    int64 // index on the wire
	hasIndex bool
	id, name string
	args     text
	braces   bool // the arguments so far are {}, which may be a placeholder and are buffered
	started  bool // DeltaCallStart was emitted
	again    bool // its name was repeated after its arguments were complete: further arguments belong to another call
	ended    bool // DeltaCallEnd was emitted
	extra    []lathe.Member

	line    int // number of the chunk that contained the last piece
	balance balance
}

// A balance reports, as argument text grows, whether the text is one complete JSON value: all brackets are closed and nothing follows. The
// text within brackets need not be valid. Each byte is scanned once.
type balance struct {
	at, depth         int
	inString, escaped bool
	closed, over      bool // closed: the value is complete; over: something follows it
}

func (b *balance) whole(s string) bool {
	for ; b.at < len(s); b.at++ {
		c := s[b.at]
		switch {
		case b.inString:
			switch {
			case b.escaped:
				b.escaped = false
			case c == '\\':
				b.escaped = true
			case c == '"':
				b.inString = false
				b.closed = b.depth == 0
			}
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
		case b.closed:
			b.over = true
		case c == '"':
			b.inString = true
		case c == '{' || c == '[':
			b.depth++
		case c == '}' || c == ']':
			b.depth--
			b.closed = b.depth <= 0
		}
	}
	return b.closed && !b.over
}

// whole reports whether the arguments are one complete JSON value.
func (c *call) whole() bool {
	if c.braces {
		return true
	}
	s := c.args.b.String()
	if len(s) > 0 && len(s) < 32 && strings.IndexByte(`{["`, s[0]) < 0 { // a number, true, false, null
		end, err := rawjson.Scan([]byte(s), 0)
		return err == nil && end == len(s)
	}
	return c.balance.whole(s)
}

// A pieceKey is what a piece has to determine its call.
type pieceKey struct {
	id, name []byte // nil if it has none
	index    int64
	hasIndex bool
	pos      int // position of the piece in its chunk
}

// takePiece reads the element of tool_calls at position pos of its chunk.
func (a *Assembler) takePiece(p *piece, pos int) {
	in := &a.chunk
	key := pieceKey{pos: pos}
	if p.id.ok() {
		key.id = p.id.body()
	}
	if p.name.isString() {
		key.name = p.name.body()
	}
	key.index, key.hasIndex = a.wireIndex(p)
	if !p.name.ok() && !p.args.ok() && p.typ.ok() && string(p.typ) != `"function"` {
		a.Fault(FaultUnknownContent)
		return
	}
	c := a.find(p, key)
	isEmpty := !p.args.ok() || string(p.args) == `""`
	if c == nil && isEmpty && len(key.id)+len(key.name)+len(a.announced) == 0 {
		a.Fault(faultCallsMalformed) // an empty piece begins no call
		return
	}
	if c == nil {
		if len(a.calls) >= a.Opts.MaxCalls {
			a.Err = wire.ErrTooManyCalls
			return
		}
		a.endWhole()
		c = &call{n: len(a.calls), index: key.index, hasIndex: key.hasIndex, name: a.announced}
		a.announced = ""
		if !key.hasIndex && !in.whole {
			a.Fault(faultIndexMissing)
		}
		if len(key.id) > 0 && a.byID(key.id) != nil {
			a.Fault(faultIDDuplicate)
		}
		a.calls = append(a.calls, c)
	}
	c.line = a.line
	a.current = c
	a.takeID(c, p, key.id)
	a.takeName(c, p, key.name)
	for i := range p.extra {
		c.extra = a.mergeExtra(c.extra, &p.extra[i])
	}
	a.takeArgs(c, p)
}

func (a *Assembler) takeArgs(c *call, p *piece) {
	switch {
	case !p.args.ok(), string(p.args) == `""`:
	case p.args.isString():
		a.Grow(len(p.args.body()))
		a.addArgs(c, p.args.body(), (*text).add)
	default:
		a.Fault(faultArgsNotText)
		a.Grow(len(p.args))
		a.addArgs(c, p.args, (*text).addRaw)
	}
}

// wireIndex returns the index of a piece; false if it is missing or not valid.
func (a *Assembler) wireIndex(p *piece) (int64, bool) {
	if !p.index.ok() {
		return 0, false
	}
	raw := p.index.body()
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || n < 0 {
		a.Fault(faultIndexInvalid)
		return 0, false
	}
	return n, true
}

func (a *Assembler) byID(id []byte) *call {
	for _, c := range slices.Backward(a.calls) {
		if c.id == string(id) {
			return c
		}
	}
	return nil
}

func (a *Assembler) byIndex(index int64) *call {
	for _, c := range slices.Backward(a.calls) {
		if c.hasIndex && c.index == index {
			return c
		}
	}
	return nil
}

// find returns the call to which a piece belongs, or nil if the piece begins a new call. The comment of Assembler states the rules.
func (a *Assembler) find(p *piece, key pieceKey) *call {
	switch {
	case a.chunk.whole || len(a.calls) == 0:
		return nil // each element of a complete message is a separate call
	case key.hasIndex:
		return a.findIndexed(p, key)
	}
	id, name, last := key.id, key.name, a.current
	if c := a.byID(id); c != nil && len(id) > 0 {
		if a.begins(c, p, key) {
			return nil
		}
		return c
	}
	switch {
	case len(name) == 0 && len(id) == 0 && len(a.chunk.pieces) > 1 && key.pos < len(a.calls):
		return a.calls[key.pos]
	case len(name) == 0 || last.name == "":
		return last // the name may be received late
	case last.name != string(name) || a.begins(last, p, key):
		return nil
	case len(id) > 0 && last.id != "" && last.args.b.Len() == 0:
		return nil // two calls without arguments
	}
	return last
}

// findIndexed is find for a piece with an index.
func (a *Assembler) findIndexed(p *piece, key pieceKey) *call {
	if c := a.byIndex(key.index); c != nil {
		if a.begins(c, p, key) {
			a.Fault(faultIndexReused)
			return nil
		}
		return a.findAnnounced(c, p, key)
	}
	c := a.current // for a piece without id and name, if its arguments are incomplete
	switch {
	case len(key.id) > 0 && len(key.name) == 0:
		c = a.byID(key.id)
	case len(key.id)+len(key.name)+len(a.announced) > 0 || c.whole():
		return nil
	}
	if c != nil {
		a.Fault(FaultIndexChanged) // the index differs from that of its first piece
	}
	return c
}

// findAnnounced returns c, or nil if a piece with the index of c begins a new call. That is so if the arguments of c are complete, an
// earlier piece only repeated the name, and this piece contains the beginning of arguments.
func (a *Assembler) findAnnounced(c *call, p *piece, key pieceKey) *call {
	switch {
	case len(key.id) > 0 || !c.whole():
	case len(key.name) > 0:
		c.again = c.name == string(key.name)
	case c.again && a.beginsArgs(p):
		a.Fault(faultIndexReused)
		a.announced = c.name
		return nil
	}
	return c
}

// begins reports whether a piece begins a new call although its index or id is that of c. If the piece only repeats c, it removes the
// arguments from the piece.
func (a *Assembler) begins(c *call, p *piece, key pieceKey) bool {
	id, name := key.id, key.name
	if len(name) == 0 || c.name == "" {
		return false
	}
	otherID := len(id) > 0 && c.id != "" && c.id != string(id)
	otherName := c.name != string(name)
	switch {
	case otherID && (otherName || c.line == a.line):
		return true
	case !c.whole():
		return false
	case otherID || otherName:
		return true
	case !a.beginsArgs(p):
		return false
	case len(id) > 0 && a.sameArgs(c, p):
		a.Fault(FaultCallRepeated)
		p.args = nil
		return false
	}
	return true
}

// beginsArgs reports whether the arguments in a piece look like the beginning of arguments: a bracket, or a quoted string.
func (a *Assembler) beginsArgs(p *piece) bool {
	if !p.args.ok() {
		return false
	}
	raw := p.args
	if raw[0] == '"' {
		raw = bytes.TrimLeft(raw[1:], " ")
	}
	return raw[0] == '{' || raw[0] == '[' || bytes.HasPrefix(raw, []byte(`\"`))
}

// sameArgs reports whether the arguments of a piece equal those of the call.
func (a *Assembler) sameArgs(c *call, p *piece) bool {
	raw := p.args
	if raw[0] == '"' {
		raw = unquoted(raw)
	}
	if c.braces {
		return string(raw) == "{}"
	}
	return string(raw) == c.args.b.String()
}

func (a *Assembler) takeID(c *call, p *piece, id []byte) {
	switch {
	case len(id) == 0 || c.id == string(id):
	case c.id == "":
		if c.started || c.name != "" {
			a.Fault(faultIDLate)
		}
		c.id = a.keep(p.id)
	case bytes.IndexByte(id, '\\') >= 0 && c.id == string(unquoted(p.id)):
	default:
		a.Fault(faultIDChanged)
	}
}

func (a *Assembler) takeName(c *call, p *piece, name []byte) {
	switch {
	case len(name) == 0:
	case c.name == "":
		if c.started || c.braces {
			a.Fault(faultNameLate)
		}
		c.name = a.keep(p.name)
	case c.name == string(name):
		a.Fault(faultNameRepeated)
	default:
		more := a.keep(p.name)
		if more == c.name {
			a.Fault(faultNameRepeated)
			return
		}
		a.Fault(faultNameSplit)
		if strings.HasPrefix(more, c.name) {
			c.name = more
		} else {
			c.name += more
			a.Grow(len(c.name))
		}
	}
}

// addArgs adds text to the arguments of c. If the arguments are only {}, which may be a placeholder, they are buffered.
func (a *Assembler) addArgs(c *call, body []byte, add func(*text, []byte, *damage) string) {
	if c.args.b.Len() == 0 {
		if string(body) == "{}" {
			c.braces = true
			return
		}
		if c.braces {
			c.braces = false
			a.Fault(faultArgsReplaced)
		}
	}
	a.start(c)
	a.EmitText(lathe.DeltaCallArgs, c.n, add(&c.args, body, &a.damage))
}

// start emits DeltaCallStart for c and for all earlier calls, unless they were emitted.
func (a *Assembler) start(c *call) {
	if c.started {
		return
	}
	if c.n > 0 {
		a.start(a.calls[c.n-1])
	}
	c.started = true
	a.Emit(lathe.Delta{Kind: lathe.DeltaCallStart, Index: c.n, ID: c.id, Name: c.name})
}

// endWhole ends all calls whose arguments are complete. It is called when another call begins.
func (a *Assembler) endWhole() {
	for _, c := range a.calls {
		if !c.ended && c.whole() {
			a.end(c)
		}
	}
}

// endCalls ends all calls, and emits all text that is buffered.
func (a *Assembler) endCalls() {
	a.EmitText(lathe.DeltaReasoning, 0, a.reasoning.flush(&a.damage))
	a.EmitText(lathe.DeltaText, 0, a.text.flush(&a.damage))
	a.EmitText(lathe.DeltaRefusal, 0, a.refusal.flush(&a.damage))
	if i := slices.IndexFunc(a.extra, func(m lathe.Member) bool { return m.Name == "annotations" }); i >= 0 && !a.cited && a.text.b.Len() > 0 {
		a.cited = true
		t := lathe.Text{Text: a.text.b.String(), Extra: a.extra[i : i+1]}
		a.Emit(lathe.Delta{Kind: lathe.DeltaTextEnd, Name: string(lathe.WireOpenAIChat), Part: t})
	}
	for _, c := range a.calls {
		if !c.ended {
			a.end(c)
		}
	}
}

func (a *Assembler) end(c *call) {
	c.ended = true
	a.start(c)
	s := c.args.flush(&a.damage)
	if c.braces {
		c.braces = false
		s = c.args.addRaw([]byte("{}"), &a.damage)
	}
	a.EmitText(lathe.DeltaCallArgs, c.n, s)
	a.Emit(lathe.Delta{Kind: lathe.DeltaCallEnd, Index: c.n, Incomplete: a.incomplete(c)})
}

// incomplete reports whether c was truncated by an output limit or by the server.
func (a *Assembler) incomplete(c *call) bool {
	if a.cutOff {
		return true
	}
	switch reason, _ := finishReason(a.finish); reason {
	case lathe.FinishLength, lathe.FinishContentFilter:
		return !c.whole() && (c.args.b.Len() > 0 || c.n == len(a.calls)-1)
	}
	return false
}

// takeLegacy reads a function_call, the deprecated form for the only call of an answer.
func (a *Assembler) takeLegacy() {
	in := &a.chunk
	if len(a.calls) == 0 {
		a.Fault(faultFunctionCall)
		a.current = &call{id: "call_1"}
		a.calls = append(a.calls, a.current)
	}
	c, p := a.calls[0], in.legacy
	if p.name.isString() {
		a.takeName(c, p, p.name.body())
	}
	a.takeArgs(c, p)
}
