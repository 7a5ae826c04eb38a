package httptool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// maxSchemaDepth bounds the nesting of schemas.
const maxSchemaDepth = 64

// A sharing collects the schemas that those of one tool refer to.
type sharing struct {
	doc   *document
	names map[string]string // of $defs, by JSON pointer
	queue []string          // pointers whose schemas are still to be taken
	taken map[string]bool   // names
}

func newSharing(d *document) *sharing {
	return &sharing{doc: d, names: map[string]string{}, taken: map[string]bool{}}
}

// schema returns a schema of the document as JSON Schema 2020-12, its references leading to $defs.
func (s *sharing) schema(ref *openapi3.SchemaRef) (json.RawMessage, error) {
	if ref == nil || ref.Ref == "" && ref.Value == nil {
		return json.RawMessage(`{}`), nil
	}
	v, err := plainValue(ref)
	if err != nil {
		return nil, err
	}
	return s.convert(v)
}

func (s *sharing) convert(v any) (json.RawMessage, error) {
	out, err := s.walk(v, maxSchemaDepth)
	if err == nil {
		err = checkVisible(out)
	}
	if err != nil {
		return nil, err
	}
	return marshal(out)
}

// finish returns the shared schemas, and all that they refer to in turn.
func (s *sharing) finish() (map[string]json.RawMessage, error) {
	defs := map[string]json.RawMessage{}
	for len(s.queue) > 0 {
		pointer := s.queue[0]
		s.queue = s.queue[1:]
		v, err := s.doc.lookUp(pointer)
		if err != nil {
			return nil, err
		}
		if defs[s.names[pointer]], err = s.convert(v); err != nil {
			return nil, err
		}
	}
	return defs, nil
}

// refer returns the reference within the tool's schema for one within the document.
func (s *sharing) refer(ref string) (string, error) {
	pointer, local := strings.CutPrefix(ref, "#/")
	if !local {
		return "", fmt.Errorf("the reference %.100q leads out of the document, or to an anchor", ref)
	}
	name, ok := s.names[pointer]
	if !ok {
		name = strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == '.' {
				return r
			}
			return '_'
		}, strings.TrimPrefix(pointer, "components/schemas/"))
		for s.taken[name] {
			name += "_"
		}
		s.taken[name] = true
		s.names[pointer] = name
		s.queue = append(s.queue, pointer)
	}
	return "#/$defs/" + name, nil
}

// Keywords by what stands in them.
var (
	inMap    = words("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
	inList   = words("allOf", "anyOf", "oneOf", "prefixItems")
	inSchema = words("items", "not", "additionalProperties", "contains", "propertyNames", "unevaluatedItems", "unevaluatedProperties", "if", "then", "else", "contentSchema")
	// dropped say nothing about a value, or only in documents.
	dropped = words("nullable", "discriminator", "xml", "externalDocs", "example", "examples", "$schema", "$id", "$anchor", "$dynamicAnchor", "allowEmptyValue")
)

func words(list ...string) map[string]bool {
	m := map[string]bool{}
	for _, w := range list {
		m[w] = true
	}
	return m
}

// walk converts a schema as plain values.
func (s *sharing) walk(v any, depth int) (any, error) {
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
	out := make(map[string]any, len(in))
	for key, val := range in {
		if dropped[key] || strings.HasPrefix(key, "x-") {
			continue
		}
		var err error
		switch {
		case key == "$ref":
			ref, _ := val.(string)
			out[key], err = s.refer(ref)
		case key == "$dynamicRef":
			err = fmt.Errorf("a schema has a $dynamicRef, which is not read")
		case inMap[key]:
			out[key], err = s.walkMap(val, depth)
		case inList[key]:
			out[key], err = s.walkList(val, depth)
		case inSchema[key]:
			out[key], err = s.walk(val, depth-1)
		case key == "description" || key == "title" || key == "$comment":
			text, _ := val.(string)
			out[key] = cleanText(text)
		default:
			out[key] = val
		}
		if err != nil {
			return nil, err
		}
	}
	if s.doc.v30 {
		return old(in, out), nil
	}
	return out, nil
}

func (s *sharing) walkMap(v any, depth int) (any, error) {
	in, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("schemas by name are not an object")
	}
	out := make(map[string]any, len(in))
	for name, val := range in {
		var err error
		if out[name], err = s.walk(val, depth-1); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s *sharing) walkList(v any, depth int) (any, error) {
	in, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("a list of schemas is none")
	}
	out := make([]any, len(in))
	for i, val := range in {
		var err error
		if out[i], err = s.walk(val, depth-1); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// old turns what OpenAPI 3.0 says in its own way into JSON Schema: nullable, and bounds that are
// exclusive by a flag. What stands beside a reference is not looked at there.
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

// plainValue returns v as maps, lists and scalars; numbers keep their text.
func plainValue(v any) (any, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("the document has no JSON form: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var out any
	if err := dec.Decode(&out); err != nil {
		return nil, fmt.Errorf("the document has no JSON form: %w", err)
	}
	return out, nil
}

// marshal writes members sorted by name.
func marshal(v any) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// lookUp returns the value at a JSON pointer, as it stands in a URL's fragment, without its slash.
func lookUp(v any, pointer string) (any, error) {
	for token := range strings.SplitSeq(pointer, "/") {
		if plain, err := url.PathUnescape(token); err == nil {
			token = plain
		}
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		switch in := v.(type) {
		case map[string]any:
			v = in[token]
		case []any:
			i := -1
			if _, err := fmt.Sscanf(token, "%d", &i); err != nil || i < 0 || i >= len(in) {
				return nil, fmt.Errorf("the reference #/%.100s leads nowhere", pointer)
			}
			v = in[i]
		default:
			v = nil
		}
		if v == nil {
			return nil, fmt.Errorf("the reference #/%.100s leads nowhere", pointer)
		}
	}
	return v, nil
}
