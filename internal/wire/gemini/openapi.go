package gemini

import (
	"strings"

	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// appendOpenAPI appends a JSON Schema converted to a Schema object of the wire.
func (s *subset) appendOpenAPI(dst wire.JSON, schema []byte) wire.JSON {
	if ref, ok := rawjson.Get(schema, "$ref"); ok {
		target := s.resolve(rawjson.Text(ref))
		if target == nil {
			s.note("$ref")
			return dst.Lit(`{"type":"OBJECT"}`)
		}
		for key := range rawjson.Members(schema) {
			if name := rawjson.Text(key); name != "$ref" && name != "$defs" && name != "definitions" && name != "$schema" {
				s.note(name)
			}
		}
		s.depth++
		dst = s.append(dst, target)
		s.depth--
		return dst
	}
	dst = dst.Lit("{")
	nullable, typed := false, false
	for key, v := range rawjson.Members(schema) {
		name := rawjson.Text(key)
		switch name {
		case "type":
			dst, nullable = s.appendUpperTypes(dst, v, nullable)
			typed = true
		case "format", "title", "description", "minItems", "maxItems", "minimum", "maximum", "minLength", "maxLength", "pattern",
			"minProperties", "maxProperties", "required", "propertyOrdering", "default":
			dst = dst.Key(name).Compact(v)
		case "enum":
			if values, ok := s.enum(v, isText); ok {
				dst = dst.Val(name, values)
			}
		case "const":
			dst = s.appendConst(dst, schema, v, isText)
		case "properties":
			dst = s.appendMap(dst.Key(name), v, name)
		case "items":
			if rawjson.Kind(v) == '[' {
				s.note(name)
				continue
			}
			dst = dst.Key(name)
			s.in(func() { dst = s.append(dst, v) }, name)
		case "anyOf", "oneOf":
			if rawjson.At(schema, "anyOf") != nil && name == "oneOf" {
				s.note(name)
				continue
			}
			var rest []byte
			rest, nullable = withoutNull(v, nullable)
			dst = s.appendList(dst.Key("anyOf"), rest, name)
			typed = true
		case "$schema", "$defs", "definitions": // definitions are inserted where they are referenced
		default:
			s.note(name)
		}
	}
	if !typed {
		for _, of := range [...]struct{ keyword, typ string }{{"properties", "OBJECT"}, {"items", "ARRAY"}, {"enum", "STRING"}, {"const", "STRING"}} {
			if rawjson.At(schema, of.keyword) != nil {
				dst = dst.Str("type", of.typ)
				break
			}
		}
	}
	if nullable {
		dst = dst.Bool("nullable", true)
	}
	return dst.Lit("}")
}

// appendUpperTypes appends the type in v in upper case. Of several types it appends the first, and notes that the others are left out. null
// among them makes the value nullable.
func (s *subset) appendUpperTypes(dst wire.JSON, v []byte, nullable bool) (wire.JSON, bool) {
	if rawjson.Kind(v) == '"' {
		return dst.Str("type", strings.ToUpper(rawjson.Text(v))), nullable
	}
	var types []string
	for el := range rawjson.Elements(v) {
		if t := strings.ToUpper(rawjson.Text(el)); t == "NULL" {
			nullable = true
		} else {
			types = append(types, t)
		}
	}
	if len(types) == 0 {
		types = []string{"NULL"}
	}
	if len(types) > 1 {
		s.note("type")
	}
	return dst.Str("type", types[0]), nullable
}

// withoutNull returns the alternatives without {"type":"null"}, and nullable or true if there was one.
func withoutNull(v []byte, nullable bool) ([]byte, bool) {
	out := wire.JSON("[")
	for el := range rawjson.Elements(v) {
		if rawjson.TextAt(el, "type") == "null" {
			nullable = true
			continue
		}
		out = out.Next().Raw(el)
	}
	return out.Lit("]"), nullable
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
		if at, ok = rawjson.Get(at, name); !ok {
			return nil
		}
	}
	if rawjson.Kind(at) != '{' {
		return nil
	}
	return at
}
