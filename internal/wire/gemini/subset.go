package gemini

import (
	"strings"

	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// A subset writes a copy of a JSON Schema with only the keywords that Google's servers accept, and records each keyword that it omits or
// changes. Names of properties and values in enum and default are copied. Omitting a keyword weakens the schema only for the model, since
// Lathe validates arguments against the schema of the tool.
type subset struct {
	d     *dropped
	where []string // path of the schema that is being written
	form  schemaForm
	root  []byte // the whole schema
	depth int    // number of references that enclose the schema being written
	refs  int    // number of references resolved so far
}

// A schemaForm is the form in which a schema is written.
type schemaForm int

const (
	jsonSchema    schemaForm = iota // a JSON Schema, for the members whose names contain JsonSchema
	openAPISchema                   // a Schema object of the wire, with references resolved
)

// Limits of references that are resolved: nesting depth and total number.
const (
	maxRefDepth = 8
	maxRefs     = 256
)

// appendSchema appends the schema, whose path in the request is at, in the subset that the wire accepts. It adds the paths of omitted
// keywords to d.
func appendSchema(dst wire.JSON, schema []byte, at string, form schemaForm, d *dropped) wire.JSON {
	schema = schema[rawjson.SkipSpace(schema, 0):]
	s := &subset{d: d, where: []string{at}, form: form, root: schema}
	return s.append(dst, schema)
}

func (s *subset) note(keyword string) { s.d.add(strings.Join(s.where, ".") + "." + keyword) }

// appendAt appends schema, whose path below the current one is path.
func (s *subset) appendAt(dst wire.JSON, schema []byte, path ...string) wire.JSON {
	n := len(s.where)
	s.where = append(s.where, path...)
	dst = s.append(dst, schema)
	s.where = s.where[:n]
	return dst
}

func (s *subset) append(dst wire.JSON, schema []byte) wire.JSON {
	if rawjson.Kind(schema) != '{' { // true or false
		if s.form == openAPISchema {
			return dst.Lit("{}")
		}
		return dst.Compact(schema)
	}
	if s.form == openAPISchema {
		return s.appendOpenAPI(dst, schema)
	}
	dst = dst.Lit("{")
	_, refers := rawjson.Get(schema, "$ref")
	for key, v := range rawjson.Members(schema) {
		name := rawjson.Text(key)
		mayStandBesideRef := strings.HasPrefix(name, "$") || name == "definitions"
		if refers && !mayStandBesideRef {
			s.note(name)
		} else {
			dst = s.appendKeyword(dst, schema, name, v)
		}
	}
	return dst.Lit("}")
}

// appendKeyword appends one keyword of schema in the form jsonSchema, or leaves it out.
func (s *subset) appendKeyword(dst wire.JSON, schema []byte, keyword string, v []byte) wire.JSON {
	switch keyword {
	case "$id", "$anchor", "type", "format", "title", "description", "minItems", "maxItems", "minimum", "maximum", "required", "propertyOrdering":
		return dst.Key(keyword).Compact(v)
	case "$ref":
		return s.appendRef(dst.Key(keyword), v)
	case "enum":
		if values, ok := s.enum(v); ok {
			return dst.Val(keyword, values)
		}
	case "const":
		return s.appendConst(dst, schema, v)
	case "properties", "$defs":
		return s.appendMap(dst.Key(keyword), v, keyword)
	case "definitions":
		if rawjson.At(schema, "$defs") == nil {
			return s.appendMap(dst.Key("$defs"), v, keyword)
		}
		s.note(keyword)
	case "items", "additionalProperties":
		if keyword == "items" && rawjson.Kind(v) == '[' { // a list of schemas, as in JSON Schema draft 7
			return s.appendList(dst.Key("prefixItems"), v, keyword)
		}
		return s.appendAt(dst.Key(keyword), v, keyword)
	case "anyOf", "oneOf", "prefixItems":
		return s.appendList(dst.Key(keyword), v, keyword)
	case "$schema": // the dialect of the schema; it has no effect on values
	default:
		s.note(keyword)
	}
	return dst
}

// appendRef appends a reference. References to `definitions` (draft 7) are written as references to `$defs`, unless the root has both.
func (s *subset) appendRef(dst wire.JSON, v []byte) wire.JSON {
	ref := rawjson.Text(v)
	if rest, ok := strings.CutPrefix(ref, "#/definitions/"); ok {
		if rawjson.At(s.root, "$defs") == nil {
			ref = "#/$defs/" + rest
		}
	}
	return dst.Quote(ref)
}

func (s *subset) appendMap(dst wire.JSON, v []byte, name string) wire.JSON {
	return appendNamed(dst, v, func(dst wire.JSON, v []byte, property string) wire.JSON {
		return s.appendAt(dst, v, name, property)
	})
}

// appendNamed appends an object whose member names are arbitrary and whose values are schemas.
func appendNamed(dst wire.JSON, obj []byte, appendSchema func(dst wire.JSON, schema []byte, name string) wire.JSON) wire.JSON {
	if rawjson.Kind(obj) != '{' {
		return dst.Lit("{}")
	}
	dst = dst.Lit("{")
	for key, v := range rawjson.Members(obj) {
		dst = dst.Next().Raw(key).Lit(":")
		dst = appendSchema(dst, v, rawjson.Text(key))
	}
	return dst.Lit("}")
}

func (s *subset) appendList(dst wire.JSON, v []byte, name string) wire.JSON {
	dst = dst.Lit("[")
	i := 0
	for el := range rawjson.Elements(v) {
		dst = s.appendAt(dst.Next(), el, wire.Element(name, i))
		i++
	}
	return dst.Lit("]")
}

// allows reports whether an enum may have the value: a string or, in a JSON Schema, a number.
func (s *subset) allows(v []byte) bool {
	switch rawjson.Kind(v) {
	case '"':
		return true
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return s.form == jsonSchema
	}
	return false
}

// enum returns the values of an enum without null, which restricts the schema further. ok is false if the enum has other values that the
// wire does not allow, or no values; the keyword must then be omitted.
func (s *subset) enum(v []byte) ([]byte, bool) {
	out := wire.JSON("[")
	for el := range rawjson.Elements(v) {
		switch {
		case s.allows(el):
			out = out.Next().Compact(el)
		case string(el) != "null":
			s.note("enum")
			return nil, false
		}
	}
	if len(out) == 1 {
		s.note("enum")
		return nil, false
	}
	out = out.Lit("]")
	if len(out) != len(compact(v)) {
		s.note("enum")
	}
	return out, true
}

// appendConst appends a constant as an enum with one value, unless the schema also has an enum or the value is not allowed.
func (s *subset) appendConst(dst wire.JSON, schema, v []byte) wire.JSON {
	s.note("const")
	if rawjson.At(schema, "enum") != nil || !s.allows(v) {
		return dst
	}
	return dst.Arr("enum").Compact(v).Lit("]")
}
