package openai

import (
	"bytes"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// AssemblerOptions bound an answer.
type AssemblerOptions = wire.AssemblerOptions

const (
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
	wire.Assembly
	chunk parsedChunk // the one that was read last

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

	finish     string
	finishSeen bool
	usage      lathe.Usage
	cost       *float64
	done       bool
	cutOff     bool // the server gave up the answer: no call is whole
	line       int  // lines walked
	damage     damage
	soundness
}

// adder says what a string is added to.
type adder struct {
	t    *text
	kind lathe.DeltaKind
	c    *call // of DeltaCallArgs
}

// NewAssembler returns an Assembler for one answer. opts may be nil.
func NewAssembler(opts *AssemblerOptions) *Assembler {
	return &Assembler{Assembly: wire.NewAssembly(opts)}
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
	a.chunk.read(nil)
	a.Assembly, a.progress = a.Next(), progress{}
}

// Done reports whether the server said [DONE].
func (a *Assembler) Done() bool { return a.done }

// Append takes in the data of one event and appends the deltas that it makes. Data that cannot be
// read is skipped and counted. An error that the server reports is an *[APIError]; an answer above
// its limits wraps [ErrTooLarge]; both are final. Append does not keep data.
func (a *Assembler) Append(dst []lathe.Delta, data []byte) ([]lathe.Delta, error) {
	if a.Err != nil {
		return dst, a.Err
	}
	if a.walked = a.chunk.read(data); !a.walked {
		return a.takeOther(dst, bytes.TrimSpace(data)), nil
	}
	if a.done {
		a.Fault(FaultAfterDone)
		return dst, nil
	}
	a.line++
	dst = a.commit(dst, data)
	a.Unsound = a.Unsound || !a.judge()
	return dst, a.Err
}

// takeOther takes in a line that is no chunk.
func (a *Assembler) takeOther(dst []lathe.Delta, line []byte) []lathe.Delta {
	a.Unsound = a.Unsound || !a.finishSeen || string(line) != "[DONE]"
	switch {
	case len(line) == 0:
		a.Fault(FaultEmptyLine)
	case a.done:
		a.Fault(FaultAfterDone)
	case string(line) == "[DONE]":
		a.done = true
		dst = a.endCalls(dst)
	default:
		a.Fault(FaultBadLine)
	}
	return dst
}

// commit does what the chunk that was read from data says.
func (a *Assembler) commit(dst []lathe.Delta, data []byte) []lathe.Delta {
	in := &a.chunk
	a.Faults = wire.CountFault(a.Faults, FaultDuplicateMember, in.dups)
	a.Faults = wire.CountFault(a.Faults, FaultExtraChoice, in.extraChoices)
	a.Faults = wire.CountFault(a.Faults, FaultCallsMalformed, in.badCalls)
	if a.Err = a.inBandError(data); a.Err != nil {
		return dst
	}
	if !in.hasChoices && !in.usage.ok() {
		a.Fault(FaultBadLine)
	}
	if in.id.ok() && a.ID == "" {
		a.ID = a.keep(in.id)
	}
	if in.model.ok() && a.Model == "" {
		a.Model = a.keep(in.model)
	}
	if in.taken {
		dst = a.takeChoice(dst)
	}
	usage := in.usage
	if !usage.ok() {
		usage = in.choiceUsage
	}
	if !usage.ok() && in.xgroq.ok() {
		if raw, ok := rawjson.Get(in.xgroq, "usage"); ok {
			a.takeUsage(raw)
		}
	}
	if usage.ok() {
		a.takeUsage(usage)
	}
	return dst
}

// inBandError returns the error that the line reports, nil for none.
func (a *Assembler) inBandError(obj []byte) error {
	in := &a.chunk
	switch {
	case in.failure.ok() && !emptyValue(in.failure):
	case in.choiceError.ok():
		obj = in.choiceError
		if kind(obj) == '{' {
			return errorObject(obj)
		}
		return &APIError{Message: boundedText(obj)}
	case in.object.ok() && rawjson.EqualKey(in.object, "error"):
	case !in.hasChoices && !in.usage.ok() && !in.id.ok():
	case in.finish.ok() && rawjson.EqualKey(in.finish, "error"):
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
	in := &a.chunk
	dst = a.takeReasoning(dst)
	if in.content.ok() {
		if in.content.isString() {
			dst = a.add(dst, adder{&a.text, lathe.DeltaText, nil}, in.content)
		} else {
			dst = a.takeParts(dst, in.content)
		}
	}
	if in.refusal.isString() {
		dst = a.add(dst, adder{&a.refusal, lathe.DeltaRefusal, nil}, in.refusal)
	}
	for i := range in.pieces {
		dst = a.takePiece(dst, &in.pieces[i], i)
	}
	if in.legacy != nil && len(in.pieces) == 0 {
		dst = a.takeLegacy(dst)
	}
	for i := range in.extra {
		a.extra = a.mergeExtra(a.extra, &in.extra[i])
	}
	if in.finish.ok() {
		dst = a.takeFinish(dst, in.finish)
	}
	return dst
}

// add adds a string literal, or nothing if v is none.
func (a *Assembler) add(dst []lathe.Delta, to adder, v value) []lathe.Delta {
	if !v.full() {
		return dst
	}
	body := v.body()
	a.Grow(len(body))
	if to.c != nil {
		return a.addArgs(dst, to.c, body, (*text).add)
	}
	if s := to.t.add(body, &a.damage); s != "" {
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
		if !a.chunk.emptyDelta() || a.finishSeen || a.blank() {
			return dst
		}
	}
	if a.finishSeen && len(raw) > 2 {
		if rawjson.EqualKey(raw, a.finish) {
			a.Fault(FaultFinishRepeated)
			return dst
		}
		if a.finish != "" {
			a.Fault(FaultFinishRepeated)
		}
	}
	a.finishSeen = true
	a.finish = a.keep(raw)
	return a.endCalls(dst)
}

// blank reports whether nothing came yet.
func (a *Assembler) blank() bool {
	return a.text.len() == 0 && a.reasoning.len() == 0 && a.refusal.len() == 0 &&
		len(a.calls) == 0 && len(a.blobs) == 0
}

// keep returns the text of a string value, in memory that short strings share. What is no string
// is kept as it is written.
func (a *Assembler) keep(v value) string {
	b := v.body()
	if len(b) == 0 {
		return ""
	}
	if v.isString() && bytes.IndexByte(b, '\\') >= 0 {
		b = unquoted(v)
	}
	a.Grow(len(b))
	if a.names.Cap()-a.names.Len() < len(b) {
		a.names = strings.Builder{}
		a.names.Grow(max(namesBlock, len(b)))
	}
	start := a.names.Len()
	a.names.Write(b)
	return a.names.String()[start:]
}
