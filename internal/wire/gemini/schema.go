package gemini

import (
	"strings"

	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// toJSONSchema converts a Schema object of this wire to a JSON Schema. Schema objects are a subset of OpenAPI's: types are in upper case,
// `nullable` replaces the type null, and 64-bit numbers may be strings. Values that are data and not schemas are copied. schema must be an
// object that rawjson.Check accepts.
func toJSONSchema(schema []byte) []byte { return appendJSONSchema(nil, schema) }

var schemaNames = newNameSet(`type format title description nullable enum items prefixItems maxItems minItems properties required minProperties
		maxProperties minLength maxLength pattern example anyOf propertyOrdering default minimum maximum additionalProperties oneOf
		allOf not`)

func appendJSONSchema(dst wire.JSON, schema []byte) wire.JSON {
	if rawjson.Kind(schema) != '{' {
		return dst.Compact(schema)
	}
	nullable := string(get(schema, "nullable")) == "true"
	dst = dst.Lit("{")
	for key, v := range rawjson.Members(schema) {
		raw := rawjson.Text(key)
		name, ok := schemaNames.spellings()[raw]
		if !ok {
			name = raw
		}
		if name == "nullable" || name == "type" && rawjson.EqualKey(v, "TYPE_UNSPECIFIED") {
			continue
		}
		dst = dst.Key(name)
		switch name {
		case "type":
			dst = appendLowerType(dst, v, nullable)
		case "enum":
			dst = appendEnum(dst, v, nullable)
		case "properties":
			dst = appendNamed(dst, v, func(dst wire.JSON, v []byte, _ string) wire.JSON { return appendJSONSchema(dst, v) })
		case "items", "additionalProperties", "not":
			dst = appendJSONSchema(dst, v)
		case "anyOf", "oneOf", "allOf", "prefixItems":
			dst = dst.Lit("[")
			for el := range rawjson.Elements(v) {
				dst = appendJSONSchema(dst.Next(), el)
			}
			if nullable && name == "anyOf" {
				dst = dst.Next().Lit(`{"type":"null"}`)
			}
			dst = dst.Lit("]")
		case "maxItems", "minItems", "minProperties", "maxProperties", "minLength", "maxLength":
			dst = appendInteger(dst, v)
		default:
			dst = dst.Compact(v)
		}
	}
	return dst.Lit("}")
}

// appendLowerType appends the type in v in lower case, together with null if nullable is set.
func appendLowerType(dst wire.JSON, v []byte, nullable bool) wire.JSON {
	if rawjson.Kind(v) != '"' {
		return dst.Compact(v)
	}
	name := strings.ToLower(rawjson.Text(v))
	if !nullable || name == "null" {
		return dst.Quote(name)
	}
	return dst.Lit("[").Quote(name).Lit(`,"null"]`)
}

func appendEnum(dst wire.JSON, v []byte, nullable bool) wire.JSON {
	if !nullable || rawjson.Kind(v) != '[' {
		return dst.Compact(v)
	}
	dst = dst.Lit("[")
	for el := range rawjson.Elements(v) {
		if string(el) == "null" {
			nullable = false
		}
		dst = dst.Next().Compact(el)
	}
	if nullable {
		dst = dst.Next().Lit("null")
	}
	return dst.Lit("]")
}

func appendInteger(dst wire.JSON, v []byte) wire.JSON {
	if rawjson.Kind(v) == '"' {
		if n, ok := rawjson.Integer([]byte(rawjson.Text(v))); ok {
			return dst.Raw(n)
		}
	}
	return dst.Compact(v)
}
