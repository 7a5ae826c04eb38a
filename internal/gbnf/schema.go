package gbnf

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// Limits of the parts of a schema that the grammar enforces. Beyond them the grammar allows more than the schema, which is recorded as
// loosened, unless the comment says otherwise.
const (
	maxDepth      = 32    // nesting of a schema
	maxRepeat     = 1024  // length of a text in characters, or of a list
	maxProperties = 512   // properties of one object; more are an error
	maxEnum       = 2_000 // values of one enum; more are an error
	anyDepth      = 4     // nesting of a value without a schema
)

// A Style is a notation of values, such as JSON.
type Style struct {
	// String returns the expression of a string of least to most characters. A negative most means no limit.
	String func(b *Builder, least, most int) string
	// Quote returns a string in this notation; text is the string in JSON.
	Quote func(text []byte) string
	// Key returns the name of a member in this notation; name is the name in JSON.
	Key func(name []byte) string
	// AnyKey returns the expression that matches any name of a member.
	AnyKey func(b *Builder) string
	// True, False and Null are the expressions that match these values.
	True, False, Null string
	// Space returns the expression of the optional white space between the parts of a value. If it is nil, no white space is allowed.
	Space func(b *Builder) string
}

// JSON is the notation of JSON.
var JSON = &Style{
	String: jsonString,
	Quote:  func(text []byte) string { return string(text) },
	Key:    func(name []byte) string { return string(name) },
	AnyKey: func(b *Builder) string { return jsonString(b, 0, maxKey) },
	True:   `"true"`, False: `"false"`, Null: `"null"`,
	Space: func(b *Builder) string { return b.Rule("ws", `"" | " " | "\n" [ \u0009]{0,20}`) },
}

// maxKey is the maximal length, in characters, of a name that the schema does not declare.
const maxKey = 64

// jsonString returns the expression of a string in JSON. Escapes of surrogates must be pairs.
func jsonString(b *Builder, least, most int) string {
	hex := b.Rule("hex", `[0-9a-fA-F]`)
	char := b.Rule("char", `[^"\u005C\u0000-\u001F] | "\\" (["\u005C/bfnrt] | "u" ([0-9a-ceA-CEfF] `+hex+`{3} | [dD] [0-7] `+hex+`{2} | [dD] [89abAB] `+hex+`{2} "\\u" [dD] [c-fC-F] `+hex+`{2}))`)
	return b.Rule("string", `"\"" `+Repeat(char, least, most)+` "\""`)
}

// A compiler translates one schema to expressions: the schema
//
//	{"type":"object","properties":{"a":{"type":"boolean"}},"required":["a"]}
//
// becomes, without the rules for white space, the expression `"{" "\"a\"" ":" ("true" | "false") "}"`. There is one method for each form of a
// schema; value selects it. path names the schema in [Builder.Loosened], and depth is its nesting.
type compiler struct {
	b     *Builder
	style *Style
	root  []byte            // the schema within which references are resolved
	refs  map[string]string // the rule of each reference

	nesting int       // number of objects and lists around the current part
	open    []openRef // the references being compiled, the innermost last
	// first contains, for each reference, the references with which its rule can begin. edges is the set of these pairs.
	first map[string][]string
	edges map[[2]string]bool
}

// Value returns the expression that matches the values of a schema. path names the schema in [Builder.Loosened]. References are resolved
// within root. Members of objects must have the order of the schema; undeclared members are allowed only if the schema declares none. If
// the schema is too large, or no value fits it, the builder fails.
func (b *Builder) Value(schema, root []byte, style *Style, path string) string {
	c := &compiler{b: b, style: style, root: root, refs: map[string]string{}, first: map[string][]string{}, edges: map[[2]string]bool{}}
	return c.value(schema, path, 0)
}

func get(schema []byte, key string) []byte { return rawjson.At(schema, key) }

