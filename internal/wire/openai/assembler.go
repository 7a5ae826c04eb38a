package openai

import (
	"bytes"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// AssemblerOptions bound an answer. A zero field has the default in its comment.
type AssemblerOptions struct {
	MaxCalls int // 256 calls
	MaxBytes int // 32 MiB of text, reasoning, arguments and members that are not known

	noMemo bool // always walk: for the test that both ways agree
}

const (
	defaultMaxCalls = 256
	defaultMaxBytes = 32 << 20

	// namesBlock is the memory that ids, names and other short strings of several answers share.
	namesBlock = 512
	// maxExtra bounds the members that are kept of one message or call.
	maxExtra = 64
)

// An Assembler assembles an answer from the chunks of a stream. It is lenient: for any
// order and form in which a server sends the pieces, the result has complete calls with the argument
// text as the model wrote it. It counts tolerated faults. It is used by one goroutine at
// a time.
//
// The index of a piece determines its call; if the index is missing or wrong, the id does; otherwise a new
// non-empty name begins a new call. In detail: a piece with a known index belongs to that call,
// unless it has another name and the call's arguments are whole, or another id and another name,
// or another id and the call's arguments are whole. A piece with a new index and with neither id nor name belongs to the last call
// if its arguments are not whole. A name that comes again is not doubled; a
// different name for a call that has the same index or id and no whole arguments is its next part
// (or, if it begins with the first part, all of it).
//
// The deltas: text in the order of its arrival; a call's DeltaCallStart with or before
// its first argument text, with the id and name known by then; DeltaCallEnd when the next call
// begins after whole arguments, else with the finish reason. Calls are numbered in the order in
// which they begin.
type Assembler struct {
	opts AssemblerOptions
	w    walker
	memo memo

	text, reasoning, refusal text
	calls                    []*call
	spare                    []*call
	names                    strings.Builder // memory of short strings
	progress
}

// progress is the state of one answer, without what keeps its memory for the next.
type progress struct {
	reasoningField string
	blobs          []lathe.Blob
	current        *call  // the one that the last piece belonged to
	announced      string // the name of the call that a piece begins, said before
	extra          []lathe.Member

	id, model  string
	finish     string
	finishSeen bool
	usage      lathe.Usage
	cost       *float64
	done       bool
	cutOff     bool // the server gave up the answer: no call is whole
	line       int  // lines walked
	size       int
	faults     []lathe.Fault
	damage     damage
	soundness

	// effects counts every change of state; a line that has no other than adding one string can
	// be remembered.
	effects int
	added   span // the string that was added last
	adder   adder
	err     error
}

// adder says what a string is added to.
type adder struct {
	t    *text
	kind lathe.DeltaKind
	c    *call // of DeltaCallArgs
}

// A memo remembers the last line that did nothing but add one string: what stands before and after
// the text of that string, and what it was added to. As long as only the text differs, a line does
// the same again, so there is no need to walk it: one compares the rest and checks the string.
type memo struct {
	ok            bool
	before, after []byte
	adder         adder
}

// NewAssembler returns an Assembler for one answer. opts may be nil.
func NewAssembler(opts *AssemblerOptions) *Assembler {
	a := &Assembler{}
	if opts != nil {
		a.opts = *opts
	}
	if a.opts.MaxCalls <= 0 {
		a.opts.MaxCalls = defaultMaxCalls
	}
	if a.opts.MaxBytes <= 0 {
		a.opts.MaxBytes = defaultMaxBytes
	}
	return a
}

// Reset makes the Assembler ready for another answer. What it returned before stays valid.
func (a *Assembler) Reset() {
	for _, c := range a.calls {
		c.args.reset()
		*c = call{args: c.args}
	}
	a.text.reset()
	a.reasoning.reset()
	a.refusal.reset()
	if a.names.Cap() > maxShared {
		a.names.Reset()
	}
	a.spare, a.calls = append(a.spare, a.calls...), a.calls[:0]
	a.memo.ok, a.memo.adder = false, adder{}
	a.w.b = nil // the rest of the walker is cleared by the next walk, and not read before it
	a.progress = progress{}
}

// Done reports whether the server said [DONE].
func (a *Assembler) Done() bool { return a.done }

// Append takes in the data of one event and appends the deltas that it makes. Data that cannot be
// read is skipped and counted. An error that the server reports is an *[APIError]; an answer above
// its limits wraps [ErrTooLarge]; both are final. Append does not keep data.
func (a *Assembler) Append(dst []lathe.Delta, data []byte) ([]lathe.Delta, error) {
	if a.err != nil {
		return dst, a.err
	}
	if a.memo.ok && !a.done {
		m := &a.memo
		n, k := len(m.before), len(m.after)
		if len(data) >= n+k && string(data[:n]) == string(m.before) {
			if end, plain := stringEnd(data, n); end == len(data)-k && string(data[end:]) == string(m.after) {
				dst = a.add(dst, m.adder, data[n:end], plain)
				a.walked = false
				a.unsound = a.unsound || a.damage != damage{} || a.holdsBack()
				return a.limited(dst)
			}
		}
	}
	return a.slow(dst, data)
}

func (a *Assembler) limited(dst []lathe.Delta) ([]lathe.Delta, error) {
	if a.size > a.opts.MaxBytes {
		a.err = ErrTooManyBytes
	}
	return dst, a.err
}

func (a *Assembler) slow(dst []lathe.Delta, data []byte) ([]lathe.Delta, error) {
	a.walked = a.w.walk(data)
	if !a.walked {
		a.unsound = a.unsound || !a.finishSeen || string(bytes.TrimSpace(data)) != "[DONE]"
		switch line := bytes.TrimSpace(data); {
		case len(line) == 0:
			a.fault(FaultEmptyLine, 1)
		case a.done:
			a.fault(FaultAfterDone, 1)
		case string(line) == "[DONE]":
			a.done = true
			dst = a.endCalls(dst)
		default:
			a.fault(FaultBadLine, 1)
		}
		return dst, nil
	}
	if a.done {
		a.fault(FaultAfterDone, 1)
		return dst, nil
	}
	before := a.effects
	a.line++
	a.added = span{}
	dst = a.commit(dst)
	a.unsound = a.unsound || !a.judge()
	switch {
	case a.effects == before:
	case a.effects == before+1 && a.added.ok() && !a.opts.noMemo:
		a.memo.ok = true
		a.memo.before = append(a.memo.before[:0], data[:a.added.lo]...)
		a.memo.after = append(a.memo.after[:0], data[a.added.hi:]...)
		a.memo.adder = a.adder
	default:
		a.memo.ok = false
	}
	return a.limited(dst)
}

// fault counts n of a kind.
func (a *Assembler) fault(kind string, n int) {
	if n == 0 {
		return
	}
	a.effects++
	for i := range a.faults {
		if a.faults[i].Kind == kind {
			a.faults[i].Count += n
			return
		}
	}
	a.faults = append(a.faults, lathe.Fault{Kind: kind, Count: n})
}

// commit does what the walked line says.
func (a *Assembler) commit(dst []lathe.Delta) []lathe.Delta {
	w := &a.w
	a.fault(FaultDuplicateMember, w.dups)
	a.fault(FaultExtraChoice, w.extraChoices)
	a.fault(FaultCallsMalformed, w.badCalls)
	if a.err = a.inBandError(); a.err != nil {
		return dst
	}
	if !w.hasChoices && !w.usage.ok() {
		a.fault(FaultBadLine, 1)
	}
	if w.id.ok() && a.id == "" {
		a.id = a.keep(w.id)
	}
	if w.model.ok() && a.model == "" {
		a.model = a.keep(w.model)
	}
	if w.taken {
		dst = a.takeChoice(dst)
	}
	usage := w.usage
	if !usage.ok() {
		usage = w.choiceUsage
	}
	if !usage.ok() && w.xgroq.ok() {
		if raw, ok := rawjson.Get(w.raw(w.xgroq), "usage"); ok {
			a.takeUsage(raw)
		}
	}
	if usage.ok() {
		a.takeUsage(w.raw(usage))
	}
	return dst
}

func (w *walker) raw(s span) []byte { return w.b[s.lo:s.hi] }

func (w *walker) isString(s span) bool { return s.ok() && w.b[s.lo] == '"' }

// inBandError returns the error that the line reports, nil for none.
func (a *Assembler) inBandError() error {
	w := &a.w
	obj := w.b
	switch {
	case w.failure.ok() && !emptyValue(w.raw(w.failure)):
	case w.choiceError.ok():
		obj = w.raw(w.choiceError)
		if kind(obj) == '{' {
			return errorObject(obj)
		}
		return &APIError{Message: boundedText(obj)}
	case w.object.ok() && rawjson.EqualKey(w.raw(w.object), "error"):
	case !w.hasChoices && !w.usage.ok() && !w.id.ok():
	case w.finish.ok() && rawjson.EqualKey(w.raw(w.finish), "error"):
		return &APIError{Message: "the server ended the answer with an error"}
	default:
		return nil
	}
	if e, ok := readError(obj); ok {
		return e
	}
	return nil
}

func (a *Assembler) takeChoice(dst []lathe.Delta) []lathe.Delta {
	w := &a.w
	dst = a.takeReasoning(dst)
	if w.content.ok() {
		if w.isString(w.content) {
			dst = a.addString(dst, adder{&a.text, lathe.DeltaText, nil}, w.content)
		} else {
			dst = a.takeParts(dst, w.raw(w.content))
		}
	}
	if w.isString(w.refusal) {
		dst = a.addString(dst, adder{&a.refusal, lathe.DeltaRefusal, nil}, w.refusal)
	}
	for i := range w.pieces {
		dst = a.takePiece(dst, &w.pieces[i], i)
	}
	if w.hasLegacy && len(w.pieces) == 0 {
		dst = a.takeLegacy(dst)
	}
	for i := range w.extra {
		if !w.extra[i].ofCall {
			a.extra = a.mergeExtra(a.extra, &w.extra[i])
		}
	}
	if w.finish.ok() {
		dst = a.takeFinish(dst, w.raw(w.finish))
	}
	return dst
}

// addString adds the string value s of the line.
func (a *Assembler) addString(dst []lathe.Delta, to adder, s span) []lathe.Delta {
	body := a.w.b[s.lo+1 : s.hi-1]
	if len(body) == 0 {
		return dst
	}
	a.effects++
	a.added, a.adder = span{s.lo + 1, s.hi - 1}, to
	return a.add(dst, to, body, false)
}

// addQuoted adds a string literal, or nothing if v is none.
func (a *Assembler) addQuoted(dst []lathe.Delta, to adder, v []byte) []lathe.Delta {
	if kind(v) != '"' || len(v) <= 2 {
		return dst
	}
	a.effects++
	return a.add(dst, to, v[1:len(v)-1], false)
}

// add is the one way in which text comes in, whether the line was walked or remembered. plain says
// that body is known to have no escapes.
func (a *Assembler) add(dst []lathe.Delta, to adder, body []byte, plain bool) []lathe.Delta {
	if len(body) == 0 {
		return dst
	}
	a.size += len(body)
	if to.c != nil {
		return a.addArgs(dst, to.c, body, plain)
	}
	if s := to.t.add(body, plain, &a.damage); s != "" {
		dst = append(dst, lathe.Delta{Kind: to.kind, Text: s})
	}
	return dst
}

func (a *Assembler) takeFinish(dst []lathe.Delta, raw []byte) []lathe.Delta {
	if kind(raw) != '"' {
		return dst
	}
	if len(raw) == 2 {
		// Some servers say "" in every chunk, some only at the end.
		if !a.w.emptyDelta || a.finishSeen || a.blank() {
			return dst
		}
	}
	a.effects++
	if a.finishSeen && len(raw) > 2 {
		if rawjson.EqualKey(raw, a.finish) {
			a.fault(FaultFinishRepeated, 1)
			return dst
		}
		if a.finish != "" {
			a.fault(FaultFinishRepeated, 1)
		}
	}
	a.finishSeen = true
	a.finish = a.keepRaw(raw)
	return a.endCalls(dst)
}

// blank reports whether nothing came yet.
func (a *Assembler) blank() bool {
	return a.text.len() == 0 && a.reasoning.len() == 0 && a.refusal.len() == 0 &&
		len(a.calls) == 0 && len(a.blobs) == 0
}

// keep returns the text of a string value, in memory that short strings share. What is no string
// is kept as it is written.
func (a *Assembler) keep(s span) string { return a.keepRaw(a.w.raw(s)) }

func (a *Assembler) keepRaw(raw []byte) string {
	if raw[0] != '"' {
		return a.keepBytes(raw)
	}
	if end, plain := rawjson.PlainString(raw, 1); plain && end == len(raw) {
		return a.keepBytes(raw[1 : end-1])
	}
	return a.keepBytes(unquoted(raw))
}

func (a *Assembler) keepBytes(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	a.effects++
	a.size += len(b)
	if a.names.Cap()-a.names.Len() < len(b) {
		a.names = strings.Builder{}
		a.names.Grow(max(namesBlock, len(b)))
	}
	start := a.names.Len()
	a.names.Write(b)
	return a.names.String()[start:]
}
