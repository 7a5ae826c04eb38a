package dialect

import (
	"cmp"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/gbnf"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// callLayout returns the callLayout of the dialects of a grammar.
func (g *grammar) callLayout() *callLayout {
	l := &callLayout{think: g.think, marks: g.wrap}
	if len(g.call) > 0 && len(g.wrap) == 0 {
		l.marks = g.call
	}
	l.call = func(c *constrainer, t *lathe.ToolSpec) []piece {
		return []piece{{text: g.layout.name}, {text: t.Name, name: true}, {text: g.layout.params}, {expr: g.parameters(c, t)}, {text: g.layout.end}}
	}
	if g.messages {
		inner := l.call
		l.call = func(c *constrainer, t *lathe.ToolSpec) []piece {
			return append([]piece{{text: " to=" + t.Name + g.message[0]}}, inner(c, t)...)
		}
		l.root = g.messageRoot
	}
	return l
}

// messageRoot returns the grammar expression of a turn that is a sequence of messages: thinking, then one call or the answer.
func (g *grammar) messageRoot(c *constrainer) string {
	text := c.b.TextWithout(append(append(slices.Clone(g.start), g.endings...), g.wrap...))
	end := gbnf.Optional(gbnf.AnyOf(gbnf.Literal(g.endings[0]), gbnf.Literal(g.endings[1])))
	thinking := gbnf.Repeat(gbnf.Sequence(gbnf.Literal(" to="+toSelf+g.message[0]), text, gbnf.Literal(g.endings[0]+g.start[0])), 0, -1)
	call := gbnf.Sequence(c.oneCall(), end)
	if c.must {
		return gbnf.Sequence(thinking, call)
	}
	answer := gbnf.Sequence(gbnf.Literal(" to="+toUser+g.message[0]), text, end)
	return gbnf.Sequence(thinking, gbnf.AnyOf(call, answer))
}

// parameters returns the grammar expression of the parameters of a call: tagged values in the order of the schema, or all arguments as
// one JSON object without tags. If the tags cannot contain a name, or the schema does not declare the members of an object, only JSON is
// allowed.
func (g *grammar) parameters(c *constrainer, t *lathe.ToolSpec) string {
	schema := argumentsSchema(t)
	asJSON := func() string { return gbnf.Sequence(c.value(t), `"\n"`) }
	if isComposed(schema) {
		return asJSON()
	}
	members := c.b.Members(schema, t.Name)
	switch {
	case len(members) == 0 && !isOpen(schema):
		return gbnf.Empty
	case len(members) == 0, len(members) > maxParameters:
		return asJSON()
	}
	var parts []string
	for _, m := range members {
		forms := g.parameter(c, schema, t.Name, &m)
		if len(forms) == 0 {
			return asJSON()
		}
		part := c.b.Rule("param", gbnf.AnyOf(forms...))
		if !m.Required {
			part = gbnf.Optional(part)
		}
		parts = append(parts, part)
	}
	return gbnf.AnyOf(c.b.Rule("params", gbnf.Sequence(parts...)), asJSON())
}

// parameter returns the grammar expressions of the forms of one parameter: the value unquoted, and the value as JSON. It returns nil if the
// tags cannot contain its name or its values.
func (g *grammar) parameter(c *constrainer, schema []byte, tool string, m *gbnf.Property) (forms []string) {
	key := rawjson.Text(m.Name)
	if !g.allowsKey(key) {
		return nil
	}
	add := func(open, value string) {
		forms = append(forms, gbnf.Sequence(gbnf.Literal(g.layout.key+key+open), value, gbnf.Literal(g.layout.valueEnd)))
	}
	path, types := tool+"."+key, parameterTypes(schema, key, 0)
	if types == 0 || types&typeString != 0 {
		if text := g.rawText(c, m.Schema, schema, path, types, 0); text != "" {
			add(g.layout.value, text)
		}
	}
	if types != 0 && types != typeString && (g.typed || types&typeString == 0) {
		add(cmp.Or(g.layout.jsonValue, g.layout.value), c.b.Value(m.Schema, schema, gbnf.JSON, path))
	}
	return forms
}

// rawText returns the grammar expression of a value that is written unquoted between the tags of a parameter, for the part of the schema
// that allows strings. It returns "" if no value of the schema can be written so.
func (g *grammar) rawText(c *constrainer, s, root []byte, path string, types valueTypes, depth int) string {
	if !c.b.Part(len(s) + len(path)) {
		return gbnf.Empty
	}
	if depth > maxSchemaDepth || rawjson.Kind(s) != '{' {
		return c.b.TextWithout(g.list)
	}
	if ref := rawjson.At(s, "$ref"); ref != nil && !has(s, "type") {
		c.b.Part(len(root))
		target := resolve(root, ref)
		if target == nil {
			c.b.Loosen(path, "$ref")
		}
		return g.rawText(c, target, root, path, types, depth+1)
	}
	values := slices.Collect(rawjson.Elements(rawjson.At(s, "enum")))
	if v := rawjson.At(s, "const"); v != nil {
		values = [][]byte{v}
	}
	if values != nil {
		return g.fixedText(values, types)
	}
	for _, key := range [...]string{"anyOf", "oneOf"} {
		if list := rawjson.At(s, key); list != nil && !has(s, "type") {
			if key == "oneOf" {
				c.b.Loosen(path, key)
			}
			return g.unionText(c, list, root, path, types, depth+1)
		}
	}
	for _, key := range [...]string{"pattern", "format", "contentEncoding", "contentMediaType", "allOf", "not", "if"} {
		if has(s, key) {
			c.b.Loosen(path, key)
		}
	}
	least, most := c.b.Lengths(s, "minLength", "maxLength", path)
	if least == 0 && most < 0 {
		return c.b.TextWithout(g.list)
	}
	text := g.boundedText(c, least, most)
	if types&typeNull != 0 {
		return gbnf.AnyOf(text, `"null"`)
	}
	return text
}

// unionText returns the grammar expression of a value that fits one of the schemas in list, written unquoted; "" if no schema allows such a
// value.
func (g *grammar) unionText(c *constrainer, list, root []byte, path string, types valueTypes, depth int) string {
	var alternatives []string
	for s := range rawjson.Elements(list) {
		if has(s, "$ref") && !c.b.Part(len(root)+maxSchemaParts) {
			break
		}
		switch t := allowed(root, s); {
		case t&typeString != 0 || t == 0:
			if text := g.rawText(c, s, root, path, types, depth); text != "" {
				alternatives = append(alternatives, text)
			}
		case t == typeNull:
			alternatives = append(alternatives, `"null"`)
		}
	}
	return anyText(alternatives)
}

// fixedText returns the grammar expression of those of the values that the parser reads unchanged. It returns "" if it reads no value so.
func (g *grammar) fixedText(values [][]byte, types valueTypes) string {
	var alternatives []string
	for _, v := range values {
		text := string(v)
		if v[0] == '"' {
			text = rawjson.Text(v)
		}
		if g.allowsValue(text) && g.readsSame(text, v, types) {
			alternatives = append(alternatives, gbnf.Literal(text))
		}
	}
	return anyText(alternatives)
}

// anyText returns the grammar expression of any of the alternatives, or "" if the list is empty.
func anyText(alternatives []string) string {
	if len(alternatives) == 0 {
		return ""
	}
	return gbnf.AnyOf(alternatives...)
}

// boundedText returns the grammar expression of a text of least to most characters; a negative most means no limit.
func (g *grammar) boundedText(c *constrainer, least, most int) string {
	var first strings.Builder // a text without the first character of any mark contains no mark
	for _, mark := range g.list {
		first.WriteString(mark[:1])
		if mark[0] >= 0x80 {
			return c.b.TextWithout(g.list)
		}
	}
	char := c.b.Rule("char", gbnf.Except(first.String()))
	if g.paired && least > 0 { // the parser would take a newline at the beginning as a part of the tag
		return gbnf.Sequence(gbnf.Except(first.String()+"\n"), gbnf.Repeat(char, least-1, max(most-1, -1)))
	}
	return gbnf.Repeat(char, least, most)
}
