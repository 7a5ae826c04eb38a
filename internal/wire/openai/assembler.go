package openai

import (
	"bytes"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// AssemblerOptions are the limits of an answer.
type AssemblerOptions = wire.AssemblerOptions

// maxExtra bounds the unknown members stored for one message or call.
const maxExtra = 64

// An Assembler assembles an answer from the chunks of a stream. It is lenient: whatever the order and form in which a server sends the
// pieces, the result has complete calls with the argument text as the model wrote it. It counts the faults that it tolerates. It is used by
// one goroutine at a time.
//
// The index of a piece determines its call; if the index is missing or wrong, the id does; otherwise a new non-empty name begins a new
// call: see assign for all rules. A repeated name is not added twice. A different name for a call with the same index or id and incomplete
// arguments is the next part of its name (or the whole name, if it begins with the first part).
//
// Text deltas are emitted in the order of receipt. DeltaCallStart of a call is emitted with or before its first argument text, with the id
// and name known by then. DeltaCallEnd is emitted when the next call begins after complete arguments, otherwise with the finish reason.
// Calls are numbered in the order in which they begin.
type Assembler struct {
	joiner
	walked     bool // the last data was a chunk
	finishSeen bool // a finish reason was received
	done       bool // [DONE] was received
	cited      bool // the annotations were emitted
	soundness
}

// NewAssembler returns an Assembler for one answer. opts may be nil.
func NewAssembler(opts *AssemblerOptions) *Assembler {
	return &Assembler{joiner: joiner{content: content{Assembly: wire.NewAssembly(opts)}}}
}

// Done reports whether [DONE] was received.
func (a *Assembler) Done() bool { return a.done }

// Append reads the data of one event and appends its deltas. Data that cannot be parsed is skipped and counted as a fault. If the server
// reports an error, Append returns an *[APIError]; if the answer exceeds a limit, an error that wraps [wire.ErrTooLarge]. Both are final. Append
// does not retain data.
func (a *Assembler) Append(dst []lathe.Delta, data []byte) ([]lathe.Delta, error) {
	a.Out = dst
	if a.Err != nil {
		return dst, a.Err
	}
	a.walked = a.chunk.read(data)
	switch {
	case !a.walked:
		a.takeOther(bytes.TrimSpace(data))
	case a.done:
		a.Fault(faultAfterDone)
	default:
		a.line++
		a.commit(data)
		a.Unsound = a.Unsound || !a.checkChunk()
	}
	return a.Take(), a.Err
}

// takeOther handles a line that is not a chunk.
func (a *Assembler) takeOther(line []byte) {
	a.Unsound = a.Unsound || !a.finishSeen || string(line) != "[DONE]"
	switch {
	case len(line) == 0:
		a.Fault(faultEmptyLine)
	case a.done:
		a.Fault(faultAfterDone)
	case string(line) == "[DONE]":
		a.done = true
		a.endCalls()
	default:
		a.Fault(faultBadLine)
	}
}

// commit applies the chunk that was read from data.
func (a *Assembler) commit(data []byte) {
	in := &a.chunk
	a.Faults = wire.CountFault(a.Faults, FaultDuplicateMember, in.dups)
	a.Faults = wire.CountFault(a.Faults, faultExtraChoice, in.extraChoices)
	a.Faults = wire.CountFault(a.Faults, faultCallsMalformed, in.badCalls)
	if a.Err = a.chunk.inBandError(data); a.Err != nil {
		return
	}
	if !in.hasChoices && !in.usage.ok() {
		a.Fault(faultBadLine)
	}
	if in.id.ok() && a.ID == "" {
		a.ID = a.keep(in.id)
	}
	if in.model.ok() && a.Model == "" {
		a.Model = a.keep(in.model)
	}
	if in.taken {
		a.takeChoice()
	}
	usage := in.usage
	if !usage.ok() {
		usage = in.choiceUsage
	}
	if !usage.ok() {
		usage = rawjson.At(in.xgroq, "usage")
	}
	if usage.ok() {
		a.takeUsage(usage)
	}
}

func (a *Assembler) takeChoice() {
	in := &a.chunk
	a.takeReasoning()
	if in.content.ok() {
		if in.content.isString() {
			a.add(&a.text, lathe.DeltaText, in.content)
		} else {
			a.takeParts(in.content)
		}
	}
	if in.refusal.isString() {
		a.add(&a.refusal, lathe.DeltaRefusal, in.refusal)
	}
	for i := range in.pieces {
		a.takePiece(&in.pieces[i], i)
	}
	if in.legacy != nil && len(in.pieces) == 0 {
		a.takeLegacy()
	}
	for i := range in.extra {
		a.extra = a.merged(a.extra, &in.extra[i])
	}
	if in.finish.ok() {
		a.takeFinish(in.finish)
	}
}

func (a *Assembler) takeFinish(raw []byte) {
	if kind(raw) != '"' {
		return
	}
	isEmpty := len(raw) == len(`""`) // some servers send "" in every chunk, others only at the end
	if isEmpty && (!a.chunk.emptyDelta() || a.finishSeen || a.blank()) {
		return
	}
	if a.finishSeen {
		isSame := rawjson.EqualKey(raw, a.finish)
		if isSame || a.finish != "" {
			a.Fault(faultFinishRepeated)
		}
		if isSame {
			return
		}
	}
	a.finishSeen = true
	a.finish = a.keep(raw)
	a.endCalls()
}

// endCalls emits all text that is buffered, then the annotations of the text, and ends all calls. Each is emitted once, however often endCalls is
// called.
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

// blank reports whether no content was received yet.
func (a *Assembler) blank() bool {
	return a.text.b.Len() == 0 && a.reasoning.b.Len() == 0 && a.refusal.b.Len() == 0 &&
		len(a.calls) == 0 && len(a.blobs) == 0
}
