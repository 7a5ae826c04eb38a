package gemini

import (
	"bytes"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// A callPart is the value of functionCall in an answer.
type callPart struct {
	id, name string
	args     []byte // nil: none
	pieces   []byte // partialArgs; nil: none
	more     bool   // willContinue
	rest     []lathe.Member
}

func readCall(v []byte) callPart {
	var c callPart
	for key, v := range rawjson.Members(v) {
		if string(v) == "null" {
			continue
		}
		switch string(key) {
		case `"id"`:
			c.id = rawjson.Text(v)
		case `"name"`:
			c.name = rawjson.Text(v)
		case `"args"`:
			c.args = v
		case `"partialArgs"`, `"partial_args"`:
			c.pieces = v
		case `"willContinue"`, `"will_continue"`:
			c.more = string(v) == "true"
		default:
			c.rest = append(c.rest, lathe.Member{Name: rawjson.Text(key), Value: bytes.Clone(v)})
		}
	}
	return c
}

// takeCall reads a part with a call or with a piece of its arguments.
func (a *Assembler) takeCall(p *rawPart) {
	c := readCall(p.value)
	a.Grow(len(c.id) + len(c.name) + len(c.args) + len(p.signature))
	if c.name == "" && a.partial != nil {
		a.continueCall(&c)
		return
	}
	if a.partial != nil { // another call begins before the last one has ended
		a.Damage(faultArgsNotText)
		a.cutPartial()
	}
	if !a.acceptCall(&c) {
		return
	}
	a.close()
	a.addSignature(p.signature)
	call := lathe.ToolCall{ID: a.callID(c.id, c.name), Name: c.name, Extra: p.extra(c.rest)}
	index := a.calls
	a.calls++
	a.Emit(lathe.Delta{Kind: lathe.DeltaCallStart, Index: index, ID: call.ID, Name: call.Name})
	if c.more || c.pieces != nil {
		a.parts = append(a.parts, call)
		a.partial = &partialCall{index: index, part: len(a.parts) - 1}
		a.continueCall(&c)
		return
	}
	call.Arguments = a.takeArguments(c.args)
	a.parts = append(a.parts, call)
	a.Emit(lathe.Delta{Kind: lathe.DeltaCallArgs, Index: index, Text: call.Arguments})
	a.Emit(lathe.Delta{Kind: lathe.DeltaCallEnd, Index: index})
}

// acceptCall counts what is wrong with a call that begins. It returns false if the call is left out.
func (a *Assembler) acceptCall(c *callPart) bool {
	isEmpty := c.name == "" && c.id == "" && c.args == nil && c.pieces == nil
	if c.name == "" && !isEmpty {
		a.Damage(faultNameMissing)
	}
	switch {
	case isEmpty:
		a.Damage(faultUnknownContent)
	case isRepeated(a, c):
		a.Damage(faultIDDuplicate)
	case a.calls >= a.Opts.MaxCalls:
		a.Err = wire.ErrTooManyCalls
	default:
		return true
	}
	return false
}

// isRepeated reports whether an earlier chunk had the call, with the same id of the server, name and arguments: some servers send a part in two
// chunks. Equal calls of one chunk are two.
func isRepeated(a *Assembler, c *callPart) bool {
	if c.id == "" || c.more || c.pieces != nil {
		return false
	}
	return slices.ContainsFunc(a.parts[:a.begun], func(p lathe.Part) bool {
		call, ok := p.(lathe.ToolCall)
		return ok && call.ID == c.id && call.Name == c.name && call.Arguments == argumentText(c.args)
	})
}

// takeArguments returns the argument text of a complete call, and counts arguments that are not an object.
func (a *Assembler) takeArguments(args []byte) string {
	if args != nil && rawjson.Kind(args) != '{' {
		a.Damage(faultArgsNotText)
	}
	return argumentText(args)
}

// argumentText returns the argument text of a complete call.
func argumentText(args []byte) string {
	switch {
	case args == nil:
		return "{}"
	case rawjson.Kind(args) == '"': // a string that contains the object
		return rawjson.Text(args)
	}
	return rawjson.CompactText(args)
}

// continueCall adds pieces of the arguments to the call whose arguments are streamed, and ends the call after the last piece.
func (a *Assembler) continueCall(c *callPart) {
	p := a.partial
	if c.args != nil && string(compact(c.args)) != "{}" {
		p.whole = a.takeArguments(c.args)
	}
	for piece := range rawjson.Elements(c.pieces) {
		a.Grow(len(piece) + partSize)
		if !p.add(piece) {
			p.bad = true
		}
	}
	if !c.more {
		a.endPartial()
	}
}

// cutPartial ends the call whose arguments are streamed, without its last piece.
func (a *Assembler) cutPartial() {
	a.partial.cut = true
	a.endPartial()
}

// endPartial ends the call whose arguments are streamed.
func (a *Assembler) endPartial() {
	p := a.partial
	a.partial = nil
	if p.bad {
		a.Damage(faultArgsNotText)
	}
	call, _ := a.parts[p.part].(lathe.ToolCall)
	call.Arguments, call.Incomplete = p.arguments(), p.cut || p.bad
	if call.Incomplete { // without the }, no client can parse and execute it
		call.Arguments = strings.TrimSuffix(call.Arguments, "}")
	}
	a.parts[p.part] = call
	a.Emit(lathe.Delta{Kind: lathe.DeltaCallArgs, Index: p.index, Text: call.Arguments})
	a.Emit(lathe.Delta{Kind: lathe.DeltaCallEnd, Index: p.index, Incomplete: call.Incomplete})
}
