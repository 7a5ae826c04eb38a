package httptool

import (
	"maps"
	"slices"
	"strings"
)

// Members that the document marks as readOnly are those of answers. The schemas of requests have them neither among the properties nor
// among the required names, so that a model need not invent values for them. In `not` and `if` nothing is left out: a schema there
// would match more values without its members.

// traits are what a schema says of the members of its value, itself or by reference, allOf, anyOf and oneOf.
type traits struct {
	hidden   map[string]bool // names of members that are readOnly; of those of anyOf and oneOf the ones that are it in every form
	required map[string]bool // names that it or a form of it requires
}

// readOnly reports whether a member of this schema is readOnly.
func (s *sharing) readOnly(v any, depth int) bool {
	in := asObject(v)
	if in == nil || depth == 0 {
		return false
	}
	if ref, ok := in["$ref"].(string); ok {
		known, seen := s.readOnlyAt[ref]
		if !seen {
			s.readOnlyAt[ref] = false      // of a schema that leads back to itself
			target, _ := s.doc.follow(ref) // an error is one of refer, too
			known = s.readOnly(target, depth-1)
			s.readOnlyAt[ref] = known
		}
		if known || s.doc.v30 { // there, what stands beside a reference is not looked at
			return known
		}
	}
	if b, _ := in["readOnly"].(bool); b {
		return true
	}
	return slices.ContainsFunc(asList(in["allOf"]), func(part any) bool { return s.readOnly(part, depth-1) })
}

// nameBytes is what a name takes in a set of names.
const nameBytes = 48

// collect adds the traits of a schema to t. It counts what the sets take as bytes of the tool.
func (s *sharing) collect(t *traits, v any, depth int) error {
	in := asObject(v)
	if in == nil || depth == 0 {
		return nil
	}
	ref, isRef := in["$ref"].(string)
	if !isRef || !s.doc.v30 {
		members := asObject(in["properties"])
		for name, member := range members {
			if s.readOnly(member, maxSchemaDepth) {
				t.hidden[name] = true
			}
		}
		required := asList(in["required"])
		for _, name := range required {
			if text, ok := name.(string); ok {
				t.required[text] = true
			}
		}
		if err := s.spend(nameBytes * (len(members) + len(required))); err != nil {
			return err
		}
	}
	if isRef {
		target, err := s.traitsAt(ref, depth-1)
		if err == nil {
			err = s.spend(nameBytes * (len(target.hidden) + len(target.required)))
		}
		if err != nil {
			return err
		}
		maps.Copy(t.hidden, target.hidden)
		maps.Copy(t.required, target.required)
		if s.doc.v30 {
			return nil
		}
	}
	for _, part := range asList(in["allOf"]) {
		if err := s.collect(t, part, depth-1); err != nil {
			return err
		}
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if err := s.collectForms(t, asList(in[keyword]), depth-1); err != nil {
			return err
		}
	}
	return nil
}

// collectForms adds the traits of the forms of anyOf or oneOf.
func (s *sharing) collectForms(t *traits, forms []any, depth int) error {
	var hidden map[string]bool
	for i, form := range forms {
		one := newTraits()
		if err := s.collect(one, form, depth); err != nil {
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

// traitsAt returns the traits of the schema that a reference leads to. While they are collected, a schema that leads back to itself
// gets those that are known by then.
func (s *sharing) traitsAt(ref string, depth int) (*traits, error) {
	if known := s.traits[ref]; known != nil {
		return known, nil
	}
	t := newTraits()
	s.traits[ref] = t
	v, err := s.doc.follow(ref)
	if err == nil {
		err = s.collect(t, v, depth)
	}
	return t, err
}

// An omission says what is left out of a schema of requests.
type omission struct {
	none   bool            // nothing is
	hidden map[string]bool // names of members that this schema, or another of the same value, says are readOnly
}

// inside returns the omission for the schemas of members and items of a value.
func (o *omission) inside() *omission { return &omission{none: o.none} }

// within returns the omission for the schema in, which holds for a value beside others with the omission o.
func (s *sharing) within(in map[string]any, o *omission) (*omission, error) {
	if o.none || !s.doc.readOnly {
		return o, nil
	}
	t := newTraits()
	if err := s.collect(t, in, maxSchemaDepth); err != nil || len(t.hidden) == 0 {
		return o, err
	}
	maps.Copy(t.hidden, o.hidden)
	return &omission{hidden: t.hidden}, s.spend(nameBytes * len(o.hidden))
}

// leavesOut reports whether a member with this schema is left out.
func (s *sharing) leavesOut(member any, o *omission) bool {
	return s.doc.readOnly && !o.none && s.readOnly(member, maxSchemaDepth)
}

// names returns a list of names without those that are left out.
func (o *omission) names(v any) any {
	list, ok := v.([]any)
	if !ok || len(o.hidden) == 0 {
		return v
	}
	return slices.DeleteFunc(slices.Clone(list), func(name any) bool {
		text, _ := name.(string)
		return o.hidden[text]
	})
}

// untouched is the variant from which nothing is left out. No name is.
const untouched = "\x00"

// variant returns in what the target of a reference differs, within o, from what it is elsewhere: it requires names which only a schema
// around the reference says are readOnly, or nothing is left out of it. "" says that it does not differ.
func (s *sharing) variant(ref string, o *omission) (string, error) {
	if o.none {
		return untouched, nil
	}
	if len(o.hidden) == 0 {
		return "", nil
	}
	target, err := s.traitsAt(ref, maxSchemaDepth)
	if err == nil {
		err = s.spend(nameBytes * len(target.required))
	}
	if err != nil {
		return "", err
	}
	var names []string
	for name := range target.required {
		if o.hidden[name] && !target.hidden[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, "\x00"), nil
}

// omission returns what is left out of a schema that a reference leads to, besides what the schema itself says.
func (t target) omission() *omission {
	switch t.variant {
	case "":
		return &omission{}
	case untouched:
		return &omission{none: true}
	}
	hidden := map[string]bool{}
	for name := range strings.SplitSeq(t.variant, "\x00") {
		hidden[name] = true
	}
	return &omission{hidden: hidden}
}
