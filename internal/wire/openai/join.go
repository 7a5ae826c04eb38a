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

// This file joins the pieces of tool_calls to calls. A server sends a call in pieces, usually the id and the name in the first one and the
// text of the arguments in all:
//
//	{"index":0,"id":"call_1","function":{"name":"weather","arguments":""}}
//	{"index":0,"function":{"arguments":"{\"city\":"}}
//	{"index":0,"function":{"arguments":"\"Rome\"}"}}
//
// For each piece, takePiece determines its call with assign, or begins a call, and then adds the id, name and arguments to that call. Only
// the functions whose names begin with take and add change a call; start and end emit its beginning and its end.

// A call is a call of an answer, as far as it was received.
type call struct {
	n        int   // number of the call within the turn
	index    int64 // index on the wire, if hasIndex
	hasIndex bool
	id, name string // "": not yet received
	extra    []lathe.Member
	line     int // number of the chunk that contained the last piece

	// The arguments. If braces is set, they are {}, which may be a placeholder: {} is buffered, and args is empty.
	args    text
	braces  bool
	balance balance // of args

	// announces: after its arguments were complete, a piece with its index repeated its name. The next arguments with that index begin
	// another call of the same name.
	announces bool

	started, ended bool // DeltaCallStart and DeltaCallEnd were emitted
}

// A balance reports, as argument text grows, whether the text is one complete JSON value: all brackets are closed and nothing follows. The
// text within brackets need not be valid. Each byte is scanned once: at is the number of bytes scanned.
type balance struct {
	at, depth         int
	inString, escaped bool
	closed, over      bool // closed: the value is complete; over: something follows it
}

