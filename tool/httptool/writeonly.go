package httptool

// This file removes from answers the members that the document marks as writeOnly: those that a server must not send, such as a password.
// While the document is read, each schema of an answer becomes a shape, and then each set of shapes that can apply to one value becomes a
// view. A view stays in memory; answers are filtered by it.
//
//	schema  {"properties":{"name":{},"password":{"writeOnly":true}}}
//	answer  {"name":"Ann","password":"x"}  is shown as  {"name":"Ann"}

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// maxShapes is the maximum number of schemas with writeOnly members that apply to one value of an answer.
const maxShapes = 256

// The memory of shapes and views, which counts as bytes of the tools.
const (
	shapeBytes = 200 // of a shape or view
	linkBytes  = 24  // of a link between two of them
)

// A shape is the part of a schema of answers that concerns writeOnly members. Shapes form a graph, as schemas do by their references. The node
// is marked if the shape leads to a writeOnly member.
type shape struct {
	node
	number    int  // unique within the document
	writeOnly bool // a value of this shape, as a member of an object, is writeOnly
	members   map[string]*shape
	items     []*shape // shapes of the elements of a list
	others    []*shape // shapes of members that are not in members
	sameValue []*shape // further shapes of the same value: from references, allOf, anyOf, oneOf and conditions
}

// A view determines what is shown of a value to which a set of shapes applies. nil shows all. The node is marked if the view or one below
// it has more shapes than maxShapes.
type view struct {
	node
	shapes  []*shape // nil after the document was read
	hidden  bool
	members map[string]*view
	others  *view // for members that are not in members
	items   *view // for the elements of a list
}

// A node is a node of a graph in which a mark propagates from each node to its parents.
type node struct {
	marked  bool
	parents []*node // nil after the document was read
}

// mark marks n and all from which links lead to it.
func (n *node) mark() {
	pending := []*node{n}
	for len(pending) > 0 {
		last := len(pending) - 1
		next := pending[last]
		pending = pending[:last]
		if !next.marked {
			next.marked = true
			pending = append(pending, next.parents...)
		}
	}
}

// link adds a link from n to child.
func (n *node) link(child *node) {
	child.parents = append(child.parents, n)
	if child.marked {
		n.mark()
	}
}

// An identity distinguishes an object of a document from others with equal content.
type identity uintptr

func identityOf(object map[string]any) identity { return identity(reflect.ValueOf(object).Pointer()) }

// shapes contains the shapes of one document. Each object of the document is read once, however many operations share it.
type shapes struct {
	doc       *document
	left      *int // remaining amount of maxSchemaBytes
	schemas   map[identity]*shape
	responses map[identity]*shape
	answers   map[identity]map[string]*view // by the responses object of an operation
	views     map[string]*view              // by the numbers of their shapes
	pending   []func()                      // functions that read the remaining schemas and views
}

func newShapes(d *document, left *int) *shapes {
	return &shapes{doc: d, left: left, schemas: map[identity]*shape{}, responses: map[identity]*shape{}, answers: map[identity]map[string]*view{}, views: map[string]*view{}}
}

// ofAnswers returns the views of an operation's answers, by status; nil if nothing is hidden.
func (s *shapes) ofAnswers(responses map[string]any) (map[string]*view, error) {
	if !s.doc.writeOnly || responses == nil {
		return nil, nil
	}
	out, known := s.answers[identityOf(responses)]
	if !known {
		all := map[string]*shape{}
		for status, v := range responses {
			if response, err := s.doc.resolve(v); err == nil { // answers without a description are not changed
				all[strings.ToUpper(status)] = s.ofResponse(response)
			}
		}
		if err := s.runPending(); err != nil {
			return nil, err
		}
		out = map[string]*view{}
		for status, one := range all {
			out[status] = s.view([]*shape{one})
		}
		if err := s.runPending(); err != nil {
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

// runPending calls the functions in pending, and those that they add. It returns an error if the tools exceed maxSchemaBytes; pending may
// then be not empty, since the whole document is refused.
func (s *shapes) runPending() error {
	for len(s.pending) > 0 && *s.left >= 0 {
		next := s.pending[len(s.pending)-1]
		s.pending = s.pending[:len(s.pending)-1]
		next()
	}
	if *s.left < 0 {
		return errTooLarge
	}
	return nil
}

func (s *shapes) newShape() *shape {
	*s.left -= shapeBytes
	return &shape{number: len(s.schemas) + len(s.responses)}
}

// ofResponse returns the shape of the content of a response, of all media types, because servers send JSON with other content types, too.
func (s *shapes) ofResponse(response map[string]any) *shape {
	id := identityOf(response)
	one, known := s.responses[id]
	if !known {
		one = s.newShape()
		s.responses[id] = one
		for _, v := range asObject(response["content"]) {
			if media, err := s.doc.resolve(v); err == nil {
				s.link(one, &one.sameValue, media["schema"])
			}
		}
	}
	return one
}

// ofSchema returns the shape of a schema, or nil if it is not an object.
func (s *shapes) ofSchema(schema any) *shape {
	in := asObject(schema)
	if in == nil {
		return nil
	}
	id := identityOf(in)
	one, known := s.schemas[id]
	if !known {
		one = s.newShape()
		s.schemas[id] = one
		s.pending = append(s.pending, func() { s.readSchema(one, in) })
	}
	return one
}

// link appends the shapes of schemas to a list of parent.
func (s *shapes) link(parent *shape, list *[]*shape, schemas ...any) {
	for _, schema := range schemas {
		if one := s.ofSchema(schema); one != nil {
			*s.left -= linkBytes
			parent.link(&one.node)
			*list = append(*list, one)
		}
	}
}

// readSchema sets the parts of a shape from its schema in.
func (s *shapes) readSchema(one *shape, in map[string]any) {
	if ref, ok := in["$ref"].(string); ok {
		if target, err := s.doc.follow(ref); err == nil {
			s.link(one, &one.sameValue, target)
		}
		if s.doc.v30 { // in OpenAPI 3.0, keywords beside a reference are ignored
			return
		}
	}
	if in["writeOnly"] == true {
		one.writeOnly = true
		one.mark()
	}
	for name, member := range asObject(in["properties"]) {
		if m := s.ofSchema(member); m != nil {
			if one.members == nil {
				one.members = map[string]*shape{}
			}
			*s.left -= nameBytes
			one.link(&m.node)
			one.members[name] = m
		}
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		s.link(one, &one.sameValue, asList(in[keyword])...)
	}
	s.link(one, &one.sameValue, in["if"], in["then"], in["else"])
	for _, schema := range asObject(in["dependentSchemas"]) {
		s.link(one, &one.sameValue, schema)
	}
	s.link(one, &one.items, in["items"], in["contains"], in["unevaluatedItems"])
	s.link(one, &one.items, asList(in["prefixItems"])...)
	s.link(one, &one.others, in["additionalProperties"], in["unevaluatedProperties"])
	for _, schema := range asObject(in["patternProperties"]) {
		s.link(one, &one.others, schema)
	}
}

// view returns the view of a value to which shapes apply, or nil if nothing is hidden.
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
			s.pending = append(s.pending, func() { s.expand(v) })
		}
	}
	return v
}

