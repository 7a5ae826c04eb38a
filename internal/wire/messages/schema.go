package messages

import (
	"slices"
	"strings"

	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// maxSchemaDepth limits the recursion into schemas. Deeper schemas are not changed.
const maxSchemaDepth = rawjson.DefaultMaxDepth

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

// isStrict reports whether the API accepts the schema with strict: it has only supported keywords, and all its objects exclude
// additional properties.
func isStrict(schema []byte) bool {
	_, changes := strictSchema(schema)
	return len(changes) == 0
}

// strictSchema returns the schema with only the keywords that the API supports for structured output. The others become text of
// the description. changes are the paths of the keywords that were changed.
func strictSchema(schema []byte) (_ []byte, changes []string) {
	s := stricter{}
	out := s.append(make([]byte, 0, len(schema)+len(schema)/4), schema, "", maxSchemaDepth)
	if len(s.changes) == 0 {
		return schema, nil
	}
	return out, s.changes
}

type stricter struct{ changes []string }

func (s *stricter) changed(path, keyword string) {
	if len(s.changes) < 64 {
		s.changes = append(s.changes, path+"."+keyword)
	}
}

// formats are the formats of strings that the API checks.
var formats = []string{"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}

func (s *stricter) append(dst, schema []byte, path string, depth int) []byte {
	if wire.Kind(schema) != '{' || depth == 0 {
		return append(dst, schema...)
	}
	isObject := string(get(schema, "type")) == `"object"` || get(schema, "properties") != nil
	var notes []string
	note := func(keyword string, v []byte) {
		s.changed(path, keyword)
		notes = append(notes, keyword+": "+string(rawjson.AppendCompact(nil, v)))
	}
	dst = append(dst, '{')
	description := ""
	closed := false
	for key, v := range rawjson.Members(schema) {
		name := unquoted(key)
		switch name {
		case "description":
			description = rawjson.Text(v)
		case "type", "enum", "const", "title", "required", "$ref", "default":
			dst = append(wire.AppendKey(dst, name), v...)
		case "anyOf", "oneOf", "allOf":
			to := name
			if name == "oneOf" {
				s.changed(path, name)
				if to = "anyOf"; get(schema, to) != nil {
					note(name, v)
					continue
				}
			}
			dst = append(wire.AppendKey(dst, to), '[')
			for el := range rawjson.Elements(v) {
				dst = s.append(appendComma(dst), el, path+"."+name, depth-1)
			}
			dst = append(dst, ']')
		case "properties", "$defs", "definitions":
			dst = append(wire.AppendKey(dst, name), '{')
			for k, el := range rawjson.Members(v) {
				dst = append(append(appendComma(dst), k...), ':')
				dst = s.append(dst, el, path+"."+name+"."+unquoted(k), depth-1)
			}
			dst = append(dst, '}')
		case "items":
			dst = s.append(wire.AppendKey(dst, name), v, path+"."+name, depth-1)
		case "additionalProperties":
			if closed = string(v) == "false"; !closed {
				note(name, v)
			}
		case "minItems":
			if string(v) != "0" && string(v) != "1" {
				note(name, v)
				continue
			}
			dst = append(wire.AppendKey(dst, name), v...)
		case "format":
			if !slices.Contains(formats, rawjson.Text(v)) {
				note(name, v)
				continue
			}
			dst = append(wire.AppendKey(dst, name), v...)
		case "$schema", "$id", "$comment":
		default:
			note(name, v)
		}
	}
	if isObject || closed {
		if !closed && get(schema, "additionalProperties") == nil {
			s.changed(path, "additionalProperties")
		}
		dst = append(wire.AppendKey(dst, "additionalProperties"), "false"...)
	}
	if len(notes) > 0 {
		if description != "" {
			description += "\n\n"
		}
		description += "{" + strings.Join(notes, ", ") + "}"
	}
	if description != "" || get(schema, "description") != nil {
		dst = wire.AppendText(dst, "description", description)
	}
	return append(dst, '}')
}
