package gbnf

import (
	"bytes"
	"slices"
	"strings"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// A merger combines a schema with the schemas of its allOf:
//
//	{"allOf":[{"properties":{"a":{}},"required":["a"]},{"properties":{"b":{}}}]}
//	{"properties":{"a":{},"b":{}},"required":["a"]}
//
// The first value of a keyword counts, and different later values are recorded as loosened. The members of properties and the elements of
// required are joined.
type merger struct {
	*compiler
	path       string            // names the schema in [Builder.Loosened]
	values     map[string][]byte // the first value of each keyword other than properties and required
	declared   map[string][]byte // the first schema of each property
	members    []string          // the members of the combined schema
	properties []string          // the members of its properties
	required   []string          // the elements of its required
}

// merged returns schema combined with the schemas in list.
func (c *compiler) merged(schema, list []byte, path string, depth int) []byte {
	m := &merger{compiler: c, path: path, values: map[string][]byte{}, declared: map[string][]byte{}}
	m.add(schema)
	m.addAll(list, depth)
	return m.schema()
}

// addAll adds the schemas in list, the value of an allOf, and those of their own allOf.
func (m *merger) addAll(list []byte, depth int) {
	for el := range rawjson.Elements(list) {
		if !m.b.Part(len(el) + len(m.path)) {
			return
		}
		if depth > maxDepth {
			m.b.Loosen(m.path, "allOf")
			return
		}
		for hops := 0; hops < maxDepth && get(el, "$ref") != nil && m.b.Part(len(m.root)); hops++ {
			target, ok := Resolve(m.root, rawjson.Text(get(el, "$ref")))
			if !ok {
				break
			}
			el = target
		}
		if get(el, "$ref") != nil {
			m.b.Loosen(m.path+".allOf", "$ref")
		}
		m.add(el)
		m.addAll(get(el, "allOf"), depth+1)
	}
}

// add adds the keywords of one schema.
func (m *merger) add(schema []byte) {
	for key, v := range rawjson.Members(schema) {
		switch name := rawjson.Text(key); name {
		case "allOf", "$ref":
		case "properties":
			m.addProperties(v)
		case "required":
			for el := range rawjson.Elements(v) {
				m.required = append(m.required, string(el))
			}
		default:
			if have, ok := m.values[name]; !ok {
				m.values[name] = v
				m.members = append(m.members, string(key)+":"+string(v))
			} else if !bytes.Equal(have, v) && !slices.Contains(plain, name) {
				m.b.Loosen(m.path+".allOf", name)
			}
		}
	}
}

func (m *merger) addProperties(properties []byte) {
	for key, schema := range rawjson.Members(properties) {
		name := rawjson.Text(key)
		if have, ok := m.declared[name]; !ok {
			m.declared[name] = schema
			m.properties = append(m.properties, string(key)+":"+string(schema))
		} else if !bytes.Equal(have, schema) {
			m.b.Loosen(m.path+".allOf", "properties."+name)
		}
	}
}

// schema returns the combined schema.
func (m *merger) schema() []byte {
	if len(m.properties) > 0 {
		m.members = append(m.members, `"properties":{`+strings.Join(m.properties, ",")+"}")
	}
	if len(m.required) > 0 {
		m.members = append(m.members, `"required":[`+strings.Join(m.required, ",")+"]")
	}
	return []byte("{" + strings.Join(m.members, ",") + "}")
}
