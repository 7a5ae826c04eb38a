package httptool

// This file finds oneOf schemas that accept hardly any value, because each value of one form also matches another:
// {"oneOf":[{"properties":{"id":{}}},{"properties":{"name":{}}}]} matches {"id":1} twice, so that oneOf rejects it.

import (
	"fmt"
	"slices"
	"strings"
)

// Limits of the comparison of the forms of a oneOf.
const (
	maxForms    = 24     // further forms are not compared
	maxCompared = 20_000 // number of schemas, members and values in one oneOf
)

// An objectForm contains the constraints that one form of a oneOf has for objects.
type objectForm struct {
	members  map[string]any
	hidden   map[string]bool // members that requests do not contain
	required map[string]bool
	closed   bool           // further members are not allowed
	keywords map[string]any // all other keywords
	unclear  bool           // it has keywords that cannot be compared
}

// annotations are keywords without an effect on validation.
var annotations = words("title", "description", "$comment", "deprecated", "default", "readOnly", "writeOnly", "example", "examples", "discriminator", "xml", "externalDocs")

// compareForms adds a warning if a form of a oneOf can never be used, because each value with its declared members also matches another
// form. Only an undeclared member, or a value of a wrong type, would make a difference.
func (c *converter) compareForms(forms []any) {
	if len(c.warnings) > 0 {
		return
	}
	left := maxCompared
	all := make([]objectForm, min(len(forms), maxForms))
	for i := range all {
		all[i] = objectForm{members: map[string]any{}, hidden: map[string]bool{}, required: map[string]bool{}, keywords: map[string]any{}}
		c.readForm(&all[i], forms[i], &left)
	}
	for i := range all {
		for j := range all {
			if i != j && all[j].includes(&all[i], &left) {
				c.warnings = append(c.warnings, fmt.Sprintf("a value of %s in a oneOf matches %s, too, so that none is accepted; in the document, "+
					"give a member that both have a value of its own in each (const), or close them (additionalProperties: false)", formName(forms[i], i), formName(forms[j], j)))
				return
			}
		}
	}
}

// formName returns the name of a form in a warning.
func formName(form any, i int) string {
	if ref, ok := asObject(form)["$ref"].(string); ok {
		return fmt.Sprintf("form %d (%.60q)", i+1, ref[strings.LastIndexByte(ref, '/')+1:])
	}
	return fmt.Sprintf("form %d", i+1)
}

// readForm adds the constraints of a schema to f. It subtracts from left, the remaining amount of maxCompared.
func (c *converter) readForm(f *objectForm, v any, left *int) {
	in, err := c.doc.resolve(v)
	*left -= 1 + len(in) + len(asObject(in["properties"])) + len(asList(in["required"]))
	if err != nil || *left < 0 {
		f.unclear = true
		return
	}
	if local := asObject(v); local["$ref"] != nil && len(local) > 1 && !c.doc.v30 {
		f.unclear = true // the reference has other keywords beside it
		return
	}
	for key, val := range in {
		acceptsObjects := key == "type" && val == "object" || key == "additionalProperties" && val == true
		if acceptsObjects || isAnnotation(key, val) {
			continue
		}
		switch {
		case key == "properties":
			c.readMembers(f, asObject(val))
		case key == "required":
			for _, name := range asList(val) {
				text, _ := name.(string)
				f.required[text] = true
			}
		case key == "allOf":
			for _, part := range asList(val) {
				c.readForm(f, part, left)
			}
		case key == "additionalProperties" && val == false:
			f.closed = true
		default:
			if _, twice := f.keywords[key]; twice {
				f.unclear = true
			}
			f.keywords[key] = val
		}
	}
}

// readMembers adds the member schemas of an object to f.
func (c *converter) readMembers(f *objectForm, members map[string]any) {
	for name, member := range members {
		if c.omits(member, &omission{}) {
			f.hidden[name] = true
			continue
		}
		if _, twice := f.members[name]; twice {
			f.unclear = true
		}
		f.members[name] = member
	}
}

// isAnnotation reports whether a keyword has no effect on the values that a schema matches.
func isAnnotation(key string, val any) bool {
	return annotations[key] || strings.HasPrefix(key, "x-") || hasNoEffect(key, val)
}

// includes reports whether f matches every value with the declared members of other. It returns false if that is not certain.
func (f *objectForm) includes(other *objectForm, left *int) bool {
	if f.unclear || other.unclear || len(other.members) == 0 {
		return false
	}
	for name := range f.required {
		if !f.hidden[name] && !other.required[name] {
			return false
		}
	}
	for key, val := range f.keywords {
		if !same(val, other.keywords[key], left) {
			return false
		}
	}
	for name, member := range other.members {
		own, declared := f.members[name]
		if !declared && f.closed {
			return false
		}
		if declared && !contains(own, member, left) {
			return false
		}
	}
	return true
}

// contains reports whether schema matches every value that other matches: each constraint of schema is also one of other.
func contains(schema, other any, left *int) bool {
	in, ok := schema.(map[string]any)
	if !ok {
		return schema == true
	}
	more := asObject(other)
	for key, val := range in {
		if !isAnnotation(key, val) && !same(val, more[key], left) {
			return false
		}
	}
	return true
}

// same reports whether two values are equal. It returns false after maxCompared values.
func same(a, b any, left *int) bool {
	if *left--; *left < 0 {
		return false
	}
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for name, v := range a {
			if other, has := b[name]; !has || !same(v, other, left) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, func(x, y any) bool { return same(x, y, left) })
	case nil:
		return b == nil
	default:
		switch b.(type) {
		case map[string]any, []any:
			return false
		}
		return a == b
	}
}
