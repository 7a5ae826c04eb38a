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
// For each piece, takePiece determines its call with assign, or begins a call with begin, and then adds the id, name and arguments to that call.
// The functions whose names begin with take and add, and announce, change what a call contains; start and end emit its beginning and its end.
// assign and the functions that it calls only decide.

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

// A joiner has the calls of an answer.
type joiner struct {
	content
	calls   []*call
	current *call // the call to which the last piece belonged

	// The assembler sets why the answer ended, which decides whether calls are incomplete:
	finish string // the finish reason, which may be empty
	cutOff bool   // the server gave up the answer: no call is complete
}

// takePiece reads the element of tool_calls at position pos of its chunk. It adds the piece to a call, begins a call with it, or drops it.
func (j *joiner) takePiece(p *piece, pos int) {
	key := j.readKey(p, pos)
	isEmpty := !p.name.ok() && !p.args.ok()
	if isEmpty && p.typ.ok() && string(p.typ) != `"function"` {
		j.Fault(FaultUnknownContent)
		return
	}
	c := j.assign(p, key)
	switch {
	case c == nil:
		c = j.begin(p, key, "")
	case j.repeats(c, p, key): // its id may be new, its arguments are not
		j.Fault(FaultCallRepeated)
		p.args = nil
	case key.hasIndex && len(key.id) == 0 && c.complete():
		if begins := c.announce(p, key); begins {
			j.Fault(faultIndexReused)
			c = j.begin(p, key, c.name)
		}
	}
	if c == nil { // begin has dropped the piece
		return
	}
	c.line = j.line
	j.current = c
	j.takeID(c, p, key.id)
	j.takeName(c, p, key.name)
	for i := range p.extra {
		c.extra = j.merged(c.extra, &p.extra[i])
	}
	j.takeArgs(c, p)
}

