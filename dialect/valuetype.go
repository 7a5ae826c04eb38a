package dialect

import (
	"bytes"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/gbnf"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// valueTypes is the set of types that a schema allows. The empty set means that the schema does not say.
type valueTypes uint8

const (
	typeString valueTypes = 1 << iota
	typeNull
	typeOther // number, boolean, list or object
)

// maxSchemaDepth is the maximal depth to which references and combinations are followed.
const maxSchemaDepth = 8

// maxSchemaParts is the maximal number of subschemas that are read for the types of one value. References can repeat them endlessly.
const maxSchemaParts = 256

// schema returns the schema of the tool's arguments, or nil if the tool is unknown.
func (r *reader) schema(name string) []byte { return schemaOf(r.opts.Tools, name) }

func schemaOf(tools []*lathe.ToolSpec, name string) []byte {
	for _, t := range tools {
		if t.Name == name {
			return t.Schema
		}
	}
	return nil
}

// declares reports whether schema declares the property.
func declares(schema []byte, property string) bool {
	return rawjson.At(schema, "properties", property) != nil
}

// parameterTypes returns the types as which a value is read: those of the schema, unless the tag states that it is no string, or the
// schema does not say; then those of the tag.
func parameterTypes(schema []byte, key string, tag valueTypes) valueTypes {
	if known := propertyTypes(schema, key); known != 0 && (tag == 0 || tag == typeString) {
		return known
	}
	return tag
}

// propertyTypes returns the types that schema allows for the property.
func propertyTypes(schema []byte, property string) valueTypes {
	s := rawjson.At(schema, "properties", property)
	if s == nil {
		s = rawjson.At(schema, "additionalProperties")
	}
	return allowed(schema, s)
}

// allowed returns the types that the subschema s of root allows.
func allowed(root, s []byte) valueTypes {
	parts := maxSchemaParts
	return allowedWithin(root, s, 0, &parts)
}

// allowedWithin is allowed at nesting depth, with the number of subschemas that may still be read.
func allowedWithin(root, s []byte, depth int, parts *int) valueTypes {
	if len(s) == 0 || depth > maxSchemaDepth || *parts <= 0 {
		return 0
	}
	*parts--
	types := typeNames(rawjson.At(s, "type"))
	if types == 0 {
		types = allowedWithin(root, resolve(root, rawjson.At(s, "$ref")), depth+1, parts)
	}
	for _, key := range [...]string{"anyOf", "oneOf", "allOf"} {
		if types != 0 {
			break
		}
		for e := range rawjson.Elements(rawjson.At(s, key)) {
			types |= allowedWithin(root, e, depth+1, parts)
		}
	}
	if types == 0 {
		types = constTypes(s)
	}
	if types != 0 && string(rawjson.At(s, "nullable")) == "true" {
		types |= typeNull
	}
	return types
}

// typeNames returns the types of the keyword type: a name or a list of names. It accepts names beyond JSON Schema that the templates of
// models use.
func typeNames(t []byte) valueTypes {
	if rawjson.Kind(t) == '[' {
		var types valueTypes
		for e := range rawjson.Elements(t) {
			types |= typeNames(e)
		}
		return types
	}
	switch strings.ToLower(string(bytes.Trim(t, `"`))) {
	case "":
		return 0
	case "string", "str", "text", "varchar", "char", "enum":
		return typeString
	case "null", "none":
		return typeNull
	case "any":
		return 0
	}
	return typeOther
}

// constTypes returns the types of the values of const and enum, or typeOther for a schema with properties or items.
func constTypes(s []byte) valueTypes {
	types := typeOf(rawjson.At(s, "const"))
	for e := range rawjson.Elements(rawjson.At(s, "enum")) {
		types |= typeOf(e)
	}
	if types == 0 && (has(s, "properties") || has(s, "items")) {
		return typeOther
	}
	return types
}

// typeOf returns the type of a value; 0 if v is empty.
func typeOf(v []byte) valueTypes {
	switch rawjson.Kind(v) {
	case 0:
		return 0
	case '"':
		return typeString
	case 'n':
		return typeNull
	}
	return typeOther
}

// resolve returns the schema at a reference within root, such as `#/$defs/NAME`, or nil for any other reference.
func resolve(root, ref []byte) []byte {
	path := rawjson.Text(ref)
	if !strings.HasPrefix(path, "#/") {
		return nil
	}
	s, _ := gbnf.Resolve(root, path)
	return s
}
