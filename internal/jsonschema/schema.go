// Package jsonschema compiles JSON Schema, draft 2020-12 and draft 7, and validates decoded values. It reports each keyword that a
// value breaks, with the place in the value.
//
// Nothing is made before the first use: the schemas of the drafts themselves, against which each schema is checked, are compiled
// when a schema is. Package internal/schema bounds what is compiled and checked here, and writes the messages.
package jsonschema

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
)

// A Draft is a version of JSON Schema.
type Draft int

// The drafts.
const (
	Draft7    Draft = 7
	Draft2020 Draft = 2020
)

// A Regexp is a compiled regular expression.
type Regexp interface {
	fmt.Stringer
	// MatchString reports whether the text holds a match.
	MatchString(text string) bool
}

// A Schema is one compiled schema: the root or a part of it. A field is nil or empty if the schema does not have the keyword. Several
// goroutines may use a Schema at once while none changes it.
type Schema struct {
	Draft Draft
	Bool  *bool // a schema that is true or false, or has no keyword at all

	Ref           *Schema
	DynamicRef    *DynamicRef
	DynamicAnchor string

	Types Types
	Enum  []any
	Const *any

	Not, If, Then, Else *Schema
	AllOf, AnyOf, OneOf []*Schema

	MinProperties, MaxProperties *int
	Required                     []string
	Properties                   map[string]*Schema
	PatternProperties            map[Regexp]*Schema
	AdditionalProperties         any // bool or *Schema
	PropertyNames                *Schema
	Dependencies                 map[string]any // of []string or *Schema
	DependentRequired            map[string][]string
	DependentSchemas             map[string]*Schema
	UnevaluatedProperties        *Schema

	MinItems, MaxItems       *int
	UniqueItems              bool
	PrefixItems              []*Schema // in draft 7 the list in items
	Items                    *Schema   // of all items; after PrefixItems in draft 2020-12
	AdditionalItems          any       // bool or *Schema, only after the list of draft 7
	Contains                 *Schema
	MinContains, MaxContains *int
	UnevaluatedItems         *Schema

	MinLength, MaxLength *int
	Pattern              Regexp

	Minimum, Maximum, ExclusiveMinimum, ExclusiveMaximum, MultipleOf *big.Rat

	format   string // only in the schemas of the drafts
	place    place
	resource *Schema            // the schema at the root of the resource that this one belongs to
	anchors  map[string]*Schema // of $dynamicAnchor, at the root of a resource
}

// A DynamicRef is a $dynamicRef.
type DynamicRef struct {
	Ref    *Schema // where it leads without regard to the dynamic scope
	Anchor string  // empty if the reference names no anchor
}

// Location returns the address of the document and the JSON pointer of the schema in it.
func (s *Schema) Location() string { return s.place.String() }

// Empty returns a schema at the place of s that any value matches.
func (s *Schema) Empty() *Schema {
	return &Schema{Draft: s.Draft, place: s.place, resource: s.resource}
}

// A place is a document and a JSON pointer in it.
type place struct{ document, pointer string }

// String returns the place as a URL.
func (p place) String() string { return p.document + "#" + encodeFragment(p.pointer) }

// Types is a set of JSON types.
type Types uint8

// The types in the order of [Types.Names].
const (
	null Types = 1 << iota
	boolean
	number
	integer
	text
	array
	object
)

var typeNames = [...]string{"null", "boolean", "number", "integer", "string", "array", "object"}

// Names returns the names of the types in the set.
func (t Types) Names() []string {
	var names []string
	for i, name := range typeNames {
		if t&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// typesOf returns the set that the keyword type names.
func typesOf(v any) (t Types) {
	names, ok := v.([]any)
	if !ok {
		names = []any{v}
	}
	for _, name := range names {
		for i, known := range typeNames {
			if name == known {
				t |= 1 << i
			}
		}
	}
	return t
}

// typeOf returns the type of a value that [encoding/json] decodes with numbers as [json.Number]; 0 for any other value.
func typeOf(v any) Types {
	switch v.(type) {
	case nil:
		return null
	case bool:
		return boolean
	case json.Number:
		return number
	case string:
		return text
	case []any:
		return array
	case map[string]any:
		return object
	}
	return 0
}

// rational returns the value of a number.
func rational(n json.Number) *big.Rat {
	r, ok := new(big.Rat).SetString(string(n))
	if !ok {
		return new(big.Rat)
	}
	return r
}

// isWhole reports whether a number has no fraction, however it is written.
func isWhole(n json.Number) bool {
	return !strings.ContainsAny(string(n), ".eE") || rational(n).IsInt()
}

// equal reports whether two values are the same; numbers are compared by their value.
func equal(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		return ok && (a == b || rational(a).Cmp(rational(b)) == 0)
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !equal(a[i], b[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for name, v := range a {
			if other, has := b[name]; !has || !equal(v, other) {
				return false
			}
		}
		return true
	}
	switch b.(type) {
	case []any, map[string]any:
		return false // they cannot be compared
	}
	return a == b
}
