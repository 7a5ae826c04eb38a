package httptool

// This file converts the schemas of an OpenAPI document to JSON Schema 2020-12. Each tool has its own copy of the schemas that it refers to:
// {"$ref":"#/components/schemas/Pet"} becomes {"$ref":"#/$defs/Pet"}, and $defs gets the converted schema Pet.

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/lathe-run/lathe/internal/lazy"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/text"
)

const (
	maxSchemaDepth = 64 // maximum nesting of schemas
	// maxSchemaBytes is the maximum size of all tools of a document together, in bytes: each tool has its own copy of shared schemas.
	maxSchemaBytes = 256 << 20
)

// A converter converts the schemas of one tool, and collects the schemas to which they refer.
type converter struct {
	doc  *Document
	left *int // remaining amount of maxSchemaBytes

	names     map[target]string // names in $defs
	queue     []target          // targets whose schemas are not yet converted
	taken     map[string]bool   // used names
	conflicts map[string]int    // number of name conflicts by wanted name

	traits     map[string]*traits // by reference
	readOnlyAt map[string]bool    // by reference
	warnings   []string           // at most one of a kind
}

// A target is the target of a reference: a JSON pointer, and a variant if the schema differs from that of other references to the same
// pointer.
type target struct{ pointer, variant string }

func newConverter(d *Document, left *int) *converter {
	return &converter{doc: d, left: left, names: map[target]string{}, taken: map[string]bool{}, conflicts: map[string]int{}, traits: map[string]*traits{}, readOnlyAt: map[string]bool{}}
}

var errTooLarge = fmt.Errorf("the tools of the document take more than %d bytes: name fewer operations", maxSchemaBytes)

// spend subtracts n bytes of a tool from left.
func (c *converter) spend(n int) error {
	if *c.left -= n; *c.left < 0 {
		return errTooLarge
	}
	return nil
}

// convert returns a schema of the document as JSON Schema 2020-12, with references to $defs. A missing schema allows every value.
func (c *converter) convert(v any) (json.RawMessage, error) { return c.convertOmitting(v, &omission{}) }

// convertOmitting returns what convert returns, without the members that omit names.
func (c *converter) convertOmitting(v any, omit *omission) (json.RawMessage, error) {
	if v == nil {
		return json.RawMessage(`{}`), nil
	}
	out, err := c.schema(v, maxSchemaDepth, omit)
	if err == nil {
		err = checkVisible(out)
	}
	if err != nil {
		return nil, err
	}
	raw, err := rawjson.Marshal(out)
	if err == nil {
		err = c.spend(len(raw))
	}
	return raw, err
}

// finish returns the schemas for $defs, with all to which they refer.
func (c *converter) finish() (map[string]json.RawMessage, error) {
	defs := map[string]json.RawMessage{}
	for len(c.queue) > 0 {
		next := c.queue[0]
		c.queue = c.queue[1:]
		v, err := valueAt(c.doc.root, next.pointer)
		if err != nil {
			return nil, err
		}
		if defs[c.names[next]], err = c.convertOmitting(v, next.omission()); err != nil {
			return nil, err
		}
	}
	return defs, nil
}

// notInNames are the characters that a name in $defs does not have.
var notInNames = lazy.Regexp(`[^\w.-]`)

// refer returns the reference within the tool's schema for a reference within the document.
func (c *converter) refer(ref string, omit *omission) (string, error) {
	spelled, local := strings.CutPrefix(ref, "#/")
	if !local {
		return "", fmt.Errorf("the reference %.100q leads out of the document, or to an anchor", ref)
	}
	variant, err := c.variant(ref, omit)
	if err != nil {
		return "", err
	}
	to := target{plainPointer(spelled), variant}
	name, known := c.names[to]
	if !known {
		name = c.newName(notInNames().ReplaceAllString(strings.TrimPrefix(spelled, "components/schemas/"), "_"))
		c.names[to] = name
		c.queue = append(c.queue, to)
	}
	return "#/$defs/" + name, nil
}

// newName returns an unused name in $defs: wanted, then wanted_ to wanted________ (8), then wanted_9 and so on.
func (c *converter) newName(wanted string) string {
	name := wanted
	for c.taken[name] {
		c.conflicts[wanted]++
		if n := c.conflicts[wanted]; n <= 8 {
			name = wanted + strings.Repeat("_", n)
		} else {
			name = fmt.Sprintf("%s_%d", wanted, n)
		}
	}
	c.taken[name] = true
	return name
}

