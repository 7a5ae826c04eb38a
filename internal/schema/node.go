package schema

import (
	"encoding/json"
	"math/big"

	"github.com/lathe-run/lathe/internal/jsonschema"
)

// kinds is a set of JSON types.
type kinds uint8

const (
	isNull kinds = 1 << iota
	isBool
	isWhole // a number without a fraction, however it is written
	isNumber
	isString
	isArray
	isObject

	anyKind = isNull | isBool | isWhole | isNumber | isString | isArray | isObject
)

// A node is a schema in the form in which it is checked against text. The keywords that it cannot
// say stand in unsure, as the kinds of value that they are about.
type node struct {
	allow  kinds
	unsure kinds
	never  bool // the schema false
	free   bool // the schema true, or no keyword that matters

	constant, enum *choices
	text           *textRules
	number         *numberRules
	array          *arrayRules
	object         *objectRules

	// Schemas for the same value.
	all         []*node // allOf and $ref
	any, one    []*node
	not         *node
	test        *node // if
	then, other *node
	bare        bool // nothing but all, any, one, not and test matters

	from  *jsonschema.Schema // nil where the node stands for a keyword's false
	shell *jsonschema.Schema // see newShell
}

type textRules struct {
	min, max int // in characters; max -1: none
	pattern  *pattern
}

type numberRules struct {
	min, max, above, below, multiple *decimal
}

type arrayRules struct {
	first    []*node
	rest     *node // nil: anything
	min, max int   // max -1: none
	unique   bool
}

// choices are the values of enum or const.
type choices struct {
	kinds   kinds // of the values that are not distinguished further: null, and objects and arrays, about which it is unsure
	yes, no bool
	texts   []string
	lookup  map[string]struct{} // of texts, where there are many
	numbers []decimal
	vague   bool // some number is no decimal
}

// manyTexts is the number of texts above which a map is faster than a look at each.
const manyTexts = 12

// newNode returns the node of a compiled schema.
func newNode(root *jsonschema.Schema) *node {
	b := builder{}
	return b.node(root)
}

// A builder knows the node of each schema that it has met, so that cycles end.
type builder map[*jsonschema.Schema]*node

func (b builder) nodes(subs []*jsonschema.Schema) []*node {
	var out []*node
	for _, sub := range subs {
		out = append(out, b.node(sub))
	}
	return out
}

func (b builder) node(s *jsonschema.Schema) *node {
	if s == nil {
		return nil
	}
	if n, ok := b[s]; ok {
		return n
	}
	n := &node{allow: anyKind, from: s}
	b[s] = n
	switch {
	case s.Bool != nil:
		n.free, n.never = *s.Bool, !*s.Bool
		return n
	case s.Draft == jsonschema.Draft7 && s.Ref != nil:
		n.all, n.bare = []*node{b.node(s.Ref)}, true
		return n
	}
	n.unsure = unsureOf(s)
	if s.Types != 0 {
		n.allow = kindsOf(s.Types)
	}
	if s.Const != nil {
		n.constant = newChoices([]any{*s.Const})
	}
	if s.Enum != nil {
		n.enum = newChoices(s.Enum)
	}
	n.readText(s)
	n.readNumber(s)
	b.readArray(n, s)
	b.readObject(n, s)
	n.bare = n.allow == anyKind && n.unsure == 0 && n.constant == nil && n.enum == nil && n.text == nil &&
		n.number == nil && n.array == nil && n.object == nil
	n.all = b.nodes(s.AllOf)
	if s.Ref != nil {
		n.all = append(n.all, b.node(s.Ref))
	}
	n.any, n.one = b.nodes(s.AnyOf), b.nodes(s.OneOf)
	n.not, n.test, n.then, n.other = b.node(s.Not), b.node(s.If), b.node(s.Then), b.node(s.Else)
	if n.bare && len(n.all)+len(n.any)+len(n.one) == 0 && n.not == nil && n.test == nil {
		n.free = true
	}
	n.shell = n.newShell(s)
	return n
}

// unsureOf names the kinds of value about which s has keywords that a node does not know.
func unsureOf(s *jsonschema.Schema) kinds {
	var k kinds
	if s.DynamicRef != nil {
		k |= anyKind
	}
	if s.Contains != nil || s.UnevaluatedItems != nil {
		k |= isArray
	}
	if s.PropertyNames != nil || len(s.Dependencies)+len(s.DependentRequired)+len(s.DependentSchemas) > 0 ||
		s.UnevaluatedProperties != nil {
		k |= isObject
	}
	return k
}

func kindsOf(types jsonschema.Types) kinds {
	var k kinds
	for _, name := range types.Names() {
		switch name {
		case "null":
			k |= isNull
		case "boolean":
			k |= isBool
		case "integer":
			k |= isWhole
		case "number":
			k |= isNumber | isWhole
		case "string":
			k |= isString
		case "array":
			k |= isArray
		case "object":
			k |= isObject
		}
	}
	return k
}

func newChoices(values []any) *choices {
	c := &choices{}
	for _, v := range values {
		switch v := v.(type) {
		case nil:
			c.kinds |= isNull
		case bool:
			c.yes, c.no = c.yes || v, c.no || !v
		case string:
			c.texts = append(c.texts, v)
		case json.Number:
			n, end, ok := readNumber([]byte(v), 0)
			if ok && n.exact && end == len(v) {
				c.numbers = append(c.numbers, n.decimal)
			} else {
				c.vague = true
			}
		case []any:
			c.kinds |= isArray
		default:
			c.kinds |= isObject
		}
	}
	if len(c.texts) > manyTexts {
		c.lookup = make(map[string]struct{}, len(c.texts))
		for _, t := range c.texts {
			c.lookup[t] = struct{}{}
		}
	}
	return c
}

func (n *node) readText(s *jsonschema.Schema) {
	if s.MinLength == nil && s.MaxLength == nil && s.Pattern == nil {
		return
	}
	t := &textRules{min: orElse(s.MinLength, 0), max: orElse(s.MaxLength, -1)}
	if s.Pattern != nil {
		p, ok := s.Pattern.(*pattern)
		if !ok {
			n.unsure |= isString
			return
		}
		t.pattern = p
	}
	n.text = t
}

func (n *node) readNumber(s *jsonschema.Schema) {
	rules := &numberRules{}
	for _, bound := range []struct {
		from *big.Rat
		to   **decimal
	}{
		{s.Minimum, &rules.min}, {s.Maximum, &rules.max}, {s.ExclusiveMinimum, &rules.above},
		{s.ExclusiveMaximum, &rules.below}, {s.MultipleOf, &rules.multiple},
	} {
		if bound.from == nil {
			continue
		}
		d, ok := decimalOf(bound.from)
		if !ok {
			n.unsure |= isNumber | isWhole
			return
		}
		*bound.to = &d
	}
	if *rules != (numberRules{}) {
		n.number = rules
	}
}

func (b builder) readArray(n *node, s *jsonschema.Schema) {
	a := &arrayRules{first: b.nodes(s.PrefixItems), rest: b.node(s.Items),
		min: orElse(s.MinItems, 0), max: orElse(s.MaxItems, -1), unique: s.UniqueItems}
	switch more := s.AdditionalItems.(type) {
	case bool:
		if !more {
			a.rest = &node{never: true}
		}
	case *jsonschema.Schema:
		a.rest = b.node(more)
	}
	if len(a.first) > 0 || a.rest != nil || a.min > 0 || a.max >= 0 || a.unique {
		n.array = a
	}
}

func orElse(p *int, def int) int {
	if p == nil {
		return def
	}
	return *p
}
