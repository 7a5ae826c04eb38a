package schema

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// metadata has the parts of a schema that messages may contain.
type metadata struct {
	byLocation map[string]*jsonschema.Schema
	declared   map[string]bool // names of properties that the schema contains
}

// prepare walks a compiled schema once and returns all its parts, together with the result of anchored if a part has a $dynamicRef. It
// changes each part: it calls dropSiblings and separate, removes format, which is an annotation in both drafts, and replaces propertyNames by
// a check that reports the correct location, because the library overwrites the memory of that location later. The set of valid values does
// not change.
func prepare(root *jsonschema.Schema, anchored func() []*jsonschema.Schema) (*metadata, []*jsonschema.Schema) {
	meta := &metadata{byLocation: map[string]*jsonschema.Schema{}, declared: map[string]bool{}}
	seen := map[*jsonschema.Schema]bool{}
	todo, isDynamic := []*jsonschema.Schema{root}, false
	var all []*jsonschema.Schema
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if s == nil || seen[s] {
			continue
		}
		seen[s] = true
		all = append(all, s)
		dropSiblings(s)
		if s.DynamicRef != nil && !isDynamic {
			todo, isDynamic = append(todo, anchored()...), true
		}
		meta.byLocation[s.Location] = s
		for name := range s.Properties {
			meta.declared[name] = true
		}
		todo = append(todo, subschemas(s)...)
		s.Format = nil
		for _, only := range separate(s) {
			seen[only] = true
			all = append(all, only)
		}
		if s.PropertyNames != nil {
			s.Extensions = append(s.Extensions, propertyNames{s.PropertyNames})
			s.PropertyNames = nil
		}
	}
	return meta, all
}

// dropSiblings removes the siblings of $ref in draft 7, which ignores them: the library evaluates some of them.
func dropSiblings(s *jsonschema.Schema) {
	if s.Ref != nil && s.DraftVersion < 2019 {
		ref := s.Ref
		*s = *blank(s)
		s.Ref = ref
	}
}

// separate moves type, enum and const into an allOf, and returns the schemas in it: the library stops at the first violation of one of
// them, which would hide other violations. It leaves a type alone if no other keyword of the schema can be violated in addition.
func separate(s *jsonschema.Schema) (added []*jsonschema.Schema) {
	others := s.Ref != nil || s.RecursiveRef != nil || s.DynamicRef != nil || s.Not != nil || s.If != nil ||
		len(s.AllOf)+len(s.AnyOf)+len(s.OneOf) > 0 || s.Minimum != nil || s.Maximum != nil ||
		s.ExclusiveMinimum != nil || s.ExclusiveMaximum != nil || s.MultipleOf != nil
	if s.Enum == nil && s.Const == nil && !(s.Types != nil && others) {
		return nil
	}
	add := func() *jsonschema.Schema {
		only := blank(s)
		added = append(added, only)
		return only
	}
	if s.Types != nil {
		add().Types, s.Types = s.Types, nil
	}
	if s.Const != nil {
		add().Const, s.Const = s.Const, nil
	}
	if s.Enum != nil {
		add().Enum, s.Enum = s.Enum, nil
	}
	s.AllOf = append(s.AllOf, added...)
	return added
}

// blank returns a schema at the location of s that accepts every value.
func blank(s *jsonschema.Schema) *jsonschema.Schema {
	c := *s
	v := reflect.ValueOf(&c).Elem()
	for i := range v.NumField() {
		switch f := v.Type().Field(i); {
		case !f.IsExported(), f.Name == "DraftVersion", f.Name == "Location":
		default:
			v.Field(i).SetZero()
		}
	}
	return &c
}

var annotations = strings.Fields("DraftVersion Location Format Title Description Default Comment ReadOnly WriteOnly Examples Deprecated")

// hasOnly reports whether a schema has no keywords other than those of the fields, and annotations.
func hasOnly(s *jsonschema.Schema, fields ...string) bool {
	v := reflect.ValueOf(*s)
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.IsExported() && !v.Field(i).IsZero() && !slices.Contains(fields, f.Name) && !slices.Contains(annotations, f.Name) {
			return false
		}
	}
	return true
}

// subschemas returns the schemas that s refers to or contains. Some elements are nil.
func subschemas(s *jsonschema.Schema) []*jsonschema.Schema {
	subs := slices.Concat(s.AllOf, s.AnyOf, s.OneOf, s.PrefixItems,
		[]*jsonschema.Schema{s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else, s.PropertyNames, s.Contains,
			s.Items2020, s.UnevaluatedItems, s.UnevaluatedProperties, s.ContentSchema})
	if s.DynamicRef != nil {
		subs = append(subs, s.DynamicRef.Ref)
	}
	subs = slices.AppendSeq(subs, maps.Values(s.Properties))
	subs = slices.AppendSeq(subs, maps.Values(s.PatternProperties))
	subs = slices.AppendSeq(subs, maps.Values(s.DependentSchemas))
	for _, v := range slices.AppendSeq([]any{s.Items, s.AdditionalItems, s.AdditionalProperties}, maps.Values(s.Dependencies)) {
		switch v := v.(type) {
		case *jsonschema.Schema:
			subs = append(subs, v)
		case []*jsonschema.Schema:
			subs = append(subs, v...)
		}
	}
	for _, ext := range s.Extensions {
		if names, ok := ext.(propertyNames); ok {
			subs = append(subs, names.schema)
		}
	}
	return subs
}

// propertyNames checks the names of the members of an object.
type propertyNames struct{ schema *jsonschema.Schema }

// Validate implements [jsonschema.SchemaExt].
func (p propertyNames) Validate(ctx *jsonschema.ValidatorContext, v any) {
	obj, ok := v.(map[string]any)
	if !ok {
		return
	}
	bad := 0
	for name := range obj {
		if p.schema.Validate(name) != nil {
			bad++
		}
	}
	if bad > 0 {
		ctx.AddError(&kind.PropertyNames{Property: strconv.Itoa(bad)})
	}
}