// Keywords by the kind of their value: schemas by name, a list of schemas, or a schema.
var (
	inMap    = words("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
	inList   = words("allOf", "anyOf", "oneOf", "prefixItems")
	inSchema = words("items", "not", "additionalProperties", "contains", "propertyNames", "unevaluatedItems", "unevaluatedProperties", "if", "then", "else", "contentSchema")
	// dropped are keywords without an effect on validation, or that have a meaning only in documents.
	dropped = words("nullable", "discriminator", "xml", "externalDocs", "example", "examples", "$schema", "$id", "$anchor", "$dynamicAnchor", "allowEmptyValue")
)

func words(list ...string) map[string]bool {
	m := map[string]bool{}
	for _, w := range list {
		m[w] = true
	}
	return m
}

// schema converts a schema of plain values. omit are the members that the schemas around it, which apply to the same value, omit.
func (c *converter) schema(v any, depth int, omit *omission) (any, error) {
	in, ok := v.(map[string]any)
	if !ok {
		if b, isBool := v.(bool); isBool {
			return b, nil
		}
		return nil, fmt.Errorf("a schema is neither an object nor true or false")
	}
	if depth == 0 {
		return nil, fmt.Errorf("a schema is nested deeper than %d", maxSchemaDepth)
	}
	omit, err := c.omissionFor(in, omit)
	if err != nil {
		return nil, err
	}
	out := make(map[string]any, len(in))
	for key, val := range text.ByName(in) { // sorted, because the names in $defs depend on the order
		if dropped[key] || strings.HasPrefix(key, "x-") || hasNoEffect(key, val) {
			continue
		}
		converted, err := c.keyword(key, val, depth, omit)
		if err != nil {
			return nil, err
		}
		if !hasNoEffect(key, converted) { // it has no effect if all of its content was removed
			out[key] = converted
		}
	}
	if c.doc.v30 {
		return from30(in, out), nil
	}
	return out, nil
}

// keyword converts the value of a keyword.
func (c *converter) keyword(key string, val any, depth int, omit *omission) (any, error) {
	switch {
	case key == "$ref":
		ref, _ := val.(string)
		return c.refer(ref, omit)
	case key == "$dynamicRef":
		return nil, errors.New("a schema has a $dynamicRef, which is not supported: write a $ref in its place, or exclude the operation")
	case inMap[key]:
		return c.schemasByName(key, val, depth, omit)
	case inList[key]:
		if key == "prefixItems" { // the other lists apply to the same value
			omit = omit.forParts()
		}
		if key == "oneOf" {
			c.compareForms(asList(val))
		}
		return c.schemaList(val, depth, omit)
	case key == "not", key == "if":
		// Without members, the schema would match more values. If the document has no readOnly member, an omission has no effect.
		return c.schema(val, depth-1, &omission{disabled: c.doc.readOnly})
	case key == "then", key == "else":
		return c.schema(val, depth-1, omit)
	case key == "additionalProperties" && c.omits(val, omit):
		return false, nil
	case inSchema[key]:
		return c.schema(val, depth-1, omit.forParts())
	case key == "required":
		return omit.filterNames(val), nil
	case key == "dependentRequired":
		out := map[string]any{}
		for name, names := range asObject(val) {
			out[name] = omit.filterNames(names)
		}
		return out, nil
	case key == "description" || key == "title" || key == "$comment":
		text, _ := val.(string)
		return cleanText(text), nil
	}
	return shortest(val), nil
}

// hasNoEffect reports whether a keyword with this value has no effect in a schema.
func hasNoEffect(key string, v any) bool {
	switch v := v.(type) {
	case nil:
		return key != "const"
	case bool:
		return !v && (key == "uniqueItems" || key == "readOnly" || key == "writeOnly" || key == "deprecated")
	case string:
		return v == "" && (key == "title" || key == "description" || key == "format" || key == "pattern")
	case json.Number:
		return v == "0" && (key == "minLength" || key == "minItems" || key == "minProperties")
	case []any:
		return len(v) == 0 && (key == "enum" || key == "required" || key == "type" || inList[key])
	case map[string]any:
		return len(v) == 0 && inMap[key]
	}
	return false
}

// schemasByName converts the schemas of a keyword whose value is an object of schemas.
func (c *converter) schemasByName(key string, v any, depth int, omit *omission) (any, error) {
	in, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("schemas by name are not an object")
	}
	members := key == "properties" || key == "patternProperties"
	if key != "dependentSchemas" { // these apply to the same value
		omit = omit.forParts()
	}
	out := make(map[string]any, len(in))
	for name, value := range text.ByName(in) {
		if members && c.omits(value, omit) {
			continue
		}
		var err error
		if out[name], err = c.schema(value, depth-1, omit); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (c *converter) schemaList(v any, depth int, omit *omission) (any, error) {
	in, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("a list of schemas is none")
	}
	out := make([]any, len(in))
	for i, val := range in {
		var err error
		if out[i], err = c.schema(val, depth-1, omit); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// from30 converts what is specific to OpenAPI 3.0 to JSON Schema: nullable, and boolean flags for exclusive bounds. in is the schema as in
// the document, out with its keywords converted. It drops keywords beside a reference, which OpenAPI 3.0 ignores.
func from30(in, out map[string]any) any {
	if ref, ok := out["$ref"]; ok {
		return map[string]any{"$ref": ref}
	}
	for flag, bound := range map[string]string{"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"} {
		if exclusive, ok := out[flag].(bool); ok {
			delete(out, flag)
			if limit, has := out[bound]; has && exclusive {
				delete(out, bound)
				out[flag] = limit
			}
		}
	}
	if null, _ := in["nullable"].(bool); !null {
		return out
	}
	if typ, ok := out["type"].(string); ok {
		out["type"] = []any{typ, "null"}
		if enum, ok := out["enum"].([]any); ok {
			out["enum"] = append(append([]any{}, enum...), nil)
		}
		return out
	}
	return map[string]any{"anyOf": []any{out, map[string]any{"type": "null"}}}
}
