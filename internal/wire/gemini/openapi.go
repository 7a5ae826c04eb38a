package gemini

import (
	"slices"
	"strings"

	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// An openAPILevel is one schema, without the schemas in it, while it is converted to a Schema object of the wire.
type openAPILevel struct {
	*subset
	schema   []byte
	nullable bool // null is one of the types or alternatives
	typed    bool // a type or alternatives are written
}

// appendOpenAPI appends a JSON Schema converted to a Schema object of the wire.
func (s *subset) appendOpenAPI(dst wire.JSON, schema []byte) wire.JSON {
	if ref, ok := rawjson.Get(schema, "$ref"); ok {
		return s.appendTarget(dst, schema, rawjson.Text(ref))
	}
	l := openAPILevel{subset: s, schema: schema}
	dst = dst.Lit("{")
	for key, v := range rawjson.Members(schema) {
		dst = l.appendKeyword(dst, rawjson.Text(key), v)
	}
	if !l.typed {
		dst = dst.OptStr("type", impliedType(schema))
	}
	if l.nullable {
		dst = dst.Bool("nullable", true)
	}
	return dst.Lit("}")
}

// appendTarget appends the schema to which schema refers. The other keywords of schema are left out.
func (s *subset) appendTarget(dst wire.JSON, schema []byte, ref string) wire.JSON {
	target := s.resolve(ref)
	if target == nil {
		s.note("$ref")
		return dst.Lit(`{"type":"OBJECT"}`)
	}
	for key := range rawjson.Members(schema) {
		name := rawjson.Text(key)
		if !slices.Contains([]string{"$ref", "$defs", "definitions", "$schema"}, name) {
			s.note(name)
		}
	}
	s.depth++
	dst = s.append(dst, target)
	s.depth--
	return dst
}

// appendKeyword appends the converted form of one keyword, or leaves it out.
func (l *openAPILevel) appendKeyword(dst wire.JSON, keyword string, v []byte) wire.JSON {
	switch keyword {
	case "type":
		l.typed = true
		return dst.Str(keyword, l.upperType(v))
	case "format", "title", "description", "minItems", "maxItems", "minimum", "maximum", "minLength", "maxLength", "pattern",
		"minProperties", "maxProperties", "required", "propertyOrdering", "default":
		return dst.Key(keyword).Compact(v)
	case "enum":
		if values, ok := l.enum(v); ok {
			return dst.Val(keyword, values)
		}
	case "const":
		return l.appendConst(dst, l.schema, v)
	case "properties":
		return l.appendMap(dst.Key(keyword), v, keyword)
	case "items":
		if rawjson.Kind(v) != '[' {
			return l.appendAt(dst.Key(keyword), v, keyword)
		}
		l.note(keyword)
	case "anyOf", "oneOf":
		if keyword == "oneOf" && rawjson.At(l.schema, "anyOf") != nil {
			l.note(keyword)
			return dst
		}
		l.typed = true
		return l.appendList(dst.Key("anyOf"), l.withoutNull(v), keyword)
	case "$schema", "$defs", "definitions": // definitions are inserted where they are referenced
	default:
		l.note(keyword)
	}
	return dst
}

// impliedType returns the type that the keywords of a schema without type imply; "" if none does.
func impliedType(schema []byte) string {
	for _, of := range [...]struct{ keyword, typ string }{{"properties", "OBJECT"}, {"items", "ARRAY"}, {"enum", "STRING"}, {"const", "STRING"}} {
		if rawjson.At(schema, of.keyword) != nil {
			return of.typ
		}
	}
	return ""
}

// upperType returns the type in v in upper case. Of several types it returns the first, and notes that the others are left out. null among
// them makes the value nullable.
func (l *openAPILevel) upperType(v []byte) string {
	if rawjson.Kind(v) == '"' {
		return strings.ToUpper(rawjson.Text(v))
	}
	var types []string
	for el := range rawjson.Elements(v) {
		t := strings.ToUpper(rawjson.Text(el))
		if t == "NULL" {
			l.nullable = true
		} else {
			types = append(types, t)
		}
	}
	if len(types) == 0 {
		return "NULL"
	}
	if len(types) > 1 {
		l.note("type")
	}
	return types[0]
}

// withoutNull returns the alternatives without {"type":"null"}, which makes the value nullable.
func (l *openAPILevel) withoutNull(v []byte) []byte {
	out := wire.JSON("[")
	for el := range rawjson.Elements(v) {
		if rawjson.TextAt(el, "type") == "null" {
			l.nullable = true
		} else {
			out = out.Next().Raw(el)
		}
	}
	return out.Lit("]")
}

// resolve returns the schema to which a reference within the root refers, or nil if it does not exist or a limit is reached.
func (s *subset) resolve(ref string) []byte {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok || s.depth >= maxRefDepth || s.refs >= maxRefs {
		return nil
	}
	s.refs++
	at := s.root
	for _, name := range strings.Split(path, "/")[1:] {
		name = strings.ReplaceAll(strings.ReplaceAll(name, "~1", "/"), "~0", "~")
		at, ok = rawjson.Get(at, name)
		if !ok {
			return nil
		}
	}
	if rawjson.Kind(at) != '{' {
		return nil
	}
	return at
}
