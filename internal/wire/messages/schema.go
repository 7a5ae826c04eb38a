package messages

import (
	"slices"

	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// plainSchema returns the schema of a tool in the form that the API accepts: an object at the root, without anyOf, oneOf or allOf
// there. Branches are merged into one object with the properties of all of them. The result is weaker, but Lathe validates
// arguments against the tool's own schema. changes are the paths of the keywords that were changed.
func plainSchema(schema []byte) (_ []byte, changes []string) {
	if wire.Kind(schema) != '{' {
		return []byte(anyObject), []string{""}
	}
	union := ""
	for _, key := range [...]string{"anyOf", "oneOf", "allOf"} {
		if get(schema, key) != nil {
			union = key
			changes = append(changes, "."+key)
		}
	}
	typ := get(schema, "type")
	if union == "" && string(typ) == `"object"` {
		return schema, nil
	}
	if typ != nil && string(typ) != `"object"` {
		changes = append(changes, ".type")
	}
	m := merged{names: map[string]bool{}, needed: map[string]bool{}}
	m.add(schema)
	m.require(names(get(schema, "required")))
	for _, key := range [...]string{"allOf", "anyOf", "oneOf"} {
		branches, counts, last := 0, map[string]int{}, []string(nil)
		for branch := range rawjson.Elements(get(schema, key)) {
			branches++
			m.add(branch)
			list := names(get(branch, "required"))
			if key == "allOf" {
				m.require(list)
				continue
			}
			for _, name := range list {
				if counts[name] == branches-1 { // all branches before have it, and this one does not have it twice
					counts[name]++
				}
			}
			last = list
		}
		for _, name := range last {
			if counts[name] == branches {
				m.require([]string{name})
			}
		}
	}
	out := []byte(`{"type":"object"`)
	for key, v := range rawjson.Members(schema) {
		switch unquoted(key) {
		case "type", "anyOf", "oneOf", "allOf", "properties", "required":
		default:
			out = append(append(append(append(out, ','), key...), ':'), v...)
		}
	}
	out = append(append(append(out, `,"properties":{`...), m.properties...), '}')
	if len(m.required) > 0 {
		out = append(wire.AppendKey(out, "required"), '[')
		for _, name := range m.required {
			out = rawjson.AppendQuote(appendComma(out), name)
		}
		out = append(out, ']')
	}
	return append(out, '}'), changes
}

// merged are the properties of several schemas. Of properties with one name the first counts.
type merged struct {
	properties []byte
	names      map[string]bool
	required   []string
	needed     map[string]bool // required
}

func (m *merged) add(schema []byte) {
	for key, v := range rawjson.Members(get(schema, "properties")) {
		name := unquoted(key)
		if m.names[name] {
			continue
		}
		m.names[name] = true
		if len(m.properties) > 0 {
			m.properties = append(m.properties, ',')
		}
		m.properties = append(append(append(m.properties, key...), ':'), v...)
	}
}

func (m *merged) require(list []string) {
	for _, name := range list {
		if m.names[name] && !m.needed[name] {
			m.needed[name] = true
			m.required = append(m.required, name)
		}
	}
}

func names(array []byte) (list []string) {
	for el := range rawjson.Elements(array) {
		list = append(list, rawjson.Text(el))
	}
	return list
}

// strictRules are the rules of the API for strict tools and for structured output.
var strictRules = wire.StrictRules{AllOf: true, Keeps: func(keyword string, value []byte) bool {
	switch keyword {
	case "minItems":
		return string(value) == "0" || string(value) == "1"
	case "format":
		return slices.Contains(formats, rawjson.Text(value))
	}
	return false
}}

// formats are the formats of strings that the API checks.
var formats = []string{"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}

// isStrict reports whether the API accepts the schema with strict: it has only supported keywords, and all its objects exclude
// additional properties.
func isStrict(schema []byte) bool {
	return len(strictRules.Strict(schema).Changes) == 0
}
