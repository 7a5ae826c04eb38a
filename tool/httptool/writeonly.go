package httptool

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// maxShapes bounds the schemas with members that are writeOnly which apply to one value of an answer.
const maxShapes = 256

// What shapes and views take in memory, which counts as bytes of the tools.
const (
	shapeBytes = 200 // of one
	linkBytes  = 24  // of a link from one to another
)

// A shape is what a schema of answers says of members that are writeOnly, which a server must not send: a password, for example. They are
// removed from answers. Shapes form a graph, as schemas do by their references. The node is marked if the shape leads to a member that is
// writeOnly.
type shape struct {
	node
	number    int  // among those of the document
	writeOnly bool // a value of this shape, if it is a member of an object
	members   map[string]*shape
	items     []*shape // of the elements of a list
	others    []*shape // of the members that are not among members
	also      []*shape // that the same value has: of references, allOf, anyOf, oneOf and conditions
}

// A view says what is shown of a value to which a set of shapes applies. nil shows all of it. The node is marked if the view or one
// within it has more shapes than maxShapes.
type view struct {
	node
	shapes  []*shape // while the document is read
	hidden  bool
	members map[string]*view
	others  *view // of the members that are not among members
	items   *view // of the elements of a list
}

// A node is part of a graph in which a mark passes from each node to those that lead to it.
type node struct {
	marked  bool
	parents []*node // while the document is read
}

func (n *node) mark() {
	for next := []*node{n}; len(next) > 0; {
		one := next[len(next)-1]
		if next = next[:len(next)-1]; !one.marked {
			one.marked, next = true, append(next, one.parents...)
		}
	}
}

// leadsTo adds a link.
func (n *node) leadsTo(child *node) {
	if child.parents = append(child.parents, n); child.marked {
		n.mark()
	}
}

// An identity tells an object of a document from others that are equal to it.
type identity uintptr

func identityOf(object map[string]any) identity { return identity(reflect.ValueOf(object).Pointer()) }

// shapes are those of one document. Operations share what they have in common: each object of the document is read once.
type shapes struct {
	doc       *document
	left      *int // of maxSchemaBytes
	schemas   map[identity]*shape
	responses map[identity]*shape
	answers   map[identity]map[string]*view // by the object of an operation's responses
	views     map[string]*view              // by the numbers of their shapes
	unread    []func()                      // schemas whose shapes, and views whose parts, are still to be read
}

func newShapes(d *document, left *int) *shapes {
	return &shapes{doc: d, left: left, schemas: map[identity]*shape{}, responses: map[identity]*shape{}, answers: map[identity]map[string]*view{}, views: map[string]*view{}}
}

// ofAnswers returns what is shown of an operation's answers, by status; nil if all is.
func (s *shapes) ofAnswers(responses map[string]any) (map[string]*view, error) {
	if !s.doc.writeOnly || responses == nil {
		return nil, nil
	}
	out, known := s.answers[identityOf(responses)]
	if !known {
		all := map[string]*shape{}
		for status, v := range responses {
			if response, err := s.doc.resolve(v); err == nil { // an answer that is not described is not changed
				all[strings.ToUpper(status)] = s.ofResponse(response)
			}
		}
		if err := s.read(); err != nil {
			return nil, err
		}
		out = map[string]*view{}
		for status, one := range all {
			out[status] = s.view([]*shape{one})
		}
		if err := s.read(); err != nil {
			return nil, err
		}
		s.answers[identityOf(responses)] = out
	}
	for _, one := range out {
		if one != nil && one.marked {
			return nil, fmt.Errorf("more than %d schemas with members that are writeOnly apply to one value of its answers", maxShapes)
		}
	}
	return out, nil
}

// read reads what is unread, and refuses more than all tools may take. What is refused stays unread, which is for the whole document.
func (s *shapes) read() error {
	for len(s.unread) > 0 && *s.left >= 0 {
		next := s.unread[len(s.unread)-1]
		s.unread = s.unread[:len(s.unread)-1]
		next()
	}
	if *s.left < 0 {
		return errTooLarge
	}
	return nil
}

