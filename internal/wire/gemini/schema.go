package gemini

import (
	"strings"

	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// toJSONSchema returns the JSON Schema for a Schema object of this wire, which is a subset of OpenAPI's: types are in upper case,
// `nullable` replaces the type null, and 64-bit numbers may be strings. Values that are data instead of schemas are unchanged.
// schema must be an object that rawjson.Check accepts.
func toJSONSchema(schema []byte) []byte { return appendJSONSchema(nil, schema) }

var schemaNames = newNameSet("type", "format", "title", "description", "nullable", "enum", "items", "prefixItems", "maxItems", "minItems",
	"properties", "required", "minProperties", "maxProperties", "minLength", "maxLength", "pattern", "example", "anyOf",
	"propertyOrdering", "default", "minimum", "maximum", "additionalProperties", "oneOf", "allOf", "not")

func appendJSONSchema(dst, schema []byte) []byte {
	if wire.Kind(schema) != '{' {
		return rawjson.AppendCompact(dst, schema)
	}
	nullable := string(get(schema, "nullable")) == "true"
	dst = append(dst, '{')
	for key, v := range rawjson.Members(schema) {
		raw := rawjson.Text(key)
		name, ok := schemaNames.spellings()[raw]
		if !ok {
			name = raw
		}
		if name == "nullable" || name == "type" && rawjson.EqualKey(v, "TYPE_UNSPECIFIED") {
			continue
		}
		dst = wire.AppendKey(dst, name)
		switch name {
		case "type":
			dst = appendLowerType(dst, v, nullable)
		case "enum":
			dst = appendEnum(dst, v, nullable)
		case "properties":
			dst = appendNamed(dst, v, func(dst, v []byte, _ string) []byte { return appendJSONSchema(dst, v) })
		case "items", "additionalProperties", "not":
			dst = appendJSONSchema(dst, v)
		case "anyOf", "oneOf", "allOf", "prefixItems":
			dst = append(dst, '[')
			for el := range rawjson.Elements(v) {
				dst = appendJSONSchema(appendComma(dst, '['), el)
			}
			if nullable && name == "anyOf" {
				dst = append(appendComma(dst, '['), `{"type":"null"}`...)
			}
			dst = append(dst, ']')
		case "maxItems", "minItems", "minProperties", "maxProperties", "minLength", "maxLength":
			dst = appendInteger(dst, v)
		default:
			dst = rawjson.AppendCompact(dst, v)
		}
	}
	return append(dst, '}')
}

// appendLowerType appends the type in v in lower case, together with null if nullable is set.
func appendLowerType(dst, v []byte, nullable bool) []byte {
	if wire.Kind(v) != '"' {
		return rawjson.AppendCompact(dst, v)
	}
	name := strings.ToLower(rawjson.Text(v))
	if !nullable || name == "null" {
		return rawjson.AppendQuote(dst, name)
	}
	dst = rawjson.AppendQuote(append(dst, '['), name)
	return append(dst, `,"null"]`...)
}

func appendEnum(dst, v []byte, nullable bool) []byte {
	if !nullable || wire.Kind(v) != '[' {
		return rawjson.AppendCompact(dst, v)
	}
	dst = append(dst, '[')
	for el := range rawjson.Elements(v) {
		if string(el) == "null" {
			nullable = false
		}
		dst = rawjson.AppendCompact(appendComma(dst, '['), el)
	}
	if nullable {
		dst = append(appendComma(dst, '['), "null"...)
	}
	return append(dst, ']')
}

func appendInteger(dst, v []byte) []byte {
	if wire.Kind(v) == '"' {
		if n, ok := rawjson.Integer([]byte(rawjson.Text(v))); ok {
			return append(dst, n...)
		}
	}
	return rawjson.AppendCompact(dst, v)
}
