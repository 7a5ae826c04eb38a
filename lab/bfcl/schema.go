package bfcl

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// jsonTypes maps the leaderboard's types to types of JSON Schema. Types that are not listed, such as any, allow every value.
var jsonTypes = map[string]string{
	"string": "string", "String": "string", "char": "string",
	"integer": "integer", "byte": "integer", "short": "integer", "long": "integer", "Bigint": "integer",
	"float": "number", "double": "number", "number": "number",
	"boolean": "boolean", "Boolean": "boolean", "bool": "boolean",
	"array": "array", "Array": "array", "ArrayList": "array", "tuple": "array", "list": "array",
	"Queue": "array", "Stack": "array", "Set": "array",
	"dict": "object", "object": "object", "HashMap": "object", "Hashtable": "object",
}

// jsonSchema returns the JSON Schema of the parameters of a function, which must be valid JSON: it replaces types by those of JSON
// Schema, removes types that allow any value and the member `optional`, and retains all else in its order.
func jsonSchema(parameters []byte) json.RawMessage {
	return toSchema(rawjson.AppendCompact(nil, parameters))
}

func toSchema(raw []byte) []byte {
	if raw[0] != '{' {
		return raw
	}
	return rawjson.AppendEdited(nil, raw, func(name string, v []byte) (key, to []byte, kept bool) {
		switch {
		case name == "optional":
			return nil, nil, false
		case name == "type" && v[0] == '"':
			t := jsonTypes[rawjson.Text(v)]
			return nil, rawjson.AppendQuote(nil, t), t != ""
		case name == "properties" && v[0] == '{':
			return nil, eachProperty(v, toSchema), true
		case name == "items", name == "additionalProperties":
			return nil, toSchema(v), true
		}
		return nil, v, true
	}, nil)
}

// eachProperty returns an object with change applied to each value.
func eachProperty(raw []byte, change func(raw []byte) []byte) []byte {
	return rawjson.AppendEdited(nil, raw, func(_ string, v []byte) (key, to []byte, kept bool) { return nil, change(v), true }, nil)
}

// textSchema returns the schema of parameters whose values are expressions of a language: each is a string, and its description contains
// the type.
func textSchema(parameters []byte, language string) json.RawMessage {
	parameters = rawjson.AppendCompact(nil, parameters)
	describe := func(raw []byte) []byte {
		text, of := "", ""
		if d := rawjson.At(raw, "description"); rawjson.Kind(d) == '"' {
			text = rawjson.Text(d) + " "
		}
		if items := rawjson.TextAt(raw, "items", "type"); items != "" {
			of = " of " + items
		}
		text += fmt.Sprintf("Written as a %s expression of type %s%s.", language, cmp.Or(rawjson.TextAt(raw, "type"), "any"), of)
		return append(rawjson.AppendQuote([]byte(`{"type":"string","description":`), text), '}')
	}
	properties := rawjson.At(parameters, "properties")
	if rawjson.Kind(properties) != '{' {
		properties = []byte("{}")
	}
	out := append([]byte(`{"type":"object","properties":`), eachProperty(properties, describe)...)
	if r := rawjson.At(parameters, "required"); r != nil {
		out = append(append(out, `,"required":`...), r...)
	}
	return append(out, '}')
}
