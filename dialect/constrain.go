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

// ConstraintOptions say which calls a model may write.
type ConstraintOptions struct {
	Tools []*lathe.ToolSpec
	// Choice is the tool choice: with "required" the model must call a tool, with "function" that tool, else it may also answer with
	// text. "none" is an error: there is nothing to constrain.
	Choice lathe.ToolChoice
	// SingleCall allows one call in a turn.
	SingleCall bool
}

// A Constraint makes a model server write calls in a dialect that fit the schemas of the tools, in the two notations that servers
// read. Both describe one turn of the model.
type Constraint struct {
	// GBNF is a grammar whose rule root is the whole turn, in the notation of llama.cpp, which xgrammar reads as EBNF.
	GBNF string
	// Tag is a structural tag of xgrammar, {"type":"structural_tag","format":…}; nil for the dialects whose turns are rows of
	// messages or begin within a block: harmony, glimmer and functionary-v3.2. For dialects whose arguments are JSON it holds the schemas of the tools, which the server applies.
	Tag json.RawMessage
	// Loosened lists what the grammar allows beyond the schemas, as paths of keywords that begin with the name of the tool, such as
	// "add.a.pattern"; at most 256. The arguments of calls must be validated in any case.
	Loosened []string
}

// Constrain returns the constraint for one turn in the dialect. Objects have the members that their schema declares, in that order;
// an object that declares none has any. A call that the constraint allows is read by the dialect's parser, unless text before it opens
// a quotation: see docs/dialects.md.
//
// It is an error if there are no tools, if the chosen tool is not among them, if a tool has a name that the dialect cannot write, if no
// arguments fit its schema, if the grammar has more than 512 KiB, and with the dialect auto, which is none of its own.
func (d *Dialect) Constrain(opts *ConstraintOptions) (*Constraint, error) {
	fail := func(err error) (*Constraint, error) {
		return nil, &lathe.Error{Code: lathe.CodeInvalidRequest, Op: "dialect: constrain " + d.name, Err: err}
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
	c := &constrainer{b: &gbnf.Builder{}, layout: d.form.layout(), must: o.Choice.Mode == lathe.ChoiceRequired || o.Choice.Mode == lathe.ChoiceFunction, single: o.SingleCall}
	for _, t := range tools {
		if string(appendName(nil, t.Name)) != t.Name || t.Name == "" {
			return fail(fmt.Errorf("the dialect cannot write the tool name %.64q", t.Name))
		}
		c.calls = append(c.calls, c.layout.call(c, t))
	}
	out := &Constraint{}
	var err error
	root := c.root
	if c.layout.root != nil {
		root = func() string { return c.layout.root(c) }
	}
	if out.GBNF, err = c.b.Grammar(root()); err != nil {
		return fail(err)
	}
	if c.layout.root == nil && !c.layout.starts {
		if out.Tag, err = c.tag(tools); err != nil {
			return fail(err)
		}
	}
	out.Loosened = c.b.Loosened()
	return out, nil
}

// A callLayout says how a dialect writes the calls of a turn.
type callLayout struct {
	// call returns the parts of a call of a tool.
	call func(c *constrainer, t *lathe.ToolSpec) []piece
	// before and after stand around one call or several; between is the expression of what stands between two of them, and separator
	// one text of it.
	before, after      string
	between, separator string
	// marks are what text must not hold, because the parser reads a call there.
	marks []string
	// quiet says that the dialect has no mark: a call begins a line.
	quiet bool
	// starts says that the turn begins within a call: before is in the prompt.
	starts bool
	// once says that a turn has one call or one list of calls.
	once  bool
	think thinkMarks
	// root returns the expression of a turn that has another form.
	root func(c *constrainer) string
}

// A piece is a part of a call: a text, or an expression.
type piece struct {
	text string
	expr string
	// name says that the text is the name of the tool.
	name bool
	// format is the piece as a format of xgrammar's structural tags; nil: the text, or a grammar with the expression.
	format func() []byte
}

// expression returns the piece as an expression.
func (p *piece) expression() string {
	if p.expr != "" {
		return p.expr
	}
	return gbnf.Literal(p.text)
}

// A constrainer makes one constraint.
type constrainer struct {
	b            *gbnf.Builder
	layout       *callLayout
	must, single bool
	calls        [][]piece // one for each tool
}

// joined returns the pieces with neighbouring texts in one.
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

// oneCall returns the expression of a call of any tool.
func (c *constrainer) oneCall() string {
	var calls []string
	for _, pieces := range c.calls {
		var parts []string
		for _, p := range joined(pieces) {
			parts = append(parts, p.expression())
		}
		calls = append(calls, c.b.Rule("call", gbnf.Sequence(parts...)))
	}
	return c.b.Rule("anyCall", gbnf.AnyOf(calls))
}

// root returns the expression of a turn: thinking, text and calls.
func (c *constrainer) root() string {
	l := c.layout
	call := c.oneCall()
	group := call
	if !c.single && l.between != "" {
		group = gbnf.Sequence(call, gbnf.Repeat(gbnf.Sequence(l.between, call), 0, -1))
	}
	group = c.b.Rule("calls", gbnf.Sequence(literal1(l.before), group, literal1(l.after)))
	turn := group
	if !c.single && !l.once {
		turn = gbnf.Sequence(group, gbnf.Repeat(gbnf.Sequence(`"\n"?`, group), 0, -1))
	}
	if l.starts {
		return c.startedRoot(call, turn)
	}
	thinking := ""
	marks := l.marks
	if l.think != (thinkMarks{}) {
		all := append(slices.Clone(l.marks), l.think[0], l.think[1])
		thought := c.b.TextWithout(all)
		thinking = c.b.Rule("thinking", gbnf.Sequence(gbnf.Literal(l.think[0]), thought, gbnf.Literal(l.think[1]), `"\n"{0,2}`))
		if !c.must { // the prompt may have opened the block
			thinking = c.b.Rule("thinking", gbnf.Sequence(gbnf.Optional(gbnf.Literal(l.think[0])), thought, gbnf.Literal(l.think[1]), `"\n"{0,2}`))
		}
		marks = all
	}
	if c.must {
		return gbnf.Sequence(gbnf.Optional(thinking), turn)
	}
	if l.quiet {
		begins := c.begins()
		return gbnf.Sequence(gbnf.Optional(thinking), gbnf.AnyOf([]string{c.b.Lines(begins, false), gbnf.Sequence(c.b.Lines(begins, true), turn)}))
	}
	return gbnf.Sequence(gbnf.Optional(thinking), c.b.TextWithout(marks), gbnf.Optional(turn))
}

// literal1 returns the expression of a text that may be empty.
func literal1(text string) string {
	if text == "" {
		return gbnf.Empty
	}
	return gbnf.Literal(text)
}

// minTrigger is the length in bytes from which a text without the name of a tool marks the beginning of a call, in a dialect without
// marks.
const minTrigger = 3

// begin returns the text that begins a call with these pieces, up to the name of the tool. Where that is too little, as in `[add(`, it
// is the text with the name.
func (c *constrainer) begin(before string, pieces []piece) string {
	text := before
	for _, p := range pieces {
		if p.expr != "" || p.name && (!c.layout.quiet && text != "" || len(text) >= minTrigger) {
			return text
		}
		text += p.text
	}
	return text
}

// begins returns the texts that begin calls.
func (c *constrainer) begins() []string {
	var list []string
	for _, pieces := range c.calls {
		if text := c.begin(c.layout.before, pieces); !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return list
}

// startedRoot is the turn of a dialect whose first mark is in the prompt: each block is text or a call.
func (c *constrainer) startedRoot(call, turn string) string {
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
	return gbnf.Sequence(gbnf.Optional(mark), gbnf.AnyOf([]string{calls, gbnf.Sequence(text, gbnf.Optional(gbnf.Sequence(mark, calls)))}))
}

// arguments returns the arguments of a tool as JSON.
func (c *constrainer) arguments(t *lathe.ToolSpec) piece {
	return piece{expr: c.value(t), format: func() []byte { return appendSchemaFormat(nil, t) }}
}

// value returns the expression of the arguments of a tool as JSON.
func (c *constrainer) value(t *lathe.ToolSpec) string {
	schema := argumentsSchema(t)
	return c.b.Value(schema, schema, gbnf.JSON, t.Name)
}

// argumentsSchema returns the schema of a tool's arguments, which are an object.
func argumentsSchema(t *lathe.ToolSpec) []byte {
	schema := []byte(strings.TrimSpace(string(t.Schema)))
	if len(schema) == 0 {
		return []byte(`{"type":"object","additionalProperties":false}`)
	}
	if schema[0] != '{' {
		return []byte(`{"type":"object"}`)
	}
	for _, key := range [...]string{"type", "anyOf", "oneOf", "allOf", "$ref", "properties"} {
		if has(schema, key) {
			return schema
		}
	}
	if len(schema) == len("{}") {
		return []byte(`{"type":"object"}`)
	}
	return append([]byte(`{"type":"object",`), schema[1:]...)
}

func has(schema []byte, key string) bool {
	_, ok := rawjson.Get(schema, key)
	return ok
}