// complete scans what was appended to s since the last call, and reports whether s is complete.
func (b *balance) complete(s string) bool {
	for ; b.at < len(s); b.at++ {
		c := s[b.at]
		switch {
		case b.escaped:
			b.escaped = false
		case b.inString:
			switch c {
			case '\\':
				b.escaped = true
			case '"':
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

// complete reports whether the arguments are one complete JSON value.
func (c *call) complete() bool {
	if c.braces {
		return true
	}
	s := c.args.b.String()
	if len(s) > 0 && len(s) < 32 && strings.IndexByte(`{["`, s[0]) < 0 { // a number, true, false, null
		end, err := rawjson.Scan([]byte(s), 0)
		return err == nil && end == len(s)
	}
	return c.balance.complete(s)
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
	key := a.readKey(p, pos)
	isEmpty := !p.name.ok() && !p.args.ok()
	if isEmpty && p.typ.ok() && string(p.typ) != `"function"` {
		a.Fault(FaultUnknownContent)
		return
	}
	c := a.assign(p, key)
	switch {
	case c == nil:
		c = a.begin(p, key, "")
	case a.repeats(c, p, key):
		a.Fault(FaultCallRepeated)
		p.args = nil
	case key.hasIndex && len(key.id) == 0 && c.complete():
		if begins := c.announce(p, key); begins {
			a.Fault(faultIndexReused)
			c = a.begin(p, key, c.name)
		}
	}
	if c == nil {
		return
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

// readKey returns the key of the piece at position pos of its chunk, and counts an index that is not valid.
func (a *Assembler) readKey(p *piece, pos int) pieceKey {
	key := pieceKey{pos: pos}
	if p.id.ok() {
		key.id = p.id.body()
	}
	if p.name.isString() {
		key.name = p.name.body()
	}
	if p.index.ok() {
		n, err := strconv.ParseInt(string(p.index.body()), 10, 64)
		if err == nil && n >= 0 {
			key.index, key.hasIndex = n, true
		} else {
			a.Fault(faultIndexInvalid)
		}
	}
	return key
}

// announce handles a piece without an id that has the index of c, whose arguments are complete. A piece with the name of c announces another
// call of that name. It returns true for the piece that begins the announced call.
func (c *call) announce(p *piece, key pieceKey) (begins bool) {
	if len(key.name) > 0 {
		c.announces = c.name == string(key.name)
		return false
	}
	return c.announces && beginsArgs(p)
}

// begin begins a call with its first piece. name is its name if an earlier piece contained it, else "". It returns nil if the piece is
// empty or if the answer has too many calls.
func (a *Assembler) begin(p *piece, key pieceKey, name string) *call {
	isEmpty := !p.args.ok() || string(p.args) == `""`
	switch {
	case isEmpty && len(key.id)+len(key.name) == 0:
		a.Fault(faultCallsMalformed)
		return nil
	case len(a.calls) >= a.Opts.MaxCalls:
		a.Err = wire.ErrTooManyCalls
		return nil
	}
	a.endComplete()
	if !key.hasIndex && !a.chunk.whole {
		a.Fault(faultIndexMissing)
	}
	if a.byID(key.id) != nil {
		a.Fault(faultIDDuplicate)
	}
	c := &call{n: len(a.calls), index: key.index, hasIndex: key.hasIndex, name: name}
	a.calls = append(a.calls, c)
	return c
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

// byID returns the last call with an id; nil if id is empty or no call has it.
func (a *Assembler) byID(id []byte) *call {
	for _, c := range slices.Backward(a.calls) {
		if len(id) > 0 && c.id == string(id) {
			return c
		}
	}
	return nil
}

// byIndex returns the last call with an index on the wire, or nil.
func (a *Assembler) byIndex(index int64) *call {
	for _, c := range slices.Backward(a.calls) {
		if c.hasIndex && c.index == index {
			return c
		}
	}
	return nil
}

// assign returns the call to which a piece belongs, or nil if the piece begins a new call. It counts a fault if the index of the piece is
// not the one of its call alone, and changes nothing else. The rules, of which the first that applies counts:
//
//   - Each element of a complete message is a separate call.
//   - A piece with an index belongs to the call that assignByIndex returns.
//   - A piece with a known id belongs to the last call with that id, unless it begins a new one (see begins).
//   - If a chunk has several pieces, one without id, name and index belongs to the call whose number is the position of the piece.
//   - A piece without a name belongs to the current call, and so does a piece with a name if the current call has none yet.
//   - A piece with another name begins a call, and so does one with the same name and another id if the current call has no arguments.
//   - All other pieces belong to the current call, unless they begin a new one (see begins).
func (a *Assembler) assign(p *piece, key pieceKey) *call {
	if a.chunk.whole || len(a.calls) == 0 {
		return nil
	}
	if key.hasIndex {
		return a.assignByIndex(p, key)
	}
	if c := a.byID(key.id); c != nil {
		if a.begins(c, p, key) {
			return nil
		}
		return c
	}
	last := a.current
	switch {
	case len(key.name)+len(key.id) == 0 && len(a.chunk.pieces) > 1 && key.pos < len(a.calls):
		return a.calls[key.pos]
	case len(key.name) == 0 || last.name == "":
		return last
	case last.name != string(key.name) || a.begins(last, p, key):
		return nil
	case len(key.id) > 0 && last.id != "" && last.args.b.Len() == 0:
		return nil
	}
	return last
}

// assignByIndex is assign for a piece with an index:
//
//   - A piece with a known index belongs to the last call with that index, unless it begins a new one (see begins).
//   - If the index is new, a piece with an id and no name belongs to the last call with that id.
//   - If the index is new, a piece without id and name belongs to the current call if the arguments of that call are incomplete.
//   - All other pieces begin a call.
func (a *Assembler) assignByIndex(p *piece, key pieceKey) *call {
	if c := a.byIndex(key.index); c != nil {
		if a.begins(c, p, key) {
			a.Fault(faultIndexReused)
			return nil
		}
		return c
	}
	c := a.current
	switch {
	case len(key.name) > 0:
		return nil
	case len(key.id) > 0:
		c = a.byID(key.id)
	case c.complete():
		return nil
	}
	if c != nil {
		a.Fault(FaultIndexChanged) // the index differs from that of its first piece
	}
	return c
}

// begins reports whether a piece begins a new call although its index, id or name is that of c. Only a piece with a name does, if c has one:
// if id and name differ, if the ids differ within one chunk, or if c is complete and the id or the name differs or arguments begin that do
// not repeat those of c.
func (a *Assembler) begins(c *call, p *piece, key pieceKey) bool {
	if len(key.name) == 0 || c.name == "" {
		return false
	}
	otherID := len(key.id) > 0 && c.id != "" && c.id != string(key.id)
	otherName := c.name != string(key.name)
	if otherID && (otherName || c.line == a.line) {
		return true
	}
	return c.complete() && (otherID || otherName || beginsArgs(p) && !a.repeats(c, p, key))
}

// repeats reports whether a piece has an id, and only repeats c, whose arguments are complete: the name, the arguments, and the id, if c has
// one.
func (a *Assembler) repeats(c *call, p *piece, key pieceKey) bool {
	sameID := len(key.id) > 0 && (c.id == "" || c.id == string(key.id))
	sameName := len(key.name) > 0 && c.name == string(key.name)
	return sameID && sameName && c.complete() && beginsArgs(p) && sameArgs(c, p)
}

// beginsArgs reports whether the arguments in a piece look like the beginning of arguments: a bracket, or a quoted string.
func beginsArgs(p *piece) bool {
	raw := bytes.TrimLeft(bytes.TrimPrefix(p.args, []byte(`"`)), " ")
	return len(raw) > 0 && (raw[0] == '{' || raw[0] == '[' || bytes.HasPrefix(raw, []byte(`\"`)))
}

// sameArgs reports whether the arguments of a piece equal those of the call.
func sameArgs(c *call, p *piece) bool {
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
	case bytes.IndexByte(id, '\\') >= 0 && c.id == string(unquoted(p.id)): // the same id, escaped
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

// endComplete ends all calls whose arguments are complete. It is called when another call begins.
func (a *Assembler) endComplete() {
	for _, c := range a.calls {
		if c.complete() {
			a.end(c)
		}
	}
}

// endCalls ends all calls, and emits all text that is buffered.
func (a *Assembler) endCalls() {
	a.EmitText(lathe.DeltaReasoning, 0, a.reasoning.flush(&a.damage))
	a.EmitText(lathe.DeltaText, 0, a.text.flush(&a.damage))
	a.EmitText(lathe.DeltaRefusal, 0, a.refusal.flush(&a.damage))
	i := slices.IndexFunc(a.extra, func(m lathe.Member) bool { return m.Name == "annotations" })
	if i >= 0 && !a.cited && a.text.b.Len() > 0 {
		a.cited = true
		t := lathe.Text{Text: a.text.b.String(), Extra: a.extra[i : i+1]}
		a.Emit(lathe.Delta{Kind: lathe.DeltaTextEnd, Name: string(lathe.WireOpenAIChat), Part: t})
	}
	for _, c := range a.calls {
		a.end(c)
	}
}

// end ends a call, unless it has ended.
func (a *Assembler) end(c *call) {
	if c.ended {
		return
	}
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
	reason, _ := finishReason(a.finish)
	limited := reason == lathe.FinishLength || reason == lathe.FinishContentFilter
	return a.cutOff || limited && !c.complete() && (c.args.b.Len() > 0 || c.n == len(a.calls)-1)
}

// takeLegacy reads a function_call, the deprecated form for the only call of an answer.
func (a *Assembler) takeLegacy() {
	if len(a.calls) == 0 {
		a.Fault(faultFunctionCall)
		a.current = &call{id: "call_1"}
		a.calls = append(a.calls, a.current)
	}
	c, p := a.calls[0], a.chunk.legacy
	if p.name.isString() {
		a.takeName(c, p, p.name.body())
	}
	a.takeArgs(c, p)
}