// value returns the expression of a schema. The first of these keywords that the schema has decides: $ref, const, enum, anyOf or oneOf without a
// type, allOf, type. Keywords that the expression does not express are recorded as loosened.
func (c *compiler) value(schema []byte, path string, depth int) string {
	schema = bytes.TrimSpace(schema)
	switch {
	case !c.b.Part(len(schema) + len(path)):
		return Empty
	case string(schema) == "false":
		c.b.Fail(fmt.Errorf("%s: no value fits the schema false", path))
		return Empty
	case rawjson.Kind(schema) != '{':
		return c.any(path)
	case depth > maxDepth:
		c.b.Loosen(path, "depth")
		return c.any(path)
	}
	if ref := get(schema, "$ref"); ref != nil {
		return c.reference(schema, ref, path, depth)
	}
	if v := get(schema, "const"); v != nil {
		c.b.looseBeside(schema, path, "const", "type")
		return Literal(c.constant(v))
	}
	if v := get(schema, "enum"); v != nil {
		if values := c.enum(v, get(schema, "type"), path); values != "" {
			c.b.looseBeside(schema, path, "enum", "type")
			return values
		}
		c.b.Loosen(path, "enum")
	}
	types := typesOf(schema)
	if types == nil {
		for _, key := range [...]string{"anyOf", "oneOf"} {
			if list := get(schema, key); list != nil {
				return c.union(schema, key, list, path, depth)
			}
		}
	}
	if list := get(schema, "allOf"); list != nil {
		return c.value(c.merged(schema, list, path, depth), path, depth+1)
	}
	if types == nil {
		c.b.looseBeside(schema, path, "type")
		return c.any(path)
	}
	var alternatives []string
	for _, t := range types {
		alternatives = append(alternatives, c.typed(schema, t, path, depth))
	}
	for _, key := range [...]string{"anyOf", "oneOf", "not", "if", "dependentRequired", "dependentSchemas", "dependencies", "$dynamicRef"} {
		if get(schema, key) != nil {
			c.b.Loosen(path, key)
		}
	}
	return AnyOf(alternatives...)
}

// typesOf returns the types that a schema names, or to which its other keywords belong; nil if it allows any type.
func typesOf(schema []byte) (types []string) {
	switch t := get(schema, "type"); {
	case rawjson.Kind(t) == '"':
		return []string{rawjson.Text(t)}
	case rawjson.Kind(t) == '[':
		for el := range rawjson.Elements(t) {
			types = append(types, rawjson.Text(el))
		}
		return types
	}
	if get(schema, "properties") != nil {
		return []string{"object"}
	}
	if get(schema, "items") != nil {
		return []string{"array"}
	}
	return nil
}

// plain are the keywords that do not restrict values.
var plain = strings.Fields(`title description default examples deprecated readOnly writeOnly $schema $id $comment $defs definitions $anchor
`)

// looseBeside records the keywords of a schema, except plain ones and those in handled, as loosened.
func (b *Builder) looseBeside(schema []byte, path string, handled ...string) {
	for key := range rawjson.Members(schema) {
		name := rawjson.Text(key)
		isPlain := slices.Contains(plain, name) || strings.HasPrefix(name, "x-")
		if !isPlain && !slices.Contains(handled, name) {
			b.Loosen(path, name)
		}
	}
}

func (c *compiler) reference(schema, ref []byte, path string, depth int) string {
	c.b.looseBeside(schema, path, "$ref")
	name := rawjson.Text(ref)
	if c.recursesLeft(name) {
		c.b.Loosen(path, "$ref")
		return c.any(path)
	}
	if n := len(c.open); n > 0 && c.open[n-1].nesting == c.nesting {
		parent := c.open[n-1].name
		if edge := [2]string{parent, name}; !c.edges[edge] {
			c.edges[edge] = true
			c.first[parent] = append(c.first[parent], name)
		}
	}
	if rule, ok := c.refs[name]; ok {
		return rule
	}
	target, ok := Resolve(c.root, name)
	if !ok {
		c.b.Loosen(path, "$ref")
		return c.any(path)
	}
	rule := c.b.reserve("ref")
	c.refs[name] = rule
	c.open = append(c.open, openRef{name, c.nesting})
	c.b.define(rule, c.value(target, path, depth+1))
	c.open = c.open[:len(c.open)-1]
	return rule
}

// An openRef is a reference whose rule is being compiled, and the number of objects and lists around it.
type openRef struct {
	name    string
	nesting int
}

