package httptool

// This file determines which members are removed from the schemas of requests: those that the document marks as readOnly, which occur only in
// answers. They are removed from both the properties and the required names, so that a model need not invent values for them. Inside `not`
// and `if` nothing is removed, because a schema there would match more values without its members.

import (
	"maps"
	"slices"
	"strings"
)

// traits are what a schema states about the members of its value, directly or by reference, allOf, anyOf and oneOf.
type traits struct {
	hidden   map[string]bool // names of readOnly members; from anyOf and oneOf, only those that are readOnly in every form
	required map[string]bool // names that it or one of its forms requires
}

// readOnly reports whether the schema v of a member is readOnly.
func (c *converter) readOnly(v any, depth int) bool {
	in := asObject(v)
	if in == nil || depth == 0 {
		return false
	}
	if ref, ok := in["$ref"].(string); ok {
		known, seen := c.readOnlyAt[ref]
		if !seen {
			c.readOnlyAt[ref] = false      // for a schema that refers to itself
			target, _ := c.doc.follow(ref) // refer returns the error, too
			known = c.readOnly(target, depth-1)
			c.readOnlyAt[ref] = known
		}
		if known || c.doc.v30 { // in OpenAPI 3.0, keywords beside a reference are ignored
			return known
		}
	}
	if b, _ := in["readOnly"].(bool); b {
		return true
	}
	return slices.ContainsFunc(asList(in["allOf"]), func(part any) bool { return c.readOnly(part, depth-1) })
}

// nameBytes is the memory of a name in a set, in bytes.
const nameBytes = 48

// collect adds the traits of a schema to t. It counts the memory of the sets as bytes of the tool.
func (c *converter) collect(t *traits, v any, depth int) error {
	in := asObject(v)
	if in == nil || depth == 0 {
		return nil
	}
	ref, isRef := in["$ref"].(string)
	if isRef && c.doc.v30 { // in OpenAPI 3.0, keywords beside a reference are ignored
		return c.collectTarget(t, ref, depth-1)
	}
	members, required := asObject(in["properties"]), asList(in["required"])
	for name, member := range members {
		if c.readOnly(member, maxSchemaDepth) {
			t.hidden[name] = true
		}
	}
	for _, name := range required {
		if text, ok := name.(string); ok {
			t.required[text] = true
		}
	}
	if err := c.spend(nameBytes * (len(members) + len(required))); err != nil {
		return err
	}
	if isRef {
		if err := c.collectTarget(t, ref, depth-1); err != nil {
			return err
		}
	}
	for _, part := range asList(in["allOf"]) {
		if err := c.collect(t, part, depth-1); err != nil {
			return err
		}
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if err := c.collectForms(t, asList(in[keyword]), depth-1); err != nil {
			return err
		}
	}
	return nil
}

// collectTarget adds the traits of the target of a reference.
func (c *converter) collectTarget(t *traits, ref string, depth int) error {
	target, err := c.traitsAt(ref, depth)
	if err == nil {
		err = c.spend(nameBytes * (len(target.hidden) + len(target.required)))
	}
	if err != nil {
		return err
	}
	maps.Copy(t.hidden, target.hidden)
	maps.Copy(t.required, target.required)
	return nil
}

// collectForms adds the traits of the forms of anyOf or oneOf.
func (c *converter) collectForms(t *traits, forms []any, depth int) error {
	var hidden map[string]bool
	for i, form := range forms {
		one := newTraits()
		if err := c.collect(one, form, depth); err != nil {
			return err
		}
		maps.Copy(t.required, one.required)
		if i == 0 {
			hidden = one.hidden
		}
		maps.DeleteFunc(hidden, func(name string, _ bool) bool { return !one.hidden[name] })
	}
	maps.Copy(t.hidden, hidden)
	return nil
}

func newTraits() *traits { return &traits{hidden: map[string]bool{}, required: map[string]bool{}} }

// traitsAt returns the traits of the target of a reference. If a schema refers to itself, it returns those that are collected so far.
func (c *converter) traitsAt(ref string, depth int) (*traits, error) {
	if known := c.traits[ref]; known != nil {
		return known, nil
	}
	t := newTraits()
	c.traits[ref] = t
	v, err := c.doc.follow(ref)
	if err == nil {
		err = c.collect(t, v, depth)
	}
	return t, err
}

// An omission states what is removed from a schema of requests.
type omission struct {
	disabled bool            // nothing is removed
	hidden   map[string]bool // names of members that this schema, or another one for the same value, marks as readOnly
}

// forParts returns the omission for the schemas of members and items of a value.
func (o *omission) forParts() *omission { return &omission{disabled: o.disabled} }

// omissionFor returns the omission for the schema in, which applies to a value together with other schemas that have the omission omit.
func (c *converter) omissionFor(in map[string]any, omit *omission) (*omission, error) {
	if omit.disabled || !c.doc.readOnly {
		return omit, nil
	}
	t := newTraits()
	if err := c.collect(t, in, maxSchemaDepth); err != nil || len(t.hidden) == 0 {
		return omit, err
	}
	maps.Copy(t.hidden, omit.hidden)
	return &omission{hidden: t.hidden}, c.spend(nameBytes * len(omit.hidden))
}

// omits reports whether a member with this schema is removed.
func (c *converter) omits(member any, omit *omission) bool {
	return c.doc.readOnly && !omit.disabled && c.readOnly(member, maxSchemaDepth)
}

// filterNames returns a list of names without the removed ones.
func (o *omission) filterNames(v any) any {
	list, ok := v.([]any)
	if !ok || len(o.hidden) == 0 {
		return v
	}
	return slices.DeleteFunc(slices.Clone(list), func(name any) bool {
		text, _ := name.(string)
		return o.hidden[text]
	})
}

// untouched is the variant from which nothing is removed. No name is equal to it.
const untouched = "\x00"

// variant returns how the target of a reference differs within omit from its usual form: the names that it requires but that only a schema
// around the reference marks as readOnly, or untouched. "" means that it does not differ.
func (c *converter) variant(ref string, omit *omission) (string, error) {
	if omit.disabled {
		return untouched, nil
	}
	if len(omit.hidden) == 0 {
		return "", nil
	}
	target, err := c.traitsAt(ref, maxSchemaDepth)
	if err == nil {
		err = c.spend(nameBytes * len(target.required))
	}
	if err != nil {
		return "", err
	}
	var names []string
	for name := range target.required {
		if omit.hidden[name] && !target.hidden[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, "\x00"), nil
}

// omission returns what is removed from the target besides what its own schema marks.
func (t target) omission() *omission {
	switch t.variant {
	case "":
		return &omission{}
	case untouched:
		return &omission{disabled: true}
	}
	hidden := map[string]bool{}
	for name := range strings.SplitSeq(t.variant, "\x00") {
		hidden[name] = true
	}
	return &omission{hidden: hidden}
}
