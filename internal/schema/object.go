package schema

import (
	"github.com/lathe-run/lathe/internal/jsonschema"
)

// objectRules are what a schema asks of an object's members.
type objectRules struct {
	members  []member
	table    []uint16 // by hash of a name: 1 + index into members, of the first of a chain
	patterns []namePattern
	rest     *node // for members that neither members nor patterns know; nil: anything
	required uint64
	min, max int // max -1: none
}

// A member is a name that the schema knows.
type member struct {
	name     string
	value    *node  // nil: the name is only required
	required uint64 // its bit, 0 where it is not required
	next     uint16 // 1 + index of the next one with this hash
}

type namePattern struct {
	name  *pattern
	value *node
}

// maxRequired is the number of required members that one word can count off.
const maxRequired = 64

func (b builder) readObject(n *node, s *jsonschema.Schema) {
	o := &objectRules{min: orElse(s.MinProperties, 0), max: orElse(s.MaxProperties, -1)}
	switch rest := s.AdditionalProperties.(type) {
	case bool:
		if !rest {
			o.rest = &node{never: true}
		}
	case *jsonschema.Schema:
		o.rest = b.node(rest)
	}
	for re, sub := range s.PatternProperties {
		p, ok := re.(*pattern)
		if !ok {
			n.unsure |= isObject
			return
		}
		o.patterns = append(o.patterns, namePattern{p, b.node(sub)})
	}
	index := map[string]int{}
	for name, sub := range s.Properties {
		index[name] = len(o.members)
		o.members = append(o.members, member{name: name, value: b.node(sub)})
	}
	bit := uint64(1)
	for i, name := range s.Required {
		if i == maxRequired {
			n.unsure |= isObject
			return
		}
		at, ok := index[name]
		if !ok {
			at = len(o.members)
			index[name] = at
			o.members = append(o.members, member{name: name})
		}
		if o.members[at].required == 0 {
			o.members[at].required = bit
			o.required |= bit
			bit <<= 1
		}
	}
	if len(o.members)+len(o.patterns) == 0 && o.rest == nil && o.min == 0 && o.max < 0 {
		return
	}
	o.fillTable()
	n.object = o
}

func (o *objectRules) fillTable() {
	size := 8
	for size < 2*len(o.members) {
		size *= 2
	}
	o.table = make([]uint16, size)
	for i := range o.members {
		slot := nameHash([]byte(o.members[i].name)) & uint(size-1)
		o.members[i].next = o.table[slot]
		o.table[slot] = uint16(i + 1)
	}
}

// find returns the member of that name, or nil.
func (o *objectRules) find(name []byte) *member {
	for at := o.table[nameHash(name)&uint(len(o.table)-1)]; at != 0; {
		m := &o.members[at-1]
		if m.name == string(name) {
			return m
		}
		at = m.next
	}
	return nil
}

// nameHash tells most names of one object apart.
func nameHash(name []byte) uint {
	n := uint(len(name))
	if n == 0 {
		return 0
	}
	return n + uint(name[0])*3 + uint(name[n/2])*31 + uint(name[n-1])*7
}
