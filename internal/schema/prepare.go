package schema

import (
	"iter"
	"slices"

	"github.com/lathe-run/lathe/internal/jsonschema"
)

// metadata are the parts of a schema that messages may show.
type metadata struct {
	declared map[string]bool // every property name that the schema itself writes down
}

// prepare walks the compiled schema once, before Compile returns it, and returns all its parts. It changes the schema so that a
// violation of type, enum or const does not hide others. The verdicts stay the same.
func prepare(root *jsonschema.Schema) (*metadata, []*jsonschema.Schema) {
	f := &metadata{declared: map[string]bool{}}
	seen := map[*jsonschema.Schema]bool{}
	todo := []*jsonschema.Schema{root}
	var all []*jsonschema.Schema
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if s == nil || seen[s] {
			continue
		}
		seen[s] = true
		all = append(all, s)
		for name := range s.Properties {
			f.declared[name] = true
		}
		todo = slices.AppendSeq(todo, subschemas(s))
		for _, only := range separate(s) {
			seen[only] = true
			all = append(all, only)
		}
	}
	return f, all
}

// separate moves type, enum and const, at the first of which a check ends, into an allOf.
func separate(s *jsonschema.Schema) (added []*jsonschema.Schema) {
	others := s.Ref != nil || s.DynamicRef != nil || s.Not != nil || s.If != nil ||
		len(s.AllOf)+len(s.AnyOf)+len(s.OneOf) > 0 || s.Minimum != nil || s.Maximum != nil ||
		s.ExclusiveMinimum != nil || s.ExclusiveMaximum != nil || s.MultipleOf != nil
	if s.Enum == nil && s.Const == nil && !(s.Types != 0 && others) {
		return nil
	}
	if s.Types != 0 {
		only := s.Empty()
		only.Types, s.Types = s.Types, 0
		added = append(added, only)
	}
	if s.Const != nil {
		only := s.Empty()
		only.Const, s.Const = s.Const, nil
		added = append(added, only)
	}
	if s.Enum != nil {
		only := s.Empty()
		only.Enum, s.Enum = s.Enum, nil
		added = append(added, only)
	}
	s.AllOf = append(s.AllOf, added...)
	return added
}

// subschemas yields each schema that s refers to or holds.
func subschemas(s *jsonschema.Schema) iter.Seq[*jsonschema.Schema] {
	return func(yield func(*jsonschema.Schema) bool) {
		ok := true
		put := func(subs ...*jsonschema.Schema) {
			for _, sub := range subs {
				if ok && sub != nil {
					ok = yield(sub)
				}
			}
		}
		putAny := func(v any) {
			if sub, isSchema := v.(*jsonschema.Schema); isSchema {
				put(sub)
			}
		}
		put(s.Ref, s.Not, s.If, s.Then, s.Else, s.PropertyNames, s.Contains, s.Items, s.UnevaluatedItems, s.UnevaluatedProperties)
		if s.DynamicRef != nil {
			put(s.DynamicRef.Ref)
		}
		put(s.AllOf...)
		put(s.AnyOf...)
		put(s.OneOf...)
		put(s.PrefixItems...)
		putAny(s.AdditionalItems)
		putAny(s.AdditionalProperties)
		for _, sub := range s.Properties {
			put(sub)
		}
		for _, sub := range s.PatternProperties {
			put(sub)
		}
		for _, sub := range s.DependentSchemas {
			put(sub)
		}
		for _, sub := range s.Dependencies {
			putAny(sub)
		}
	}
}
