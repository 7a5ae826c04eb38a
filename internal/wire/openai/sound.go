package openai

import (
	"slices"
	"strconv"

	"github.com/lathe-run/lathe"
)

// UsageOnly reports whether the last chunk contains only the usage.
func (a *Assembler) UsageOnly() bool {
	return a.walked && a.chunk.usage.ok() && a.chunk.hasChoices && !a.chunk.taken && a.chunk.extraChoices == 0
}

// A soundness is the state for deciding whether the parts of an answer can be sent to a client unchanged.
type soundness struct {
	cited  bool // the annotations were emitted
	walked bool // the last data was a chunk

	// What a client has received of the answer, and what AppendShown has emitted of it.
	role, roleEmitted bool // the role
	shown, emitted    int  // numbers of calls that have begun
}

// checkChunk reports whether every client can read the last chunk without a change: no fault was tolerated, the role was received first,
// calls follow one another with id and name, whose further pieces clients join as they join arguments, and the finish reason matches the
// content. It returns false for deviations that at least one official client cannot read.
func (a *Assembler) checkChunk() bool {
	in := &a.chunk
	switch {
	case slices.ContainsFunc(a.Faults, func(f lathe.Fault) bool { return f.Kind != faultNameSplit }), a.Err != nil, a.damage != (damage{}), a.hasBuffered():
		return false
	case in.whole:
		return a.checkWhole()
	case !in.hasChoices:
		return false
	case !in.taken:
		return true // the last chunk with the usage, or an empty first chunk
	case in.legacy != nil, string(in.index) != "0", in.content.ok() && !in.content.isString(), !a.finishMatches():
		return false
	case in.delta != nil && !a.role:
		if a.role = in.role.isString(); !a.role {
			return false
		}
	}
	for i := range in.pieces {
		if !a.checkPiece(&in.pieces[i]) {
			return false
		}
	}
	return true
}

// hasBuffered reports whether a character is incomplete, or arguments may be a placeholder, so that the next chunk may change their meaning.
func (a *Assembler) hasBuffered() bool {
	waits := func(t *text) bool { return t.n > 0 || t.high != 0 }
	return waits(&a.text) || waits(&a.reasoning) || waits(&a.refusal) || a.current != nil && (a.current.braces || waits(&a.current.args))
}

// AppendShown appends deltas for those parts of the last chunk that a client has received and for which Append has returned no delta yet:
// the role, as an empty text, and the beginnings of calls, which Append returns only together with their arguments. It appends nothing if
// the answer is not sound.
func (a *Assembler) AppendShown(dst []lathe.Delta) []lathe.Delta {
	if a.Unsound {
		return dst
	}
	if a.role && !a.roleEmitted {
		a.roleEmitted = true
		dst = append(dst, lathe.Delta{Kind: lathe.DeltaText})
	}
	for ; a.emitted < a.shown && a.emitted < len(a.calls); a.emitted++ {
		c := a.calls[a.emitted]
		dst = append(dst, lathe.Delta{Kind: lathe.DeltaCallStart, Index: c.n, ID: c.id, Name: c.name})
	}
	return dst
}

// checkPiece reports whether a piece belongs to the last call, or begins the next call and has all members.
func (a *Assembler) checkPiece(p *piece) bool {
	index, err := strconv.Atoi(string(p.index))
	switch {
	case err != nil, p.args.ok() && !p.args.isString():
		return false
	case index == a.shown-1:
		return true
	case index != a.shown, index >= len(a.calls), index > 0 && !a.calls[index-1].complete(): // a call must be complete before the next begins
		return false
	}
	a.shown++
	return p.id.full() && p.name.full() && p.typ.full() && p.args.isString()
}

// finishMatches reports whether there is no finish reason, or one that matches the content of the answer.
func (a *Assembler) finishMatches() bool {
	in := &a.chunk
	if !in.finish.ok() {
		return true
	}
	if len(in.pieces) > 0 && !in.whole { // the client could not detect that the call is complete
		return false
	}
	for _, c := range a.calls {
		if c.args.b.Len() == 0 { // clients could not parse empty arguments
			return false
		}
	}
	switch string(in.finish) {
	case `"tool_calls"`:
		return len(a.calls) > 0
	case `"stop"`:
		return len(a.calls) == 0
	}
	return string(in.finish) == `"length"` || string(in.finish) == `"content_filter"`
}

// checkWhole does what checkChunk does for an answer that was not streamed.
func (a *Assembler) checkWhole() bool {
	in := &a.chunk
	if !in.taken || in.legacy != nil || !in.role.isString() || !in.finish.ok() || !a.finishMatches() || in.content.ok() && !in.content.isString() {
		return false
	}
	for i := range in.pieces {
		p := &in.pieces[i]
		if !p.id.full() || !p.name.full() || !p.typ.full() || !p.args.full() {
			return false
		}
	}
	return true
}

// Finished reports whether a finish reason was received.
func (a *Assembler) Finished() bool { return a.finishSeen }
