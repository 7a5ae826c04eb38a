package schema

import "github.com/lathe-run/lathe/internal/rawjson"

// Typed returns a schema, which is a valid JSON object, with `"type":"object"` added if it has no type. nil stands for the schema {}.
func Typed(schema []byte) []byte {
	if rawjson.At(schema, "type") != nil {
		return schema
	}
	typed := []byte(`{"type":"object"`)
	for name, v := range rawjson.Members(schema) {
		typed = append(append(append(append(typed, ','), name...), ':'), v...)
	}
	return append(typed, '}')
}
