package httptool

// This file reads from the schemas of answers which members the document marks as writeOnly: those that a server must not send, such as a
// password. While the document is read, each schema of an answer becomes a shape. Of all shapes that can apply to one value, view.go makes
// what is shown of the value.

import "reflect"

// The memory of shapes and views, which counts as bytes of the tools.
const (
	shapeBytes = 200 // of a shape or view
	linkBytes  = 24  // of a link between two of them
)

// A shape is the part of a schema of answers that concerns writeOnly members. Shapes form a graph, as schemas do by their references. The node
// is marked if the shape leads to a writeOnly member.
type shape struct {
	node
	number    int            // unique within the document
	schema    map[string]any // nil: of a response
	writeOnly bool           // a value of this shape, as a member of an object, is writeOnly
	members   map[string]*shape
	items     []*shape // shapes of the elements of a list
	others    []*shape // shapes of members that are not in members
	sameValue []*shape // further shapes of the same value: from references, allOf, anyOf, oneOf and conditions
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

// shapes contains the shapes and views of one document. Each object of the document is read once, however many operations share it. Shapes
// and views refer to each other in cycles, so they are made first, and read later from unread and unexpanded.
type shapes struct {
	doc        *Document
	left       *int // remaining amount of maxSchemaBytes
	schemas    map[identity]*shape
	responses  map[identity]*shape
	unread     []*shape
	answers    map[identity]map[string]*view // by the responses object of an operation
	views      map[string]*view              // by the numbers of their shapes
	unexpanded []*view
}

func newShapes(d *Document, left *int) *shapes {
	return &shapes{doc: d, left: left, schemas: map[identity]*shape{}, responses: map[identity]*shape{}, answers: map[identity]map[string]*view{}, views: map[string]*view{}}
}

// drain calls set with each element of a list, and with those that set adds to it. It returns an error if the tools exceed maxSchemaBytes;
// the list may then contain further elements, because the whole document is refused.
func drain[T any](list *[]T, left *int, set func(T)) error {
	for len(*list) > 0 && *left >= 0 {
		last := len(*list) - 1
		next := (*list)[last]
		*list = (*list)[:last]
		set(next)
	}
	if *left < 0 {
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
		one.schema = in
		s.schemas[id] = one
		s.unread = append(s.unread, one)
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

// readSchema sets the parts of a shape from its schema.
func (s *shapes) readSchema(one *shape) {
	in := one.schema
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
