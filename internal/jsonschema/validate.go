package jsonschema

import (
	"encoding/json"
	"slices"
	"strconv"
)

// An Error is a keyword that a value breaks. What the keyword asks for stands in Schema.
type Error struct {
	Schema *Schema
	// Keyword is its name; "false" for a schema that is false.
	Keyword string
	Path    []string // of the value: names and indexes

	Type  string   // of the value, for type
	Count int      // of characters, items or members that the value has; of additionalItems and additionalProperties those that are too many
	Name  string   // of the member, for dependencies and dependentRequired
	Names []string // of the members that are missing
	// Pair are two items that are equal, or for oneOf two forms that match, from 0; for oneOf both are 0 if no form matches.
	Pair [2]int
	// Forms are, for anyOf and oneOf, what is broken of each.
	Forms [][]*Error
}

// Validate returns the keywords of s that a value breaks, in no order; nil if the value is valid. The errors of allOf and of references are
// those of the schemas that they apply. The value must be one that [encoding/json] makes with numbers as [json.Number].
func (s *Schema) Validate(v any) []*Error {
	r := run{}
	return r.apply(&frame{schema: s}, v, false, nil)
}

// A run is one validation.
type run struct {
	compile  func(expr string) (Regexp, error) // of the format regex
	dialects *dialects                         // nil: each frame has its own schema
}

// A frame is the application of a schema to a value, within others.
type frame struct {
	schema *Schema
	parent *frame
	same   bool   // it is the value of the parent
	name   string // of the value in that of the parent
	index  int    // if the value of the parent is an array
	inList bool
}

// path returns the names and indexes that lead to the value.
func (f *frame) path() []string {
	var path []string
	for ; f.parent != nil; f = f.parent {
		switch {
		case f.same:
		case f.inList:
			path = append(path, strconv.Itoa(f.index))
		default:
			path = append(path, f.name)
		}
	}
	slices.Reverse(path)
	return path
}

// evaluated are the parts of a value that keywords have evaluated, in the sense of unevaluatedItems and unevaluatedProperties.
type evaluated struct {
	all   bool
	first int // items
	items map[int]bool
	names map[string]bool
}

func (e *evaluated) merge(other *evaluated) {
	e.all = e.all || other.all
	e.first = max(e.first, other.first)
	for i := range other.items {
		e.item(i)
	}
	for name := range other.names {
		e.name(name)
	}
}

func (e *evaluated) item(i int) {
	if e.items == nil {
		e.items = map[int]bool{}
	}
	e.items[i] = true
}

func (e *evaluated) name(name string) {
	if e.names == nil {
		e.names = map[string]bool{}
	}
	e.names[name] = true
}

// broken is what a quick application returns for a value that is not valid.
var broken = []*Error{{}}

// apply applies the schema of a frame to its value. A quick application says only whether the value is valid. The parts that were evaluated are
// added to seen, if that is not nil and the value is valid.
func (r *run) apply(f *frame, v any, quick bool, seen *evaluated) []*Error {
	if r.dialects != nil {
		f.schema = r.dialects.schema(f)
	}
	s := f.schema
	a := application{run: r, frame: f, s: s, quick: quick}
	if s.Bool != nil {
		if !*s.Bool {
			a.add(&Error{Keyword: "false"})
		}
		return a.errs
	}
	for up := f; up.same; {
		if up = up.parent; up.schema == s {
			a.add(&Error{Keyword: "$ref"})
			return a.errs
		}
	}
	if s.Draft == Draft7 && s.Ref != nil { // the keywords beside it are ignored
		if seen != nil {
			a.seen = &evaluated{}
		}
		a.errs = a.self(s.Ref, v, false)
	} else if !a.scalar(v) {
		return a.errs
	} else {
		if seen != nil || s.UnevaluatedItems != nil || s.UnevaluatedProperties != nil {
			a.seen = &evaluated{}
		}
		a.parts(v)
		if a.errs == nil || !quick {
			a.inPlace(v)
			a.unevaluated(v)
		}
	}
	if a.errs == nil && seen != nil {
		seen.merge(a.seen)
	}
	return a.errs
}

// An application is the state of one call of apply.
type application struct {
	*run
	*frame
	s     *Schema
	quick bool
	errs  []*Error
	seen  *evaluated // nil: no keyword reads it
}

// add adds an error at the value.
func (a *application) add(e *Error) {
	if a.quick {
		a.errs = broken
		return
	}
	e.Schema, e.Path = a.s, a.path()
	a.errs = append(a.errs, e)
}

// self applies a schema to the same value, and adds to seen what it evaluates.
func (a *application) self(sub *Schema, v any, quick bool) []*Error {
	var seen *evaluated
	if a.seen != nil {
		seen = &evaluated{}
	}
	errs := a.apply(&frame{schema: sub, parent: a.frame, same: true}, v, a.quick || quick, seen)
	if errs == nil && seen != nil {
		a.seen.merge(seen)
	}
	return errs
}