// expand sets the parts of a view.
func (s *shapes) expand(v *view) {
	part := func(shapes []*shape) *view {
		below := s.view(shapes)
		if below != nil {
			*s.left -= linkBytes
			v.link(&below.node)
		}
		return below
	}
	var items, others []*shape
	for _, one := range v.shapes {
		items, others = append(items, one.items...), append(others, one.others...)
	}
	v.items, v.others = part(items), part(others)
	for _, one := range v.shapes {
		*s.left -= linkBytes * len(one.members)
		for name, m := range one.members {
			_, known := v.members[name]
			showsAll := !m.marked && v.others == nil
			if known || showsAll {
				continue
			}
			*s.left -= nameBytes + linkBytes*len(v.shapes)
			if *s.left < 0 {
				return
			}
			if v.members == nil {
				v.members = map[string]*view{}
			}
			v.members[name] = part(memberShapes(v.shapes, name))
		}
	}
}

// finish frees memory that is used only while the document is read. No answers may be read afterwards.
func (s *shapes) finish() {
	for _, v := range s.views {
		v.shapes, v.parents = nil, nil
	}
}

// memberShapes returns the shapes of a member of a value with these shapes.
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

// closure returns, of the shapes and the further shapes of the same value, those that lead to a writeOnly member other than by further
// shapes alone, sorted by number. It stops after more than maxShapes.
func (s *shapes) closure(list []*shape) (out []*shape) {
	seen := map[*shape]bool{}
	for next := list; len(next) > 0 && len(out) <= maxShapes; {
		*s.left -= linkBytes * len(next)
		var more []*shape
		for _, one := range next {
			if one.marked && !seen[one] {
				seen[one] = true
				more = append(more, one.sameValue...)
				if one.writeOnly || len(one.members)+len(one.items)+len(one.others) > 0 {
					out = append(out, one)
				}
			}
		}
		next = more
	}
	slices.SortFunc(out, func(a, b *shape) int { return cmp.Compare(a.number, b.number) })
	return out
}

// withoutWriteOnly returns a JSON answer without the writeOnly members of the document, also if the answer is a string that contains JSON.
// Other answers are returned unchanged.
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
	if text := rawjson.Text(b); text != "" { // the content type is not JSON
		inner := []byte(text)
		end, err := rawjson.Scan(inner, 0)
		if err != nil || rawjson.SkipSpace(inner, end) < len(inner) {
			return b
		}
		return rawjson.AppendQuote(nil, string(appendVisible(nil, inner, shown, rawjson.DefaultMaxDepth)))
	}
	return appendVisible(make([]byte, 0, len(b)), b, shown, rawjson.DefaultMaxDepth)
}

// appendVisible appends the visible part of a value. A part that is nested deeper than depth is replaced by null if it could contain
// something hidden.
func appendVisible(dst, v []byte, shown *view, depth int) []byte {
	v = v[rawjson.SkipSpace(v, 0):]
	switch {
	case shown == nil || len(v) == 0 || v[0] != '[' && v[0] != '{':
		return append(dst, v...)
	case depth == 0:
		return append(dst, "null"...)
	}
	return rawjson.AppendEach(dst, v, func(dst, key, e []byte) []byte {
		part := shown.items
		if key != nil {
			var named bool
			if part, named = shown.members[rawjson.Text(key)]; !named {
				part = shown.others
			}
			if part != nil && part.hidden {
				return dst
			}
		}
		return appendVisible(dst, e, part, depth-1)
	})
}
