package httptool

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

// A sharing collects the schemas to which the schemas of one tool refer.
type sharing struct {
	doc   *document
	left  *int              // remaining amount of maxSchemaBytes
	names map[target]string // names in $defs
	queue []target          // targets whose schemas are not yet converted
	taken map[string]bool   // used names
	alike map[string]int    // number of name conflicts by wanted name

	traits     map[string]*traits // by reference
	readOnlyAt map[string]bool    // by reference
	warnings   []string           // at most one of a kind
}

// A target is the target of a reference: a JSON pointer, and a variant if the schema differs from that of other references to the same
// pointer.
type target struct{ pointer, variant string }

func newSharing(d *document, left *int) *sharing {
	return &sharing{doc: d, left: left, names: map[target]string{}, taken: map[string]bool{}, alike: map[string]int{}, traits: map[string]*traits{}, readOnlyAt: map[string]bool{}}
}

var errTooLarge = fmt.Errorf("the tools of the document take more than %d bytes: name fewer operations", maxSchemaBytes)

// spend subtracts n bytes of a tool from left.
func (s *sharing) spend(n int) error {
	if *s.left -= n; *s.left < 0 {
		return errTooLarge
	}
	return nil
}

// schema returns a schema of the document as JSON Schema 2020-12, with references to $defs. A missing schema allows every value.
func (s *sharing) schema(v any) (json.RawMessage, error) { return s.without(v, &omission{}) }

// without returns what schema returns, for a schema with an omission.
func (s *sharing) without(v any, o *omission) (json.RawMessage, error) {
	if v == nil {
		return json.RawMessage(`{}`), nil
	}
	out, err := s.walk(v, maxSchemaDepth, o)
	if err == nil {
		err = checkVisible(out)
	}
	if err != nil {
		return nil, err
	}
	raw, err := rawjson.Marshal(out)
	if err == nil {
		err = s.spend(len(raw))
	}
	return raw, err
}

// finish returns the schemas for $defs, with all to which they refer.
func (s *sharing) finish() (map[string]json.RawMessage, error) {
	defs := map[string]json.RawMessage{}
	for len(s.queue) > 0 {
		next := s.queue[0]
		s.queue = s.queue[1:]
		v, err := valueAt(s.doc.root, next.pointer)
		if err != nil {
			return nil, err
		}
		if defs[s.names[next]], err = s.without(v, next.omission()); err != nil {
			return nil, err
		}
	}
	return defs, nil
}

// notInNames are the characters that a name in $defs does not have.
var notInNames = lazy.Regexp(`[^\w.-]`)

// refer returns the reference within the tool's schema for a reference within the document.
func (s *sharing) refer(ref string, o *omission) (string, error) {
	spelled, local := strings.CutPrefix(ref, "#/")
	if !local {
		return "", fmt.Errorf("the reference %.100q leads out of the document, or to an anchor", ref)
	}
	variant, err := s.variant(ref, o)
	if err != nil {
		return "", err
	}
	to := target{plainPointer(spelled), variant}
	name, ok := s.names[to]
	if !ok {
		wanted := notInNames().ReplaceAllString(strings.TrimPrefix(spelled, "components/schemas/"), "_")
		for name = wanted; s.taken[name]; {
			if n := s.alike[wanted] + 1; n <= 8 {
				name, s.alike[wanted] = wanted+strings.Repeat("_", n), n
			} else {
				name, s.alike[wanted] = fmt.Sprintf("%s_%d", wanted, n), n
			}
		}
		s.taken[name] = true
		s.names[to] = name
		s.queue = append(s.queue, to)
	}
	return "#/$defs/" + name, nil
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

// walk converts a schema in plain values. o is the omission of other schemas for the same value.
func (s *sharing) walk(v any, depth int, o *omission) (any, error) {
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
	o, err := s.within(in, o)
	if err != nil {
		return nil, err
	}
	out := make(map[string]any, len(in))
	for key, val := range text.ByName(in) { // sorted, because the names in $defs depend on the order
		if dropped[key] || strings.HasPrefix(key, "x-") || hasNoEffect(key, val) {
			continue
		}
		converted, err := s.keyword(key, val, depth, o)
		if err != nil {
			return nil, err
		}
		if !hasNoEffect(key, converted) { // it has no effect if all of its content was removed
			out[key] = converted
		}
	}
	if s.doc.v30 {
		return old(in, out), nil
	}
	return out, nil
}

// keyword converts the value of a keyword.
func (s *sharing) keyword(key string, val any, depth int, o *omission) (any, error) {
	switch {
	case key == "$ref":
		ref, _ := val.(string)
		return s.refer(ref, o)
	case key == "$dynamicRef":
		return nil, errors.New("a schema has a $dynamicRef, which is not supported: write a $ref in its place, or exclude the operation")
	case inMap[key]:
		return s.walkMap(key, val, depth, o)
	case inList[key]:
		if key == "prefixItems" {
			o = o.inside()
		}
		if key == "oneOf" {
			s.compareForms(asList(val))
		}
		return s.walkList(val, depth, o)
	case key == "not", key == "if":
		return s.walk(val, depth-1, &omission{none: s.doc.readOnly})
	case key == "then", key == "else":
		return s.walk(val, depth-1, o)
	case key == "additionalProperties" && s.leavesOut(val, o):
		return false, nil
	case inSchema[key]:
		return s.walk(val, depth-1, o.inside())
	case key == "required":
		return o.names(val), nil
	case key == "dependentRequired":
		out := map[string]any{}
		for name, names := range asObject(val) {
			out[name] = o.names(names)
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

// walkMap converts the schemas of a keyword whose value is an object of schemas.
func (s *sharing) walkMap(key string, v any, depth int, o *omission) (any, error) {
	in, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("schemas by name are not an object")
	}
	members := key == "properties" || key == "patternProperties"
	if key != "dependentSchemas" {
		o = o.inside()
	}
	out := make(map[string]any, len(in))
	for name, value := range text.ByName(in) {
		if members && s.leavesOut(value, o) {
			continue
		}
		var err error
		if out[name], err = s.walk(value, depth-1, o); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s *sharing) walkList(v any, depth int, o *omission) (any, error) {
	in, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("a list of schemas is none")
	}
	out := make([]any, len(in))
	for i, val := range in {
		var err error
		if out[i], err = s.walk(val, depth-1, o); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// old converts what is specific to OpenAPI 3.0 to JSON Schema: nullable, and boolean flags for exclusive bounds. It drops keywords beside a
// reference, which OpenAPI 3.0 ignores.
func old(in, out map[string]any) any {
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
