package dialect

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/gbnf"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// ConstraintOptions say which calls the model may write in the turn.
type ConstraintOptions struct {
	Tools []*lathe.ToolSpec // required: at least one
	// Choice is the tool choice. With "required" the model must call a tool, with "function" it must call the named tool, and with "auto"
	// or "" it may also answer with text. "none" is an error, because there is no call to constrain.
	Choice lathe.ToolChoice
	// SingleCall limits a turn to one call.
	SingleCall bool
}

// A Constraint restricts what a model server generates in one turn: calls in a dialect, with arguments that fit the schemas of the tools.
// GBNF and Tag describe the same turns, in the two notations that servers read.
type Constraint struct {
	// GBNF is a grammar in the notation of llama.cpp, which xgrammar accepts as EBNF. Its rule root describes the whole turn.
	GBNF string
	// Tag is a structural tag of xgrammar, {"type":"structural_tag","format":…}. For dialects whose arguments are JSON it contains the
	// schemas of the tools, which the server enforces. It is nil for harmony and glimmer, whose turns are sequences of messages, and for
	// functionary-v3.2, whose turn begins inside a block.
	Tag json.RawMessage
	// Loosened lists the keywords of the schemas that the grammar does not enforce, as paths that begin with the name of the tool, such
	// as "add.a.pattern"; at most 256. The caller must validate the arguments of calls in any case.
	Loosened []string
}

// Constrain returns the constraint for one turn in the dialect. In arguments, an object has the members that its schema declares, in that
// order, or any members if the schema declares none. The dialect's parser reads every call that the constraint allows, unless text before
// the call opens a quotation: see docs/dialects.md.
//
// The error has the code invalid_request. Constrain returns it if opts is nil, if opts has no tools or only hidden ones, if the chosen tool is
// hidden or missing, for the tool choice none, if the dialect cannot write the name of a tool, if no arguments satisfy a schema, if the grammar
// exceeds 512 KiB, and for the dialect auto, which has no format of its own.
func (d *Dialect) Constrain(opts *ConstraintOptions) (*Constraint, error) {
	fail := func(err error) (*Constraint, error) {
		return nil, lathe.CodeInvalidRequest.Wrap("dialect: constrain "+d.name, err)
	}
	var o ConstraintOptions
	if opts != nil {
		o = *opts
	}
	if d.name == auto.name {
		return fail(errors.New("there is no grammar of this dialect; name the dialect that the model writes"))
	}
	tools := slices.DeleteFunc(slices.Clone(o.Tools), func(t *lathe.ToolSpec) bool { return t.Hidden })
	switch o.Choice.Mode {
	case lathe.ChoiceNone:
		return fail(errors.New("the tool choice none allows no call"))
	case lathe.ChoiceFunction:
		tools = slices.DeleteFunc(tools, func(t *lathe.ToolSpec) bool { return t.Name != o.Choice.Name })
	}
	if len(tools) == 0 {
		return fail(errors.New("there is no tool to call"))
	}
	must := o.Choice.Mode == lathe.ChoiceRequired || o.Choice.Mode == lathe.ChoiceFunction
	c := &constrainer{b: &gbnf.Builder{}, layout: d.form.layout(), must: must, single: o.SingleCall}
	for _, t := range tools {
		if safeName(t.Name) != t.Name || t.Name == "" {
			return fail(fmt.Errorf("the dialect cannot write the tool name %.64q", t.Name))
		}
		c.calls = append(c.calls, c.layout.call(c, t))
	}
	root := (*constrainer).root
	if c.layout.root != nil {
		root = c.layout.root
	}
	grammar, err := c.b.Grammar(root(c))
	if err != nil {
		return fail(err)
	}
	out := &Constraint{GBNF: grammar}
	if c.layout.root == nil && !c.layout.starts {
		tag, err := c.tag()
		if err != nil {
			return fail(err)
		}
		out.Tag = json.RawMessage(tag)
	}
	out.Loosened = c.b.Loosened()
	return out, nil
}

