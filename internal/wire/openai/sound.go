package openai

import (
	"slices"
	"strconv"

	"github.com/lathe-run/lathe"
)

// This file decides whether an answer is sound: whether every official client can read its chunks as the server sent them, so that they can be
// passed on unchanged. Append checks each chunk after commit has applied it, so that calls, text and faults already contain what the chunk adds.
// A chunk that fails the check sets Unsound for the rest of the answer.

// A soundness is what the checks know of a client that receives every chunk unchanged. checkChunk sets what the client has received so far
// (shown), and AppendShown for how much of that the caller has a delta (emitted).
type soundness struct {
	roleShown, roleEmitted   bool
	callsShown, callsEmitted int // numbers of calls that have begun
}

// checkChunk reports whether every client can read the last chunk without a change: no fault was tolerated, the role was received first,
// each call is complete before the next one begins with its id and name, and the finish reason matches the content. It records in
// soundness what the chunk shows.
func (a *Assembler) checkChunk() bool {
	if a.Err != nil || a.damage != (damage{}) || a.hasBuffered() || slices.ContainsFunc(a.Faults, isUnsound) {
		return false
	}
	in := &a.chunk
	switch {
	case in.whole:
		return a.checkWhole()
	case !in.hasChoices:
		return false
	case !in.taken:
		return true // the last chunk with the usage, or an empty first chunk
	case in.legacy != nil, string(in.index) != "0", in.content.ok() && !in.content.isString(), !a.finishMatches():
		return false
	}
	if in.delta != nil {
		a.roleShown = a.roleShown || in.role.isString()
		if !a.roleShown {
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

// isUnsound reports whether a client cannot read an answer with this fault. Clients join a split name as they join arguments.
func isUnsound(f lathe.Fault) bool { return f.Kind != faultNameSplit }

// hasBuffered reports whether a character is incomplete, or arguments may be a placeholder, so that the next chunk may change their meaning.
func (a *Assembler) hasBuffered() bool {
	return a.text.isIncomplete() || a.reasoning.isIncomplete() || a.refusal.isIncomplete() ||
		a.current != nil && (a.current.braces || a.current.args.isIncomplete())
}

// checkWhole does what checkChunk does for an answer that was not streamed.
func (a *Assembler) checkWhole() bool {
	in := &a.chunk
	hasMembers := in.taken && in.role.isString() && in.finish.ok() && (!in.content.ok() || in.content.isString())
	if !hasMembers || in.legacy != nil || !a.finishMatches() {
		return false
	}
	return !slices.ContainsFunc(in.pieces, func(p piece) bool { return !p.id.full() || !p.name.full() || !p.typ.full() || !p.args.full() })
}

// checkPiece reports whether a piece continues the last call that was shown, or begins the next call and has all members. It counts a call
// that begins as shown.
func (a *Assembler) checkPiece(p *piece) bool {
	index, err := strconv.Atoi(string(p.index))
	if err != nil || p.args.ok() && !p.args.isString() {
		return false
	}
	next := a.callsShown
	switch {
	case index == next-1:
		return true // clients append its arguments to those of the last call
	case index != next || index >= len(a.calls):
		return false
	case next > 0 && !a.calls[next-1].complete(): // a call must be complete before the next begins
		return false
	}
	a.callsShown++
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
	case `"length"`, `"content_filter"`:
		return true
	}
	return false
}

// AppendShown appends deltas for those parts of the last chunk that a client has received and for which Append has returned no delta yet:
// the role, as an empty text, and the beginnings of calls, which Append returns only together with their arguments. It appends nothing if
// the answer is not sound.
func (a *Assembler) AppendShown(dst []lathe.Delta) []lathe.Delta {
	if a.Unsound {
		return dst
	}
	if a.roleShown && !a.roleEmitted {
		a.roleEmitted = true
		dst = append(dst, lathe.Delta{Kind: lathe.DeltaText})
	}
	for ; a.callsEmitted < min(a.callsShown, len(a.calls)); a.callsEmitted++ {
		c := a.calls[a.callsEmitted]
		dst = append(dst, lathe.Delta{Kind: lathe.DeltaCallStart, Index: c.n, ID: c.id, Name: c.name})
	}
	return dst
}

// UsageOnly reports whether the last chunk contains only the usage.
func (a *Assembler) UsageOnly() bool {
	return a.walked && a.chunk.usage.ok() && a.chunk.hasChoices && !a.chunk.taken && a.chunk.extraChoices == 0
}

// Finished reports whether a finish reason was received.
func (a *Assembler) Finished() bool { return a.finishSeen }