// add returns a new shape.
func (s *shapes) add() *shape {
	*s.left -= shapeBytes
	return &shape{number: len(s.schemas) + len(s.responses)}
}

// ofResponse returns the shape of the content of a response: servers send JSON with other content types, too.
func (s *shapes) ofResponse(response map[string]any) *shape {
	id := identityOf(response)
	one, known := s.responses[id]
	if !known {
		one = s.add()
		s.responses[id] = one
		for _, v := range asObject(response["content"]) {
			if media, err := s.doc.resolve(v); err == nil {
				s.link(one, &one.also, media["schema"])
			}
		}
	}
	return one
}

// of returns the shape of a schema; nil if it is none.
func (s *shapes) of(schema any) *shape {
	in := asObject(schema)
	if in == nil {
		return nil
	}
	id := identityOf(in)
	one, known := s.schemas[id]
	if !known {
		one = s.add()
		s.schemas[id] = one
		s.unread = append(s.unread, func() { s.fill(one, in) })
	}
	return one
}

// link appends the shapes of schemas to a list of parent.
func (s *shapes) link(parent *shape, list *[]*shape, schemas ...any) {
	for _, schema := range schemas {
		if one := s.of(schema); one != nil {
			*s.left -= linkBytes
			parent.leadsTo(&one.node)
			*list = append(*list, one)
		}
	}
}

// fill reads the schema of a shape.
func (s *shapes) fill(one *shape, in map[string]any) {
	if ref, ok := in["$ref"].(string); ok {
		if target, err := s.doc.follow(ref); err == nil {
			s.link(one, &one.also, target)
		}
		if s.doc.v30 { // there, what stands beside a reference is not looked at
			return
		}
	}
	if one.writeOnly = in["writeOnly"] == true; one.writeOnly {
		one.mark()
	}
	for name, member := range asObject(in["properties"]) {
		if m := s.of(member); m != nil {
			if one.members == nil {
				one.members = map[string]*shape{}
			}
			*s.left -= nameBytes
			one.leadsTo(&m.node)
			one.members[name] = m
		}
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		s.link(one, &one.also, asList(in[keyword])...)
	}
	s.link(one, &one.also, in["if"], in["then"], in["else"])
	for _, schema := range asObject(in["dependentSchemas"]) {
		s.link(one, &one.also, schema)
	}
	s.link(one, &one.items, in["items"], in["contains"], in["unevaluatedItems"])
	s.link(one, &one.items, asList(in["prefixItems"])...)
	s.link(one, &one.others, in["additionalProperties"], in["unevaluatedProperties"])
	for _, schema := range asObject(in["patternProperties"]) {
		s.link(one, &one.others, schema)
	}
}

// view returns what is shown of a value to which shapes apply; nil if all of it is.
func (s *shapes) view(shapes []*shape) *view {
	all := s.closure(shapes)
	if len(all) == 0 {
		return nil
	}
	var key []byte
	for _, one := range all {
		key = append(strconv.AppendInt(key, int64(one.number), 36), ' ')
	}
	v, known := s.views[string(key)]
	if !known {
		*s.left -= shapeBytes + len(key)
		v = &view{shapes: all, hidden: slices.ContainsFunc(all, func(one *shape) bool { return one.writeOnly })}
		s.views[string(key)] = v
		if len(all) > maxShapes {
			v.mark()
		} else {
			s.unread = append(s.unread, func() { s.open(v) })
		}
	}
	return v
}

