package destination

import (
	"slices"
	"strings"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// FitSchema returns the schema of a tool's arguments in the form that the column Schema requires. Unions at the root are merged into one
// object with the properties of all branches. The result is weaker, but Lathe validates arguments against the tool's own schema. changes
// are the paths of the keywords that were left out or replaced, such as ".anyOf"; rewriting without a change of meaning is not listed.
// schema must be compact or empty; an empty one is that of a tool without arguments. The result may be schema itself.
func (r *Row) FitSchema(schema []byte) (_ []byte, changes []string) {
	if r.Schema != object && r.Schema != openAI {
		return schema, nil
	}
	if len(schema) == 0 {
		schema = []byte("{}")
	}
	if schema[0] != '{' {
		return []byte(`{"type":"object","properties":{}}`), []string{""}
	}
	removed := []string{"anyOf", "oneOf", "allOf"}
	if r.Schema == openAI {
		removed = append(removed, "enum", "not")
	}
	schema, changes = plainRoot(inlined(schema, schema), removed)
	if r.Schema == openAI {
		if rawjson.Kind(rawjson.At(schema, "properties")) != '{' {
			schema = rawjson.Without(schema, "properties")
			schema = append(slices.Clip(schema[:len(schema)-1]), `,"properties":{}}`...)
		}
		schema = appendSpelled(make([]byte, 0, len(schema)+16), schema, rawjson.DefaultMaxDepth)
	}
	return schema, changes
}

// plainRoot returns the schema with an object at its root and without the removed keywords there: the unions, whose branches it merges, and those
// that compare whole values.
func plainRoot(schema []byte, removed []string) (_ []byte, changes []string) {
	left := []string{"type", "properties", "required"} // members that are written separately or left out
	for _, key := range removed {
		if rawjson.At(schema, key) != nil {
			changes = append(changes, "."+key)
			left = append(left, key)
		}
	}
	typ := rawjson.At(schema, "type")
	isObject := string(typ) == `"object"`
	if isObject && len(changes) == 0 {
		return schema, nil
	}
	if typ != nil && !isObject {
		changes = append(changes, ".type")
	}
	m := merged{root: schema, names: map[string]bool{}, needed: map[string]bool{}}
	m.require(m.add(schema, maxUnions))
	out := []byte(`{"type":"object"`)
	for key, v := range rawjson.Members(schema) {
		if !slices.Contains(left, rawjson.Text(key)) {
			out = appendMember(out, key, v)
		}
	}
	out = append(out, `,"properties":{`...)
	out = append(out, m.properties...)
	out = append(out, '}')
	if len(m.required) > 0 {
		out = append(out, `,"required":[`...)
		for i, name := range m.required {
			if i > 0 {
				out = append(out, ',')
			}
			out = rawjson.AppendQuote(out, name)
		}
		out = append(out, ']')
	}
	return append(out, '}'), changes
}

// appendMember appends a member to those of an object, after a comma unless it is the first.
func appendMember(dst, key, v []byte) []byte {
	if len(dst) > 0 && dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(dst, key...)
	dst = append(dst, ':')
	return append(dst, v...)
}

// Limits of merging: the nesting depth of unions, and the number of schemas merged into one root.
const (
	maxUnions   = 4
	maxBranches = 1024
)

// merged collects the properties of several schemas. If properties have the same name, the first one counts.
type merged struct {
	root       []byte // the schema to which references refer
	branches   int    // number of schemas added so far
	properties []byte
	names      map[string]bool
	required   []string
	needed     map[string]bool // the names in required
}

// add adds the properties of a schema and of the branches of its unions, nested at most depth deep. It returns the names of the properties
// that the schema requires.
func (m *merged) add(schema []byte, depth int) (required []string) {
	if m.branches++; m.branches > maxBranches {
		return nil
	}
	schema = inlined(m.root, schema)
	for key, v := range rawjson.Members(rawjson.At(schema, "properties")) {
		name := rawjson.Text(key)
		if m.names[name] {
			continue
		}
		m.names[name] = true
		m.properties = appendMember(m.properties, key, v)
	}
	for el := range rawjson.Elements(rawjson.At(schema, "required")) {
		required = append(required, rawjson.Text(el))
	}
	if depth == 0 {
		return required
	}
	for branch := range rawjson.Elements(rawjson.At(schema, "allOf")) { // first, because its branches all apply
		required = append(required, m.add(branch, depth-1)...)
	}
	for _, key := range [...]string{"anyOf", "oneOf"} {
		required = append(required, m.addAlternatives(rawjson.At(schema, key), depth-1)...)
	}
	return required
}

// addAlternatives adds the branches of an anyOf or oneOf. It returns the names that all branches require.
func (m *merged) addAlternatives(list []byte, depth int) (required []string) {
	branches, counts := 0, map[string]int{}
	for branch := range rawjson.Elements(list) {
		required = m.add(branch, depth)
		for _, name := range required {
			if counts[name] == branches { // all earlier branches require it, and this branch does not list it twice
				counts[name]++
			}
		}
		branches++
	}
	return slices.DeleteFunc(required, func(name string) bool { return counts[name] != branches })
}

// maxReferences bounds how many references are followed one after another.
const maxReferences = 8

// inlined returns the schema with the members of the referenced definition in place of the $ref at its root. The definition is one of root.
// If both the schema and the definition have a member and it differs, the schema is returned with the $ref, unless the member is one of
// notes.
func inlined(root, schema []byte) []byte {
	for range maxReferences {
		list, name, ok := strings.Cut(strings.TrimPrefix(rawjson.TextAt(schema, "$ref"), "#/"), "/")
		inList := ok && (list == "$defs" || list == "definitions")
		if !inList || strings.ContainsAny(name, "/~%") {
			return schema
		}
		target := rawjson.At(root, list, name)
		if rawjson.Kind(target) != '{' {
			return schema
		}
		out := []byte{'{'}
		for key, v := range rawjson.Members(schema) {
			if !rawjson.EqualKey(key, "$ref") {
				out = appendMember(out, key, v)
			}
		}
		for key, v := range rawjson.Members(target) {
			name := rawjson.Text(key)
			had := rawjson.At(schema, name)
			switch {
			case name == "$ref" || had == nil:
				out = appendMember(out, key, v)
			case string(had) != string(v) && !slices.Contains(notes, name):
				return schema
			}
		}
		schema = append(out, '}')
	}
	return schema
}

// notes are members that a schema may have beside its $ref: the schema's own value replaces that of the definition.
var notes = []string{"title", "description", "default", "examples", "$schema", "$id", "$comment", "$defs", "definitions"}

func (m *merged) require(list []string) {
	for _, name := range list {
		if m.names[name] && !m.needed[name] {
			m.needed[name] = true
			m.required = append(m.required, name)
		}
	}
}

// appendSpelled appends a schema with `items` in each array and {} in place of true, both of which OpenAI requires. Values that are data
// and not schemas, and whatever is nested deeper than depth levels, are copied unchanged.
func appendSpelled(dst, schema []byte, depth int) []byte {
	if string(schema) == "true" {
		return append(dst, "{}"...)
	}
	if depth == 0 || rawjson.Kind(schema) != '{' {
		return append(dst, schema...)
	}
	array, items := false, false
	spelled := func(dst, _, v []byte) []byte { return appendSpelled(dst, v, depth-1) }
	dst = rawjson.AppendEach(dst, schema, func(dst, key, v []byte) []byte {
		switch string(key) {
		case `"properties"`, `"$defs"`, `"definitions"`, `"patternProperties"`, `"dependentSchemas"`, `"anyOf"`, `"oneOf"`, `"allOf"`, `"prefixItems"`:
			if v[0] == '{' || v[0] == '[' {
				return rawjson.AppendEach(dst, v, spelled)
			}
		case `"additionalProperties"`, `"additionalItems"`, `"unevaluatedProperties"`, `"unevaluatedItems"`, `"contains"`, `"propertyNames"`, `"not"`, `"if"`, `"then"`, `"else"`:
			if v[0] == '{' { // true is copied
				return appendSpelled(dst, v, depth-1)
			}
		case `"items"`:
			items = true
			if v[0] == '[' { // a list of schemas, as in JSON Schema draft 7
				return rawjson.AppendEach(dst, v, spelled)
			}
			return appendSpelled(dst, v, depth-1)
		case `"type"`:
			array = rawjson.EqualKey(v, "array") || v[0] == '[' && hasText(v, "array")
		}
		return append(dst, v...)
	})
	if array && !items {
		dst = append(dst[:len(dst)-1], `,"items":{}}`...)
	}
	return dst
}

func hasText(array []byte, text string) bool {
	for el := range rawjson.Elements(array) {
		if rawjson.Text(el) == text {
			return true
		}
	}
	return false
}
