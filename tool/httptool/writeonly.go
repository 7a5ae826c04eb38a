package httptool

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// maxShapes bounds the schemas that are looked at for one value of an answer.
const maxShapes = 256

// A shape is what a schema of answers says of members that are writeOnly, which a server must not send: a password, for example. They are
// removed from answers. Shapes form a graph, as schemas do by their references.
type shape struct {
	writeOnly bool // a value of this shape, if it is a member of an object
	members   map[string]*shape
	items     []*shape // of the elements of a list
	others    []*shape // of the members that are not among members
	also      []*shape // that the same value has: of references, allOf, anyOf and oneOf

	leads   bool     // to a member that is writeOnly
	parents []*shape // while the document is read
}

// shapes are those of one document.
type shapes struct {
	doc   *document
	at    map[string]*shape // by reference
	all   []*shape
	queue []string // references whose schemas are still to be read
}

// ofAnswers returns the shapes of an operation's JSON answers, by status.
func (s *shapes) ofAnswers(responses map[string]any) map[string]*shape {
	if !s.doc.writeOnly {
		return nil
	}
	out := map[string]*shape{}
	for status, v := range responses {
		response, err := s.doc.resolve(v)
		if err != nil {
			continue // an answer that is not described is not changed
		}
		whole := s.add()
		for typ, v := range asObject(response["content"]) {
			if media, err := s.doc.resolve(v); err == nil && isJSON(typ) {
				s.link(whole, &whole.also, media["schema"], maxSchemaDepth)
			}
		}
		out[strings.ToUpper(status)] = whole
	}
	return out
}

func (s *shapes) add() *shape {
	one := &shape{}
	s.all = append(s.all, one)
	return one
}

// link appends the shape of a schema to a list of parent.
func (s *shapes) link(parent *shape, list *[]*shape, schema any, depth int) {
	if one := s.of(schema, depth); one != nil {
		one.parents = append(one.parents, parent)
		*list = append(*list, one)
	}
}

// of returns the shape of a schema; nil if it is none or is nested too deeply.
func (s *shapes) of(v any, depth int) *shape {
	in := asObject(v)
	if in == nil || depth == 0 {
		return nil
	}
	one := s.add()
	if ref, ok := in["$ref"].(string); ok {
		target := s.to(ref)
		target.parents = append(target.parents, one)
		one.also = append(one.also, target)
		if s.doc.v30 { // there, what stands beside a reference is not looked at
			return one
		}
	}
	one.writeOnly, _ = in["writeOnly"].(bool)
	for name, member := range asObject(in["properties"]) {
		if m := s.of(member, depth-1); m != nil {
			if one.members == nil {
				one.members = map[string]*shape{}
			}
			m.parents = append(m.parents, one)
			one.members[name] = m
		}
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		for _, part := range asList(in[keyword]) {
			s.link(one, &one.also, part, depth-1)
		}
	}
	for _, keyword := range []string{"then", "else"} {
		s.link(one, &one.also, in[keyword], depth-1)
	}
	s.link(one, &one.items, in["items"], depth-1)
	for _, item := range asList(in["prefixItems"]) {
		s.link(one, &one.items, item, depth-1)
	}
	s.link(one, &one.others, in["additionalProperties"], depth-1)
	s.link(one, &one.others, in["unevaluatedProperties"], depth-1)
	for _, schema := range asObject(in["patternProperties"]) {
		s.link(one, &one.others, schema, depth-1)
	}
	return one
}

// to returns the shape of the schema that a reference leads to.
func (s *shapes) to(ref string) *shape {
	if known, ok := s.at[ref]; ok {
		return known
	}
	s.at[ref], s.queue = s.add(), append(s.queue, ref)
	return s.at[ref]
}

// finish reads what references lead to, and forgets what leads to no member that is writeOnly. No shape is added afterwards.
func (s *shapes) finish(defs []*Definition) {
	for len(s.queue) > 0 {
		ref := s.queue[0]
		s.queue = s.queue[1:]
		if v, err := s.doc.follow(ref); err == nil {
			s.link(s.at[ref], &s.at[ref].also, v, maxSchemaDepth)
		}
	}
	var next []*shape
	for _, one := range s.all {
		if one.writeOnly {
			one.leads, next = true, append(next, one)
		}
	}
	for len(next) > 0 {
		one := next[len(next)-1]
		next = next[:len(next)-1]
		for _, parent := range one.parents {
			if !parent.leads {
				parent.leads, next = true, append(next, parent)
			}
		}
	}
	for _, one := range s.all {
		one.parents = nil
		one.items, one.others, one.also = leading(one.items), leading(one.others), leading(one.also)
		maps.DeleteFunc(one.members, func(_ string, m *shape) bool { return !m.leads && len(one.others) == 0 })
	}
	for _, def := range defs {
		if len(leading(slices.Collect(maps.Values(def.document.answers)))) == 0 {
			def.document.answers = nil
		}
	}
}

// leading returns those shapes of a list that lead to a member that is writeOnly.
func leading(list []*shape) (out []*shape) {
	for _, one := range list {
		if one.leads {
			out = append(out, one)
		}
	}
	return out
}

// withoutWriteOnly returns a JSON answer without the members that the document says are writeOnly. Text that is not JSON stays as it is.
func (d *Definition) withoutWriteOnly(status int, b []byte) []byte {
	if len(d.document.answers) == 0 || rawjson.Check(b, rawjson.Limits{}) != nil {
		return b
	}
	code := strconv.Itoa(status)
	for _, key := range []string{code, code[:1] + "XX", "DEFAULT"} {
		if one, ok := d.document.answers[key]; ok {
			return appendVisible(make([]byte, 0, len(b)), b, []*shape{one})
		}
	}
	return b
}

// appendVisible appends a value that has the shapes.
func appendVisible(dst, v []byte, shapes []*shape) []byte {
	v = v[rawjson.SkipSpace(v, 0):]
	shapes = closure(shapes)
	switch {
	case len(shapes) == 0 || len(v) == 0:
		return append(dst, v...)
	case v[0] == '[':
		var items []*shape
		for _, one := range shapes {
			items = append(items, one.items...)
		}
		dst = append(dst, '[')
		separate := false
		for e := range rawjson.Elements(v) {
			if separate {
				dst = append(dst, ',')
			}
			dst, separate = appendVisible(dst, e, items), true
		}
		return append(dst, ']')
	case v[0] == '{':
		dst = append(dst, '{')
		separate := false
		for k, e := range rawjson.Members(v) {
			member := memberShapes(shapes, string(rawjson.AppendUnquoteLossy(nil, k)))
			if slices.ContainsFunc(member, func(one *shape) bool { return one.writeOnly }) {
				continue
			}
			if separate {
				dst = append(dst, ',')
			}
			dst, separate = appendVisible(append(append(dst, k...), ':'), e, member), true
		}
		return append(dst, '}')
	}
	return append(dst, v...)
}

// memberShapes returns the shapes of a member of a value that has the shapes.
func memberShapes(shapes []*shape, name string) (out []*shape) {
	for _, one := range shapes {
		if m, ok := one.members[name]; ok {
			out = append(out, m)
		} else {
			out = append(out, one.others...)
		}
	}
	return closure(out)
}

// closure returns the shapes and those that the same value has.
func closure(list []*shape) []*shape {
	seen := map[*shape]bool{}
	var out []*shape
	for next := list; len(next) > 0 && len(out) < maxShapes; {
		var more []*shape
		for _, one := range next {
			if !seen[one] {
				seen[one] = true
				out, more = append(out, one), append(more, one.also...)
			}
		}
		next = more
	}
	return out
}
