package schema

import (
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// ValidateArguments does the same as [Schema.Validate], for the arguments of a tool. In addition, no object in value may have two names
// that are equal under Unicode simple case folding, unless the schemas for that object declare all spellings in `properties`: otherwise a
// policy could read one of the two values and a tool the other.
func (s *Schema) ValidateArguments(value []byte) []Violation {
	if s.flat != nil && s.flat.admits(value) && !rawjson.HasFoldedNames(value) {
		return nil
	}
	v, vs := decode(value)
	if vs != nil {
		return vs
	}
	if vs = s.check(v); !rawjson.HasFoldedNames(value) {
		return vs
	}
	return tidy(append(vs, s.findFolded(v)...))
}

// findFolded returns a violation for each name in v that ValidateArguments does not allow.
func (s *Schema) findFolded(v any) (found []Violation) {
	f := folding{workload: s.work, left: maxWork}
	defer func() {
		if p := recover(); p != nil {
			found = append(f.found, exceeded(limitMessage(p))...)
		}
	}()
	f.value(v, []*jsonschema.Schema{s.root}, nil)
	if f.left <= 0 {
		f.found = append(f.found, exceeded("has names that differ only in letter case and takes too much work to check against this schema")...)
	}
	return f.found
}

// A folding finds names that are equal under case folding and that no schema declares.
type folding struct {
	*workload
	left  int // remaining part of maxWork
	found []Violation
}

// value checks v, to which the schemas apply, at path.
func (f *folding) value(v any, schemas []*jsonschema.Schema, path []string) {
	if f.left--; f.left <= 0 || len(f.found) >= MaxViolations {
		return
	}
	switch v := v.(type) {
	case []any:
		schemas = f.closure(schemas)
		for i, e := range v {
			parts := f.forPart(schemas, func(s *jsonschema.Schema) iter.Seq[*jsonschema.Schema] { return forItem(s, i) })
			f.value(e, parts, append(path, strconv.Itoa(i)))
		}
	case map[string]any:
		schemas = f.closure(schemas)
		f.names(v, schemas, path)
		for name, e := range v {
			matches := func(re jsonschema.Regexp) bool {
				found, work := match(re, name, f.left)
				f.left -= work
				return found && f.left > 0
			}
			parts := f.forPart(schemas, func(s *jsonschema.Schema) iter.Seq[*jsonschema.Schema] { return forMember(s, name, matches) })
			f.value(e, parts, append(path, name))
		}
	}
}

// names compares the names of one object.
func (f *folding) names(obj map[string]any, schemas []*jsonschema.Schema, path []string) {
	f.left -= len(obj)
	spellings := make(map[string][]string, len(obj))
	for name := range obj {
		folded := string(rawjson.AppendFold(nil, []byte(name)))
		spellings[folded] = append(spellings[folded], name)
	}
	for _, names := range spellings {
		if len(names) == 1 {
			continue
		}
		slices.Sort(names)
		for _, name := range names {
			f.left -= len(schemas)
			declares := func(s *jsonschema.Schema) bool { return s.Properties[name] != nil }
			if !slices.ContainsFunc(schemas, declares) {
				f.found = append(f.found, Violation{pointer(path, []string{name}), "properties",
					fmt.Sprintf("is one of %d names that differ only in letter case, and the schema does not declare it", len(names))})
			}
		}
	}
}

// closure adds to the schemas of a value those that they apply to the same value.
func (f *folding) closure(schemas []*jsonschema.Schema) []*jsonschema.Schema {
	seen := make(map[*jsonschema.Schema]bool, len(schemas))
	all := make([]*jsonschema.Schema, 0, len(schemas))
	add := func(s *jsonschema.Schema) {
		if !seen[s] && f.left > 0 {
			f.left--
			seen[s] = true
			all = append(all, s)
		}
	}
	for _, s := range schemas {
		add(s)
	}
	for i := 0; i < len(all); i++ {
		for sub := range f.inPlace(all[i]) {
			add(sub)
		}
	}
	return all
}

// forPart returns the schemas for a part of a value. each yields those that one schema of the value applies to that part.
func (f *folding) forPart(schemas []*jsonschema.Schema, each func(*jsonschema.Schema) iter.Seq[*jsonschema.Schema]) (all []*jsonschema.Schema) {
	for _, s := range schemas {
		if f.left--; f.left <= 0 {
			break
		}
		all = slices.AppendSeq(all, each(s))
	}
	return all
}
