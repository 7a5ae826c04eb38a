package responses

import "github.com/lathe-run/lathe/internal/rawjson"

// strictSchema reports whether OpenAI's servers accept a schema as strict: the root is an object, every object lists all of its properties
// as required and allows no others, and no keyword is one that strict schemas cannot have. It returns false for schemas nested deeper than
// depth.
func strictSchema(schema []byte, depth int) bool {
	return rawjson.EqualKey(get(schema, "type"), "object") && get(schema, "anyOf") == nil && strictAt(schema, depth)
}

func strictAt(schema []byte, depth int) bool {
	if depth == 0 || rawjson.Kind(schema) != '{' {
		return false
	}
	properties, required, closed := 0, 0, false
	for key, v := range rawjson.Members(schema) {
		switch rawjson.Text(key) {
		case "allOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies", "patternProperties",
			"propertyNames", "prefixItems", "contains", "uniqueItems", "minProperties", "maxProperties", "unevaluatedProperties",
			"unevaluatedItems", "contentEncoding", "contentMediaType", "$anchor", "$dynamicRef", "$dynamicAnchor":
			return false
		case "properties", "$defs", "definitions":
			n := 0
			for _, sub := range rawjson.Members(v) {
				if !strictAt(sub, depth-1) {
					return false
				}
				n++
			}
			if rawjson.EqualKey(key, "properties") {
				properties = n
			}
		case "anyOf":
			for s := range rawjson.Elements(v) {
				if !strictAt(s, depth-1) {
					return false
				}
			}
		case "items":
			if !strictAt(v, depth-1) {
				return false
			}
		case "required":
			for range rawjson.Elements(v) {
				required++
			}
		case "additionalProperties":
			closed = string(v) == "false"
		}
	}
	object := rawjson.EqualKey(get(schema, "type"), "object") || properties > 0
	return !object || closed && required >= properties
}