// A callLayout describes how a dialect writes the calls of a turn. Those of
//
//	[TOOLS]add({"a":1}),sub({"b":2})[/TOOLS]
//
// have the pieces NAME, `(`, the arguments and `)`; before is `[TOOLS]`, between `","`, separator `,`, after `[/TOOLS]`.
type callLayout struct {
	// call returns the pieces of a call of the tool t.
	call func(c *constrainer, t *lathe.ToolSpec) []piece
	// before and after surround one call or a list of calls. between is the grammar expression of the separator of two calls, and
	// separator one text that it matches. between is "" if each call has its own before and after.
	before, after      string
	between, separator string
	// marks are texts that the text of the turn must not contain, because the parser would read a call there.
	marks  []string
	quiet  bool       // the dialect has no mark that text cannot contain; a call begins a line
	starts bool       // the turn begins inside a call, because the prompt ends with the text before
	once   bool       // a turn has at most one call or one list of calls
	think  thinkMarks // the marks of thinking
	// root returns the grammar expression of the whole turn, for dialects whose turns have another form; nil otherwise.
	root func(c *constrainer) string
}

// A piece is a part of a call: a fixed text, or a grammar expression.
type piece struct {
	text string
	expr string
	// name: text is the name of the tool.
	name bool
	// format returns the piece as a format of xgrammar's structural tags. If it is nil, the format is the text, or a grammar of expr.
	format func() string
}

// expression returns the piece as a grammar expression.
func (p *piece) expression() string {
	if p.expr != "" {
		return p.expr
	}
	return gbnf.Literal(p.text)
}

// A constrainer builds one Constraint.
type constrainer struct {
	b      *gbnf.Builder
	layout *callLayout
	must   bool      // the turn must have a call
	single bool      // the turn has at most one call
	calls  [][]piece // the pieces of the call of each tool
}

// joined returns the pieces, with adjacent texts merged into one piece.
func joined(pieces []piece) []piece {
	var out []piece
	for _, p := range pieces {
		if n := len(out); n > 0 && p.expr == "" && out[n-1].expr == "" {
			out[n-1].text += p.text
			continue
		}
		out = append(out, p)
	}
	return out
}

// oneCall returns the grammar expression of one call, of any tool.
func (c *constrainer) oneCall() string {
	var calls []string
	for _, pieces := range c.calls {
		var parts []string
		for _, p := range joined(pieces) {
			parts = append(parts, p.expression())
		}
		calls = append(calls, c.b.Rule("call", gbnf.Sequence(parts...)))
	}
	return c.b.Rule("anyCall", gbnf.AnyOf(calls...))
}

// root returns the grammar expression of a turn: thinking, then text, then calls. If a call is required, there is no text.
func (c *constrainer) root() string {
	l := c.layout
	call := c.oneCall()
	group := call
	if !c.single && l.between != "" {
		group = gbnf.Sequence(call, gbnf.Repeat(gbnf.Sequence(l.between, call), 0, -1))
	}
	group = c.b.Rule("calls", gbnf.Sequence(gbnf.Literal(l.before), group, gbnf.Literal(l.after)))
	turn := group
	if !c.single && !l.once {
		turn = gbnf.Sequence(group, gbnf.Repeat(gbnf.Sequence(`"\n"?`, group), 0, -1))
	}
	if l.starts {
		return c.startedRoot(call)
	}
	marks := append(slices.Clone(l.marks), l.think[0], l.think[1])
	thinking := c.thinking(marks)
	switch {
	case c.must:
		return gbnf.Sequence(thinking, turn)
	case l.quiet:
		const anywhere, atLineEnd = false, true // where the text may end
		begins := c.begins(l.before)
		answer, text := c.b.Lines(begins, anywhere), c.b.Lines(begins, atLineEnd)
		return gbnf.Sequence(thinking, gbnf.AnyOf(answer, gbnf.Sequence(text, turn)))
	}
	return gbnf.Sequence(thinking, c.b.TextWithout(marks), gbnf.Optional(turn))
}

