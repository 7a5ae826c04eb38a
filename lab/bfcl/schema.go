package bfcl

import (
	"encoding/json"
	"fmt"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// jsonTypes are the types of JSON Schema for those of the leaderboard. A type that is not listed,
// such as any, lets every value pass.
var jsonTypes = map[string]string{
	"string": "string", "String": "string", "char": "string",
	"integer": "integer", "byte": "integer", "short": "integer", "long": "integer", "Bigint": "integer",
	"float": "number", "double": "number", "number": "number",
	"boolean": "boolean", "Boolean": "boolean", "bool": "boolean",
	"array": "array", "Array": "array", "ArrayList": "array", "tuple": "array", "list": "array",
	"Queue": "array", "Stack": "array", "Set": "array",
	"dict": "object", "object": "object", "HashMap": "object", "Hashtable": "object",
}

// Schema returns the JSON Schema of the parameters of a function: types get their names of JSON
// Schema, a type that allows any value and the mark `optional` are left out, and everything else
// stays as it is, in its order.
func Schema(parameters []byte) (json.RawMessage, error) {
	if err := rawjson.Check(parameters, rawjson.Limits{}); err != nil {
		return nil, fmt.Errorf("reading parameters: %w", err)
	}
	return appendSchema(nil, parameters[rawjson.SkipSpace(parameters, 0):]), nil
}

func appendSchema(dst, raw []byte) []byte {
	if raw[0] != '{' {
		return rawjson.AppendCompact(dst, raw)
	}
	w := members{dst: append(dst, '{')}
	for key, v := range rawjson.Members(raw) {
		switch name := string(rawjson.AppendUnquoteLossy(nil, key)); {
		case name == "optional":
		case name == "type" && v[0] == '"':
			if t := jsonTypes[string(rawjson.AppendUnquoteLossy(nil, v))]; t != "" {
				w.key(key)
				w.dst = rawjson.AppendQuote(w.dst, t)
			}
		case name == "properties" && v[0] == '{':
			w.key(key)
			w.dst = appendProperties(w.dst, v, appendSchema)
		case name == "items" || name == "additionalProperties":
			w.key(key)
			w.dst = appendSchema(w.dst, v)
		default:
			w.key(key)
			w.dst = rawjson.AppendCompact(w.dst, v)
		}
	}
	return append(w.dst, '}')
}

func appendProperties(dst, raw []byte, each func(dst, raw []byte) []byte) []byte {
	w := members{dst: append(dst, '{')}
	for key, v := range rawjson.Members(raw) {
		w.key(key)
		w.dst = each(w.dst, v)
	}
	return append(w.dst, '}')
}

// textSchema returns the schema of parameters whose values are written in a language: each is a
// string, and its description says of which type.
func textSchema(parameters []byte, language string) json.RawMessage {
	describe := func(dst, raw []byte) []byte {
		text := ""
		if d, ok := rawjson.Get(raw, "description"); ok && d[0] == '"' {
			text = string(rawjson.AppendUnquoteLossy(nil, d)) + " "
		}
		of := ""
		if items, ok := rawjson.Get(raw, "items"); ok && items[0] == '{' {
			if t, ok := rawjson.Get(items, "type"); ok && t[0] == '"' {
				of = " of " + string(rawjson.AppendUnquoteLossy(nil, t))
			}
		}
		typ := "any"
		if t, ok := rawjson.Get(raw, "type"); ok && t[0] == '"' {
			typ = string(rawjson.AppendUnquoteLossy(nil, t))
		}
		text += fmt.Sprintf("Written as a %s expression of type %s%s.", language, typ, of)
		return append(rawjson.AppendQuote(append(dst, `{"type":"string","description":`...), text), '}')
	}
	out := []byte(`{"type":"object","properties":`)
	if p, ok := rawjson.Get(parameters, "properties"); ok && p[0] == '{' {
		out = appendProperties(out, p, func(dst, raw []byte) []byte {
			if raw[0] != '{' {
				raw = []byte("{}")
			}
			return describe(dst, raw)
		})
	} else {
		out = append(out, "{}"...)
	}
	if r, ok := rawjson.Get(parameters, "required"); ok {
		out = rawjson.AppendCompact(append(out, `,"required":`...), r)
	}
	return append(out, '}')
}

// members writes the commas between the members of an object.
type members struct {
	dst []byte
	any bool
}

func (w *members) key(quoted []byte) {
	if w.any {
		w.dst = append(w.dst, ',')
	}
	w.any = true
	w.dst = append(append(w.dst, quoted...), ':')
}
