package dialect

import (
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/gbnf"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// This file describes, for constraints, the calls of dialects whose arguments are neither JSON nor tagged: the brace syntax of a gemmaForm,
// call:add{a:1}, and the keyword arguments of a pythonicForm, add(a=1).

// callLayout returns the callLayout of the dialects of a gemmaForm.
func (f *gemmaForm) callLayout() *callLayout {
	style := &gbnf.Style{
		String: func(b *gbnf.Builder, least, most int) string {
			mark := gbnf.Literal(f.quote)
			text := gbnf.Repeat(gbnf.Except(f.quote[:1]), least, most)
			if least == 0 && most < 0 {
				text = b.TextWithout([]string{f.quote})
			}
			return b.Rule("string", gbnf.AnyOf(gbnf.Sequence(mark, text, mark), gbnf.JSON.String(b, least, most))) // JSON for strings with the mark
		},
		Quote:  f.string,
		Key:    f.key,
		AnyKey: func(*gbnf.Builder) string { return `[a-zA-Z_] [a-zA-Z0-9_]{0,63}` },
		True:   `"true"`, False: `"false"`, Null: `"null"`,
	}
	return &callLayout{think: f.think, marks: []string{f.open}, call: func(c *constrainer, t *lathe.ToolSpec) []piece {
		schema := argumentsSchema(t)
		return []piece{{text: f.open + gemmaCall}, {text: t.Name, name: true}, {expr: c.b.Value(schema, schema, style, t.Name)}, {text: f.close}}
	}}
}

// pythonStyle is the style of JSON that also allows True, False and None, which models write in calls in the syntax of Python.
var pythonStyle = func() *gbnf.Style {
	style := *gbnf.JSON
	style.True, style.False, style.Null = `("true" | "True")`, `("false" | "False")`, `("null" | "None")`
	return &style
}()

// callLayout returns the callLayout of the dialects of a pythonicForm.
func (f *pythonicForm) callLayout() *callLayout {
	l := &callLayout{think: plainThink, before: f.open, after: f.close, between: `"," " "?`, separator: ", ", once: true}
	if f.bare {
		l.before, l.after = l.before+"[", "]"+l.after
	}
	if f.open != "" {
		l.marks = []string{f.open}
	}
	l.quiet = f.open == ""
	l.call = func(c *constrainer, t *lathe.ToolSpec) []piece {
		return []piece{{text: t.Name, name: true}, {text: "("}, {expr: f.keywords(c, t)}, {text: ")"}}
	}
	return l
}

// keywords returns the grammar expression of the keyword arguments of a call, in the order of the schema. If the schema does not declare
// its members, or a name is no Python identifier, the arguments are `**` and a JSON object.
func (f *pythonicForm) keywords(c *constrainer, t *lathe.ToolSpec) string {
	schema := argumentsSchema(t)
	asJSON := func() string { return gbnf.Sequence(`"**"`, c.value(t)) } // **{"a":1}
	if isComposed(schema) {
		return asJSON()
	}
	members := c.b.Members(schema, t.Name)
	if len(members) == 0 {
		if isOpen(schema) {
			return gbnf.Optional(asJSON())
		}
		return gbnf.Empty
	}
	list := make([]gbnf.Member, len(members))
	optional := true
	for i, m := range members {
		name := rawjson.Text(m.Name)
		if !isArgumentName([]byte(name)) || len(members) > maxParameters {
			return asJSON()
		}
		list[i] = gbnf.Member{Required: m.Required, Expr: c.b.Rule("keyword", gbnf.Sequence(gbnf.Literal(name+"="), c.b.Value(m.Schema, schema, pythonStyle, t.Name+"."+name)))}
		optional = optional && !m.Required
	}
	inner := c.b.Separated(list, `"," " "?`)
	if optional {
		inner = gbnf.Optional(inner)
	}
	return inner
}