// thinking returns the grammar expression of an optional block of thinking, whose text contains none of the marks.
func (c *constrainer) thinking(marks []string) string {
	think := c.layout.think
	text, open := c.b.TextWithout(marks), gbnf.Literal(think[0])
	rule := func(open string) string {
		return c.b.Rule("thinking", gbnf.Sequence(open, text, gbnf.Literal(think[1]), `"\n"{0,2}`))
	}
	block := rule(open)
	if !c.must { // the prompt may have opened the block
		block = rule(gbnf.Optional(open))
	}
	return gbnf.Optional(block)
}

// minTrigger is the minimal length, in bytes, of a text that triggers a tag without the name of a tool, in a dialect without marks.
const minTrigger = 3

// begin returns the text that begins a call with these pieces, up to the name of the tool. If that text is too short to recognize a call,
// as in `[add(`, begin includes the name.
func (c *constrainer) begin(before string, pieces []piece) string {
	text := before
	for _, p := range pieces {
		isMark := text != "" && !c.layout.quiet
		mayTrigger := isMark || len(text) >= minTrigger
		if p.expr != "" || p.name && mayTrigger {
			return text
		}
		text += p.text
	}
	return text
}

// begins returns the texts that begin a call after the text before, one for each tool, without duplicates.
func (c *constrainer) begins(before string) []string {
	var list []string
	for _, pieces := range c.calls {
		if text := c.begin(before, pieces); !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return list
}

// startedRoot returns the grammar expression of a turn in a dialect whose prompt ends with the first mark: a text block or calls, where
// each further call has the mark before it.
func (c *constrainer) startedRoot(call string) string {
	mark := gbnf.Literal(c.layout.before)
	text := gbnf.Sequence(`"all\n"`, c.b.TextWithout(c.layout.marks))
	more := gbnf.Empty
	if !c.single {
		more = gbnf.Repeat(gbnf.Sequence(`"\n"?`, mark, call), 0, -1)
	}
	calls := gbnf.Sequence(call, more)
	if c.must {
		return gbnf.Sequence(gbnf.Optional(mark), calls)
	}
	return gbnf.Sequence(gbnf.Optional(mark), gbnf.AnyOf(calls, gbnf.Sequence(text, gbnf.Optional(gbnf.Sequence(mark, calls)))))
}

// arguments returns the piece of the arguments of a tool, as JSON.
func (c *constrainer) arguments(t *lathe.ToolSpec) piece {
	return piece{expr: c.value(t), format: func() string {
		return `{"type":"json_schema","json_schema":` + rawjson.CompactText(argumentsSchema(t)) + "}"
	}}
}

// value returns the grammar expression of the arguments of a tool, as JSON.
func (c *constrainer) value(t *lathe.ToolSpec) string {
	schema := argumentsSchema(t)
	return c.b.Value(schema, schema, gbnf.JSON, t.Name)
}

// argumentsSchema returns the schema of a tool's arguments, always one of an object. Without a schema, the object is empty.
func argumentsSchema(t *lathe.ToolSpec) []byte {
	schema := []byte(strings.TrimSpace(string(t.Schema)))
	if len(schema) == 0 {
		return []byte(`{"type":"object","additionalProperties":false}`)
	}
	if schema[0] != '{' || len(schema) == len("{}") {
		return []byte(`{"type":"object"}`)
	}
	if has(schema, "type") || has(schema, "properties") || isComposed(schema) {
		return schema
	}
	return append([]byte(`{"type":"object",`), schema[1:]...)
}

// isComposed reports whether other schemas determine the members of an object with this schema.
func isComposed(schema []byte) bool {
	return slices.ContainsFunc([]string{"$ref", "anyOf", "oneOf", "allOf"}, func(key string) bool { return has(schema, key) })
}

// isOpen reports whether an object with this schema, which declares no members, may have members.
func isOpen(schema []byte) bool {
	additional := rawjson.At(schema, "additionalProperties")
	if additional == nil {
		return !has(schema, "properties")
	}
	return string(additional) != "false"
}

// has reports whether the object schema has a member with the name key.
func has(schema []byte, key string) bool { return rawjson.At(schema, key) != nil }
