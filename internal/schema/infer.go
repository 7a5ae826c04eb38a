package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// For returns the schema of the JSON that encoding/json decodes into a value of t. The bytes are always the same for a type: keys are
// sorted and nothing is indented. Objects from structs allow no other members; a field is required unless its json tag has omitempty or
// omitzero; its jsonschema tag is its description. Slices and pointers do not allow null.
//
// It returns an error for a type that has no JSON form (a channel, a function, a complex number) or that contains itself.
func For(t reflect.Type) (json.RawMessage, error) {
	if t == nil {
		return nil, errors.New("schema: no type")
	}
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.RawMessage](): {},
		reflect.TypeFor[json.Number]():     {Type: "number"},
		reflect.TypeFor[[]byte]():          {Type: "string", ContentEncoding: "base64"},
	}})
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", t, err)
	}
	b, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", t, err)
	}
	// Decode and encode again: the keys of maps are sorted.
	doc, err := rawjson.Value(b)
	if err == nil {
		b, err = rawjson.Marshal(withoutNull(doc))
	}
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", t, err)
	}
	return b, nil
}

// withoutNull removes "null" from lists of two types. The schema must be derived from Go types, where null comes only from slices and
// pointers.
func withoutNull(schema any) any {
	obj, ok := schema.(map[string]any)
	if !ok {
		return schema
	}
	if types, ok := obj["type"].([]any); ok {
		types = slices.DeleteFunc(types, func(t any) bool { return t == "null" })
		if len(types) == 1 {
			obj["type"] = types[0]
		}
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if sub, ok := obj[key]; ok {
			obj[key] = withoutNull(sub)
		}
	}
	if props, ok := obj["properties"].(map[string]any); ok {
		for name, sub := range props {
			if props[name] = withoutNull(sub); sub == true {
				props[name] = map[string]any{} // some model servers do not support the schema true
			}
		}
	}
	if not, ok := obj["not"].(map[string]any); ok && len(not) == 0 && len(obj) == 1 {
		return false
	}
	return obj
}