// recursesLeft reports whether a reference at the current place would make a rule begin with itself, which servers reject: whether the
// rule of the reference can begin with a reference that is open at the same nesting.
func (c *compiler) recursesLeft(name string) bool {
	begun := map[string]bool{}
	for i := len(c.open) - 1; i >= 0 && c.open[i].nesting == c.nesting; i-- {
		begun[c.open[i].name] = true
	}
	if len(begun) == 0 {
		return false
	}
	seen, next := map[string]bool{name: true}, []string{name}
	for len(next) > 0 {
		at := next[len(next)-1]
		next = next[:len(next)-1]
		if begun[at] {
			return true
		}
		if !c.b.Part(16 * len(c.first[at])) { // the search counts as reading
			return true
		}
		for _, to := range c.first[at] {
			if !seen[to] {
				seen[to] = true
				next = append(next, to)
			}
		}
	}
	return false
}

var unescapePointer = strings.NewReplacer("~1", "/", "~0", "~")

// Resolve returns the part of root to which the reference refers, such as #/$defs/NAME. ok is false if none exists, or the reference
// leads out of root.
func Resolve(root []byte, ref string) (_ []byte, ok bool) {
	if ref == "#" {
		return root, true
	}
	path, ok := strings.CutPrefix(ref, "#/")
	for part := range strings.SplitSeq(path, "/") {
		if ok {
			root, ok = rawjson.Get(root, unescapePointer.Replace(part))
		}
	}
	return root, ok
}

// union returns the expression of anyOf, or of oneOf, for which it allows that several branches fit.
func (c *compiler) union(schema []byte, key string, list []byte, path string, depth int) string {
	c.b.looseBeside(schema, path, "anyOf", "type")
	var alternatives []string
	for el := range rawjson.Elements(list) {
		if string(el) == "false" {
			continue
		}
		alternatives = append(alternatives, c.value(el, path+"."+key+"."+strconv.Itoa(len(alternatives)), depth+1))
	}
	if len(alternatives) == 0 {
		c.b.Fail(fmt.Errorf("%s: no value fits %s", path, key))
		return Empty
	}
	return AnyOf(alternatives...)
}

// enum returns the expression of the values of an enumeration that have one of the types. It returns "" if none has, as in schemas that
// write the values of a list's elements at the list.
func (c *compiler) enum(list, types []byte, path string) string {
	var alternatives []string
	for el := range rawjson.Elements(list) {
		if types == nil || fits(el, types) {
			alternatives = append(alternatives, Literal(c.constant(el)))
		}
	}
	switch {
	case len(alternatives) == 0:
		return ""
	case len(alternatives) > maxEnum:
		c.b.Fail(fmt.Errorf("%s.enum: more than %d values", path, maxEnum))
		return Empty
	}
	return c.b.Rule("enum", AnyOf(alternatives...))
}

// fits reports whether a value has one of the types.
func fits(v, types []byte) bool {
	return slices.ContainsFunc(typesOf(append(append([]byte(`{"type":`), types...), '}')), func(t string) bool {
		switch v[0] {
		case '"':
			return t == "string"
		case '{':
			return t == "object"
		case '[':
			return t == "array"
		case 't', 'f':
			return t == "boolean"
		case 'n':
			return t == "null"
		}
		return t == "number" || t == "integer" && !bytes.ContainsAny(v, ".eE")
	})
}