// open reads the parts of a view.
func (s *shapes) open(v *view) {
	within := func(shapes []*shape) *view {
		part := s.view(shapes)
		if part != nil {
			*s.left -= linkBytes
			v.leadsTo(&part.node)
		}
		return part
	}
	var items, others []*shape
	for _, one := range v.shapes {
		items, others = append(items, one.items...), append(others, one.others...)
	}
	v.items, v.others = within(items), within(others)
	for _, one := range v.shapes {
		*s.left -= linkBytes * len(one.members)
		for name, m := range one.members {
			if _, known := v.members[name]; known || !m.marked && v.others == nil {
				continue
			}
			*s.left -= nameBytes + linkBytes*len(v.shapes)
			if *s.left < 0 {
				return
			}
			if v.members == nil {
				v.members = map[string]*view{}
			}
			v.members[name] = within(memberShapes(v.shapes, name))
		}
	}
}

// finish frees what only reading needs. No answers are read afterwards.
func (s *shapes) finish() {
	for _, v := range s.views {
		v.shapes, v.parents = nil, nil
	}
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
	return out
}

// closure returns those of the shapes, and of those that the same value has, that lead to a member that is writeOnly and not only to
// other shapes of the same value, in the order of their numbers. If they are more than maxShapes, it stops.
func (s *shapes) closure(list []*shape) (out []*shape) {
	seen := map[*shape]bool{}
	for next := list; len(next) > 0 && len(out) <= maxShapes; {
		*s.left -= linkBytes * len(next)
		var more []*shape
		for _, one := range next {
			if one.marked && !seen[one] {
				seen[one] = true
				if more = append(more, one.also...); one.writeOnly || len(one.members)+len(one.items)+len(one.others) > 0 {
					out = append(out, one)
				}
			}
		}
		next = more
	}
	slices.SortFunc(out, func(a, b *shape) int { return cmp.Compare(a.number, b.number) })
	return out
}

// withoutWriteOnly returns a JSON answer without the members that the document says are writeOnly, also if it is a text that has the
// answer. What is not JSON stays as it is.
func (d *Definition) withoutWriteOnly(status int, b []byte) []byte {
	var shown *view
	code := strconv.Itoa(status)
	for _, key := range []string{code, code[:1] + "XX", "DEFAULT"} {
		if one, ok := d.document.answers[key]; ok {
			shown = one
			break
		}
	}
	if shown == nil || rawjson.Check(b, rawjson.Limits{}) != nil {
		return b
	}
	if text := rawjson.Text(b); text != "" { // of another content type than JSON
		inner := []byte(text)
		end, err := rawjson.Scan(inner, 0)
		if err != nil || rawjson.SkipSpace(inner, end) < len(inner) {
			return b
		}
		return rawjson.AppendQuote(nil, string(appendVisible(nil, inner, shown, rawjson.DefaultMaxDepth)))
	}
	return appendVisible(make([]byte, 0, len(b)), b, shown, rawjson.DefaultMaxDepth)
}

// appendVisible appends what is shown of a value: of a part that is nested deeper than depth nothing, if something in it may be hidden.
func appendVisible(dst, v []byte, shown *view, depth int) []byte {
	v = v[rawjson.SkipSpace(v, 0):]
	switch {
	case shown == nil || len(v) == 0:
		return append(dst, v...)
	case depth == 0 && (v[0] == '[' || v[0] == '{'):
		return append(dst, "null"...)
	case v[0] == '[':
		dst = append(dst, '[')
		separate := false
		for e := range rawjson.Elements(v) {
			if separate {
				dst = append(dst, ',')
			}
			dst, separate = appendVisible(dst, e, shown.items, depth-1), true
		}
		return append(dst, ']')
	case v[0] == '{':
		dst = append(dst, '{')
		separate := false
		for k, e := range rawjson.Members(v) {
			member, named := shown.members[string(rawjson.AppendUnquoteLossy(nil, k))]
			if !named {
				member = shown.others
			}
			if member != nil && member.hidden {
				continue
			}
			if separate {
				dst = append(dst, ',')
			}
			dst, separate = appendVisible(append(append(dst, k...), ':'), e, member, depth-1), true
		}
		return append(dst, '}')
	}
	return append(dst, v...)
}
