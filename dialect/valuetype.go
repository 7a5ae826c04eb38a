package dialect

import (
	"bytes"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/gbnf"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// valueTypes are the types that a schema allows. None: the schema does not say.
type valueTypes uint8

const (
	typeString valueTypes = 1 << iota
	typeNull
	typeOther // number, boolean, list or object
)

// maxSchemaDepth bounds how far references and combinations are followed.
const maxSchemaDepth = 8

// maxSchemaParts bounds the parts of a schema that are read for the types of one value. References can repeat them without end.
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

// declares reports whether schema names the property.
func declares(schema []byte, property string) bool {
	_, ok := rawjson.Get(properties(schema), property)
	return ok
}

func properties(schema []byte) []byte {
	p, _ := rawjson.Get(schema, "properties")
	return p
}

// parameterTypes returns the types that a value is read as: those of the schema, or those that its tag says.
func parameterTypes(schema []byte, key string, tag valueTypes) valueTypes {
	if known := propertyTypes(schema, key); known != 0 && (tag == 0 || tag == typeString) {
		return known
	}
	return tag
}

// propertyTypes returns what schema allows for the property.
func propertyTypes(schema []byte, property string) valueTypes {
	s, ok := rawjson.Get(properties(schema), property)
	if !ok {
		s, _ = rawjson.Get(schema, "additionalProperties")
	}
	return allowed(schema, s)
}

func allowed(root, s []byte) valueTypes {
	parts := maxSchemaParts
	return allowedWithin(root, s, 0, &parts)
}

// allowedWithin is allowed at a depth, with the parts that may still be read.
func allowedWithin(root, s []byte, depth int, parts *int) valueTypes {
	if len(s) == 0 || depth > maxSchemaDepth || *parts <= 0 {
		return 0
	}
	*parts--
	t, _ := rawjson.Get(s, "type")
	types := typeNames(t)
	if types == 0 {
		ref, _ := rawjson.Get(s, "$ref")
		types = allowedWithin(root, resolve(root, ref), depth+1, parts)
	}
	for _, key := range [...]string{"anyOf", "oneOf", "allOf"} {
		if types != 0 {
			break
		}
		list, _ := rawjson.Get(s, key)
		for e := range rawjson.Elements(list) {
			types |= allowedWithin(root, e, depth+1, parts)
		}
	}
	if types == 0 {
		types = constTypes(s)
	}
	if n, ok := rawjson.Get(s, "nullable"); ok && types != 0 && string(n) == "true" {
		types |= typeNull
	}
	return types
}

// typeNames reads the keyword type: a name or a list of them. Models' templates know more names
// than JSON Schema.
func typeNames(t []byte) valueTypes {
	if len(t) > 0 && t[0] == '[' {
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

// constTypes reads the types of const and enum.
func constTypes(s []byte) valueTypes {
	var types valueTypes
	add := func(v []byte) {
		switch {
		case len(v) == 0:
		case v[0] == '"':
			types |= typeString
		case v[0] == 'n':
			types |= typeNull
		default:
			types |= typeOther
		}
	}
	c, _ := rawjson.Get(s, "const")
	add(c)
	list, _ := rawjson.Get(s, "enum")
	for e := range rawjson.Elements(list) {
		add(e)
	}
	if types == 0 {
		for _, key := range [...]string{"properties", "items"} {
			if _, ok := rawjson.Get(s, key); ok {
				return typeOther
			}
		}
	}
	return types
}

// resolve follows a reference within the schema: `#/$defs/NAME` and the like; nil: it is another one.
func resolve(root, ref []byte) []byte {
	path := rawjson.Text(ref)
	if !strings.HasPrefix(path, "#/") {
		return nil
	}
	s, _ := gbnf.Resolve(root, path)
	return s
}