// readKey returns the key of the piece at position pos of its chunk, and counts an index that is not valid.
func (j *joiner) readKey(p *piece, pos int) pieceKey {
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
			j.Fault(faultIndexInvalid)
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
func (j *joiner) begin(p *piece, key pieceKey, name string) *call {
	isEmpty := !p.args.ok() || string(p.args) == `""`
	switch {
	case isEmpty && len(key.id)+len(key.name) == 0:
		j.Fault(faultCallsMalformed)
		return nil
	case len(j.calls) >= j.Opts.MaxCalls:
		j.Err = wire.ErrTooManyCalls
		return nil
	}
	j.endComplete()
	if !key.hasIndex && !j.chunk.whole {
		j.Fault(faultIndexMissing)
	}
	if j.byID(key.id) != nil {
		j.Fault(faultIDDuplicate)
	}
	c := &call{n: len(j.calls), index: key.index, hasIndex: key.hasIndex, name: name}
	j.calls = append(j.calls, c)
	return c
}

func (j *joiner) takeArgs(c *call, p *piece) {
	switch {
	case !p.args.ok(), string(p.args) == `""`:
	case p.args.isString():
		j.Grow(len(p.args.body()))
		j.addArgs(c, p.args.body(), (*text).add)
	default:
		j.Fault(faultArgsNotText)
		j.Grow(len(p.args))
		j.addArgs(c, p.args, (*text).addRaw)
	}
}

// byID returns the last call with an id; nil if id is empty or no call has it.
func (j *joiner) byID(id []byte) *call {
	for _, c := range slices.Backward(j.calls) {
		if len(id) > 0 && c.id == string(id) {
			return c
		}
	}
	return nil
}

// byIndex returns the last call with an index on the wire, or nil.
func (j *joiner) byIndex(index int64) *call {
	for _, c := range slices.Backward(j.calls) {
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
//   - A piece with a known id belongs to the last call with that id, unless it begins a new one (see isNext).
//   - If a chunk has several pieces, one without id, name and index belongs to the call whose number is the position of the piece.
//   - A piece without a name belongs to the current call, and so does a piece with a name if the current call has none yet.
//   - A piece with another name begins a call, and so does one with the same name and another id if the current call has no arguments.
//   - All other pieces belong to the current call, unless they begin a new one (see isNext).
func (j *joiner) assign(p *piece, key pieceKey) *call {
	if j.chunk.whole || len(j.calls) == 0 {
		return nil
	}
	if key.hasIndex {
		return j.assignByIndex(p, key)
	}
	if c := j.byID(key.id); c != nil {
		if j.isNext(c, p, key) {
			return nil
		}
		return c
	}
	last := j.current
	switch {
	case len(key.name)+len(key.id) == 0 && len(j.chunk.pieces) > 1 && key.pos < len(j.calls):
		return j.calls[key.pos]
	case len(key.name) == 0 || last.name == "":
		return last
	case last.name != string(key.name) || j.isNext(last, p, key):
		return nil
	case len(key.id) > 0 && last.id != "" && last.args.b.Len() == 0:
		return nil
	}
	return last
}

// assignByIndex is assign for a piece with an index:
//
//   - A piece with a known index belongs to the last call with that index, unless it begins a new one (see isNext).
//   - If the index is new, a piece with an id and no name belongs to the last call with that id.
//   - If the index is new, a piece without id and name belongs to the current call if the arguments of that call are incomplete.
//   - All other pieces begin a call.
func (j *joiner) assignByIndex(p *piece, key pieceKey) *call {
	if c := j.byIndex(key.index); c != nil {
		if j.isNext(c, p, key) {
			j.Fault(faultIndexReused)
			return nil
		}
		return c
	}
	c := j.current
	switch {
	case len(key.name) > 0:
		return nil
	case len(key.id) > 0:
		c = j.byID(key.id)
	case c.complete():
		return nil
	}
	if c != nil {
		j.Fault(FaultIndexChanged) // the index differs from that of its first piece
	}
	return c
}

// isNext reports whether a piece belongs to a new call although its index, id or name is that of c. Only a piece with a name does, if c has one:
// if id and name differ, if the ids differ within one chunk, or if c is complete and the id or the name differs or arguments begin that do
// not repeat those of c.
func (j *joiner) isNext(c *call, p *piece, key pieceKey) bool {
	if len(key.name) == 0 || c.name == "" {
		return false
	}
	otherID := len(key.id) > 0 && c.id != "" && c.id != string(key.id)
	otherName := c.name != string(key.name)
	if otherID && (otherName || c.line == j.line) {
		return true
	}
	return c.complete() && (otherID || otherName || beginsArgs(p) && !j.repeats(c, p, key))
}

// repeats reports whether a piece has an id, and only repeats c, whose arguments are complete: the name, the arguments, and the id, if c has
// one.
func (j *joiner) repeats(c *call, p *piece, key pieceKey) bool {
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

func (j *joiner) takeID(c *call, p *piece, id []byte) {
	switch {
	case len(id) == 0 || c.id == string(id):
	case c.id == "":
		if c.started || c.name != "" {
			j.Fault(faultIDLate)
		}
		c.id = j.keep(p.id)
	case bytes.IndexByte(id, '\\') >= 0 && c.id == string(unquoted(p.id)): // the same id, escaped
	default:
		j.Fault(faultIDChanged)
	}
}

func (j *joiner) takeName(c *call, p *piece, name []byte) {
	switch {
	case len(name) == 0:
	case c.name == "":
		if c.started || c.braces {
			j.Fault(faultNameLate)
		}
		c.name = j.keep(p.name)
	case c.name == string(name):
		j.Fault(faultNameRepeated)
	default:
		more := j.keep(p.name)
		if more == c.name {
			j.Fault(faultNameRepeated)
			return
		}
		j.Fault(faultNameSplit)
		if strings.HasPrefix(more, c.name) {
			c.name = more
		} else {
			c.name += more
			j.Grow(len(c.name))
		}
	}
}

// addArgs adds text to the arguments of c. If the arguments are only {}, which may be a placeholder, they are buffered.
func (j *joiner) addArgs(c *call, body []byte, add func(*text, []byte, *damage) string) {
	if c.args.b.Len() == 0 {
		if string(body) == "{}" {
			c.braces = true
			return
		}
		if c.braces {
			c.braces = false
			j.Fault(faultArgsReplaced)
		}
	}
	j.start(c)
	j.EmitText(lathe.DeltaCallArgs, c.n, add(&c.args, body, &j.damage))
}

// start emits DeltaCallStart for c and for all earlier calls, unless they were emitted.
func (j *joiner) start(c *call) {
	if c.started {
		return
	}
	if c.n > 0 {
		j.start(j.calls[c.n-1])
	}
	c.started = true
	j.Emit(lathe.Delta{Kind: lathe.DeltaCallStart, Index: c.n, ID: c.id, Name: c.name})
}

// endComplete ends all calls whose arguments are complete. It is called when another call begins.
func (j *joiner) endComplete() {
	for _, c := range j.calls {
		if c.complete() {
			j.end(c)
		}
	}
}

// end ends a call, unless it has ended.
func (j *joiner) end(c *call) {
	if c.ended {
		return
	}
	c.ended = true
	j.start(c)
	s := c.args.flush(&j.damage)
	if c.braces {
		c.braces = false
		s = c.args.addRaw([]byte("{}"), &j.damage)
	}
	j.EmitText(lathe.DeltaCallArgs, c.n, s)
	j.Emit(lathe.Delta{Kind: lathe.DeltaCallEnd, Index: c.n, Incomplete: j.incomplete(c)})
}

// incomplete reports whether c was truncated by an output limit or by the server.
func (j *joiner) incomplete(c *call) bool {
	reason, _ := finishReason(j.finish)
	limited := reason == lathe.FinishLength || reason == lathe.FinishContentFilter
	return j.cutOff || limited && !c.complete() && (c.args.b.Len() > 0 || c.n == len(j.calls)-1)
}

// takeLegacy reads a function_call, the deprecated form for the only call of an answer.
func (j *joiner) takeLegacy() {
	if len(j.calls) == 0 {
		j.Fault(faultFunctionCall)
		j.current = &call{id: "call_1"}
		j.calls = append(j.calls, j.current)
	}
	c, p := j.calls[0], j.chunk.legacy
	if p.name.isString() {
		j.takeName(c, p, p.name.body())
	}
	j.takeArgs(c, p)
}