// require adds the errors of a schema for the same value.
func (a *application) require(sub *Schema, v any) {
	if sub != nil && (a.errs == nil || !a.quick) {
		a.errs = append(a.errs, a.self(sub, v, false)...)
	}
}

// member applies a schema to the value of a member, and adds its errors.
func (a *application) member(sub *Schema, name string, v any) {
	a.errs = append(a.errs, a.apply(&frame{schema: sub, parent: a.frame, name: name}, v, a.quick, nil)...)
}

// item applies a schema to an item.
func (a *application) item(sub *Schema, i int, v any) []*Error {
	return a.apply(&frame{schema: sub, parent: a.frame, index: i, inList: true}, v, a.quick, nil)
}

// scalar checks type, const, enum and format, and returns false at the first that is broken: the application then ends.
func (a *application) scalar(v any) bool {
	s := a.s
	kind := typeOf(v)
	if s.Types != 0 && s.Types&kind == 0 {
		n, isNumber := v.(json.Number)
		if s.Types&integer == 0 || !isNumber || !isWhole(n) {
			a.add(&Error{Keyword: "type", Type: nameOf(kind)})
			return false
		}
	}
	if s.Const != nil && !equal(v, *s.Const) {
		a.add(&Error{Keyword: "const"})
		return false
	}
	if s.Enum != nil && !slices.ContainsFunc(s.Enum, func(e any) bool { return equal(v, e) }) {
		a.add(&Error{Keyword: "enum"})
		return false
	}
	if text, ok := v.(string); ok && s.format != "" && !a.hasFormat(text) {
		a.add(&Error{Keyword: "format"})
		return false
	}
	return true
}

// nameOf returns the name of a type.
func nameOf(t Types) string {
	if names := t.Names(); len(names) == 1 {
		return names[0]
	}
	return "no JSON value"
}

// hasFormat reports whether a text has one of the formats of the schemas of the drafts.
func (a *application) hasFormat(text string) bool {
	switch a.s.format {
	case "regex":
		_, err := a.compile(text)
		return err == nil
	case "uri":
		return isURI(text)
	case "uri-reference":
		return isURIReference(text)
	}
	return true
}

// Format returns the format of a schema of the drafts; "" for all other schemas.
func (s *Schema) Format() string { return s.format }

// inPlace applies the keywords whose schemas apply to the same value, such as $ref, allOf and if.
func (a *application) inPlace(v any) {
	s := a.s
	a.require(s.Ref, v)
	if d := s.DynamicRef; d != nil {
		target := d.Ref
		if d.Anchor != "" && target.DynamicAnchor == d.Anchor {
			for up := a.frame; up != nil; up = up.parent { // the outermost anchor applies
				if outer := up.schema.resource.anchors[d.Anchor]; outer != nil {
					target = outer
				}
			}
		}
		a.require(target, v)
	}
	if s.Not != nil && a.self(s.Not, v, true) == nil {
		a.add(&Error{Keyword: "not"})
	}
	for _, sub := range s.AllOf {
		a.require(sub, v)
	}
	a.anyOf(v)
	a.oneOf(v)
	if s.If != nil {
		if a.self(s.If, v, true) == nil {
			a.require(s.Then, v)
		} else {
			a.require(s.Else, v)
		}
	}
}

func (a *application) anyOf(v any) {
	if len(a.s.AnyOf) == 0 {
		return
	}
	matched := false
	var forms [][]*Error
	for _, sub := range a.s.AnyOf {
		errs := a.self(sub, v, matched)
		if errs == nil {
			if matched = true; a.seen == nil {
				return
			}
		}
		forms = append(forms, errs)
	}
	if !matched {
		a.add(&Error{Keyword: "anyOf", Forms: forms})
	}
}

func (a *application) oneOf(v any) {
	if len(a.s.OneOf) == 0 {
		return
	}
	matched := -1
	var forms [][]*Error
	for i, sub := range a.s.OneOf {
		errs := a.self(sub, v, matched >= 0)
		switch {
		case errs != nil:
			forms = append(forms, errs)
		case matched >= 0:
			a.add(&Error{Keyword: "oneOf", Pair: [2]int{matched, i}})
			return
		default:
			matched = i
		}
	}
	if matched < 0 {
		a.add(&Error{Keyword: "oneOf", Forms: forms})
	}
}

// unevaluated applies unevaluatedItems or unevaluatedProperties to the parts that no other keyword has evaluated.
func (a *application) unevaluated(v any) {
	switch v := v.(type) {
	case []any:
		sub := a.s.UnevaluatedItems
		if sub == nil {
			return
		}
		if !a.seen.all {
			for i := a.seen.first; i < len(v); i++ {
				if !a.seen.items[i] {
					a.errs = append(a.errs, a.item(sub, i, v[i])...)
				}
			}
		}
		a.seen.all = true
	case map[string]any:
		sub := a.s.UnevaluatedProperties
		if sub == nil {
			return
		}
		if !a.seen.all {
			for name, value := range v {
				if !a.seen.names[name] {
					a.member(sub, name, value)
				}
			}
		}
		a.seen.all = true
	}
}