// constant returns a value of a schema in the notation of the style.
func (c *compiler) constant(v []byte) string {
	var parts []string
	switch v[0] {
	case '"':
		return c.style.Quote(v)
	case '{':
		for key, el := range rawjson.Members(v) {
			parts = append(parts, c.style.Key(key)+":"+c.constant(el))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case '[':
		for el := range rawjson.Elements(v) {
			parts = append(parts, c.constant(el))
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	return string(v)
}

func (c *compiler) typed(schema []byte, typ, path string, depth int) string {
	switch typ {
	case "string":
		return c.text(schema, path)
	case "integer":
		return c.integer(schema, path)
	case "number":
		return c.number(schema, path)
	case "boolean":
		return AnyOf(c.style.True, c.style.False)
	case "null":
		return c.style.Null
	case "array":
		return c.list(schema, path, depth)
	case "object":
		return c.object(schema, path, depth)
	}
	c.b.Loosen(path, "type")
	return c.any(path)
}

func (c *compiler) text(schema []byte, path string) string {
	least, most := c.b.Lengths(schema, "minLength", "maxLength", path)
	for _, key := range [...]string{"pattern", "format", "contentEncoding", "contentMediaType"} {
		if get(schema, key) != nil {
			c.b.Loosen(path, key)
		}
	}
	return c.style.String(c.b, least, most)
}

// Lengths returns the limits that the keywords lower and upper set. A negative most means no limit. A limit above maxRepeat is recorded as
// loosened.
func (b *Builder) Lengths(schema []byte, lower, upper, path string) (least, most int) {
	most = -1
	if v := get(schema, lower); v != nil {
		n, err := strconv.Atoi(string(v))
		if err == nil && n >= 0 && n <= maxRepeat {
			least = n
		} else {
			b.Loosen(path, lower)
		}
	}
	if v := get(schema, upper); v != nil {
		n, err := strconv.Atoi(string(v))
		switch {
		case err != nil || n > maxRepeat:
			b.Loosen(path, upper)
		case n < least:
			b.Fail(fmt.Errorf("%s: %s is below %s", path, upper, lower))
		default:
			most = n
		}
	}
	return least, most
}

func (c *compiler) integer(schema []byte, path string) string {
	least, most := int64(math.MinInt64), int64(math.MaxInt64)
	for _, key := range [...]string{"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"} {
		v := get(schema, key)
		if v == nil {
			continue
		}
		n, err := strconv.ParseInt(string(v), 10, 64)
		if err != nil || n == math.MinInt64 || n == math.MaxInt64 {
			c.b.Loosen(path, key)
			continue
		}
		switch key {
		case "minimum":
			least = max(least, n)
		case "exclusiveMinimum":
			least = max(least, n+1)
		case "maximum":
			most = min(most, n)
		case "exclusiveMaximum":
			most = min(most, n-1)
		}
	}
	if v := get(schema, "multipleOf"); v != nil && string(v) != "1" {
		c.b.Loosen(path, "multipleOf")
	}
	expr, ok := integers(least, most)
	if !ok {
		c.b.Fail(fmt.Errorf("%s: no integer is within minimum and maximum", path))
		return Empty
	}
	return c.b.Rule("integer", expr)
}

func (c *compiler) number(schema []byte, path string) string {
	sign := `"-"? `
	for _, key := range [...]string{"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf"} {
		switch v := get(schema, key); {
		case v == nil:
		case key == "minimum" && string(v) == "0":
			sign = ""
		default:
			c.b.Loosen(path, key)
		}
	}
	return c.b.Rule("number", sign+`("0" | [1-9] [0-9]{0,15}) ("." [0-9]{1,16})? ([eE] [\u002B\u002D]? [0-9]{1,2})?`)
}

func (c *compiler) space() string {
	if c.style.Space == nil {
		return Empty
	}
	return c.style.Space(c.b)
}

// loosen records the keywords of the schema that the grammar does not express.
func (c *compiler) loosen(schema []byte, path string, keys ...string) {
	for _, key := range keys {
		if v := get(schema, key); v != nil && string(v) != "false" {
			c.b.Loosen(path, key)
		}
	}
}

func (c *compiler) list(schema []byte, path string, depth int) string {
	c.nesting++
	defer func() { c.nesting-- }()
	least, most := c.b.Lengths(schema, "minItems", "maxItems", path)
	c.loosen(schema, path, "prefixItems", "uniqueItems", "contains", "minContains", "maxContains", "unevaluatedItems")
	ws := c.space()
	empty := Sequence(`"["`, ws, `"]"`)
	items := get(schema, "items")
	if most == 0 || string(items) == "false" {
		return empty
	}
	if rawjson.Kind(items) == '[' { // the form of draft 7, with one schema for each index
		c.b.Loosen(path, "items")
		items = nil
	}
	item := c.b.Rule("item", c.value(items, path+".items", depth+1))
	if most > 0 {
		most-- // without the first
	}
	list := Sequence(`"["`, ws, item, Repeat(Sequence(ws, `","`, ws, item), max(least-1, 0), most), ws, `"]"`)
	if least == 0 {
		list = AnyOf(empty, list)
	}
	return c.b.Rule("list", list)
}

func (c *compiler) object(schema []byte, path string, depth int) string {
	c.nesting++
	defer func() { c.nesting-- }()
	c.loosen(schema, path, "minProperties", "maxProperties", "propertyNames", "unevaluatedProperties")
	ws := c.space()
	members := c.b.Members(schema, path)
	if len(members) == 0 {
		additional := get(schema, "additionalProperties")
		if string(additional) == "false" {
			return Sequence(`"{"`, ws, `"}"`)
		}
		c.b.Loosen(path, "additionalProperties")
		return c.b.Rule("object", c.dictionary(c.value(additional, path+".additionalProperties", depth+1)))
	}
	list := make([]Member, len(members))
	for i, m := range members {
		list[i] = Member{Required: m.Required, Expr: c.b.Rule("member", Sequence(Literal(c.style.Key(m.Name)), ws, `":"`, ws, c.value(m.Schema, path+"."+rawjson.Text(m.Name), depth+1)))}
	}
	inner := c.b.Separated(list, Sequence(ws, `","`, ws))
	inner = Sequence(inner, ws)
	if !slices.ContainsFunc(members, func(m Property) bool { return m.Required }) {
		inner = Optional(inner)
	}
	return c.b.Rule("object", Sequence(`"{"`, ws, inner, `"}"`))
}

// dictionary returns the expression of an object with any names and these values.
func (c *compiler) dictionary(value string) string {
	ws := c.space()
	member := c.b.Rule("member", Sequence(c.style.AnyKey(c.b), ws, `":"`, ws, value))
	return Sequence(`"{"`, ws, Optional(Sequence(member, Repeat(Sequence(ws, `","`, ws, member), 0, -1), ws)), `"}"`)
}

// any returns the expression of a value without a schema.
func (c *compiler) any(path string) string {
	c.b.Loosen(path, "any")
	scalar := AnyOf(c.style.String(c.b, 0, -1), c.number(nil, path), c.style.True, c.style.False, c.style.Null)
	value := c.b.Rule("value", scalar)
	ws := c.space()
	for range anyDepth - 1 {
		list := Sequence(`"["`, ws, Optional(Sequence(value, Repeat(Sequence(ws, `","`, ws, value), 0, -1), ws)), `"]"`)
		value = c.b.Rule("value", AnyOf(scalar, list, c.dictionary(value)))
	}
	return value
}

// A Property is one property of an object schema.
type Property struct {
	Name     []byte // in JSON
	Schema   []byte
	Required bool
}

// Members returns the properties of an object schema in their order, followed by required ones that are not declared.
func (b *Builder) Members(schema []byte, path string) (list []Property) {
	var required []string
	for el := range rawjson.Elements(get(schema, "required")) {
		required = append(required, rawjson.Text(el))
	}
	declared := map[string]bool{}
	for key, v := range rawjson.Members(get(schema, "properties")) {
		name := rawjson.Text(key)
		if declared[name] {
			continue
		}
		declared[name] = true
		must := slices.Contains(required, name)
		if string(v) == "false" && !must {
			continue
		}
		list = append(list, Property{Name: rawjson.AppendQuote(nil, name), Schema: v, Required: must})
	}
	for _, name := range required {
		if !declared[name] {
			declared[name] = true
			list = append(list, Property{Name: rawjson.AppendQuote(nil, name), Schema: get(schema, "additionalProperties"), Required: true})
		}
	}
	if get(schema, "patternProperties") != nil {
		b.Loosen(path, "patternProperties")
	}
	if len(list) > maxProperties {
		b.Fail(fmt.Errorf("%s: more than %d properties", path, maxProperties))
	}
	return list
}

// A Member is one part in a sequence of parts with a fixed order.
type Member struct {
	Expr     string
	Required bool
}

// Separated returns the expression that matches the members with the separator between them; members that are not required may be
// missing. It matches at least one member, so the caller must add the empty text if none is required. For the members a (required), b and c:
//
//	first0 ::= a rest1    rest1 ::= ("," b)? rest2    rest2 ::= ("," c)?
func (b *Builder) Separated(members []Member, separator string) string {
	rest := make([]string, len(members)+1) // rest[i] matches the members from i on, each after a separator
	rest[len(members)] = Empty
	for i, m := range slices.Backward(members) {
		if i == 0 {
			break
		}
		next := Sequence(separator, m.Expr)
		if !m.Required {
			next = Optional(next)
		}
		rest[i] = b.Rule("rest", Sequence(next, rest[i+1]))
	}
	first := "" // matches the members from i on, without a separator before the first that is there
	for i, m := range slices.Backward(members) {
		begin := Sequence(m.Expr, rest[i+1])
		if !m.Required && first != "" {
			begin = AnyOf(begin, first)
		}
		first = b.Rule("first", begin)
	}
	return first
}
