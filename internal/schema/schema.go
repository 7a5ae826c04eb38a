// Package schema checks JSON values against JSON Schema, draft 2020-12 or draft 7, and derives
// schemas from Go types.
//
// A schema is compiled once and never changes. Nothing is ever loaded from a file or a network: a
// reference to a document that is neither the schema itself nor a metaschema is an error. The
// format and content keywords are annotations. The constants below bound schemas and values;
// a value that cannot be checked within them is not valid.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/lathe-run/lathe/internal/jsonschema"
)

// The limits of a schema and of the values checked against it.
const (
	MaxSchemaBytes = 200_000 // size of a schema's text
	MaxDepth       = 64      // nesting of a schema and of a value
	MaxSubschemas  = 5_000   // objects and booleans in a schema
	MaxReferences  = 2_000   // $ref and $dynamicRef in a schema
	MaxPatternSize = 100_000 // instructions of a schema's regular expressions together
	MaxDigits      = 1_100   // length of a number's text, in a schema and in a value
	MaxExponent    = 1_100   // of a number written with one, in a schema and in a value
	MaxViolations  = 100     // violations reported of one value
	MaxMessage     = 500     // bytes of a violation's message
	MaxPointer     = 1_000   // bytes of a violation's pointer
)

// base is the address of a schema that names none: nothing can be loaded from it.
const base = "schema:///schema.json"

// A Schema is a compiled JSON Schema. It never changes and may be used by several goroutines at once.
type Schema struct {
	fast     *node
	root     *jsonschema.Schema
	work     *workload
	metadata *metadata
}

// Compile reads a schema. The draft is 2020-12 unless `$schema` names draft 7; any other is an
// error, as is a reference that would have to be loaded.
func Compile(raw []byte) (*Schema, error) { return compile(raw, nothing{}) }

// A loader answers references to documents outside the schema.
type loader interface {
	Load(address string) (any, error)
}

// nothing is the loader that loads nothing.
type nothing struct{}

var errNoLoading = errors.New("references to other documents are not loaded")

// Load implements loader.
func (nothing) Load(string) (any, error) { return nil, errNoLoading }

func compile(raw []byte, from loader) (s *Schema, err error) {
	doc, draft, err := read(raw, from)
	if err != nil {
		return nil, err
	}
	defer func() {
		if p := recover(); p != nil {
			s, err = nil, fmt.Errorf("schema: cannot be compiled: %v", p)
		}
	}()
	var engine patterns
	root, err := jsonschema.Compile(base, doc, &jsonschema.Options{Draft: draft, Load: from.Load, Compile: engine.compile})
	if engine.over != nil {
		return nil, fmt.Errorf("schema: %w", engine.over)
	}
	if err != nil {
		return nil, compileError(err)
	}
	s = &Schema{root: root}
	s.fast = newNode(root) // before prepare, which rewrites root
	var all []*jsonschema.Schema
	s.metadata, all = prepare(root)
	if s.work, err = newWorkload(root, all); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return s, nil
}

// read returns the document of a schema that is within the bounds, and its draft.
func read(raw []byte, from loader) (doc any, draft jsonschema.Draft, err error) {
	if len(raw) > MaxSchemaBytes {
		return nil, 0, fmt.Errorf("schema: %d bytes, at most %d are allowed", len(raw), MaxSchemaBytes)
	}
	if err := checkBounds(raw, 0); err != nil {
		return nil, 0, fmt.Errorf("schema: %w", err)
	}
	if doc, err = unmarshal(raw); err != nil {
		return nil, 0, fmt.Errorf("schema: not JSON: %w", placed(raw, err))
	}
	draft = jsonschema.Draft2020
	switch doc := doc.(type) {
	case bool:
	case map[string]any:
		if draft, err = draftOf(doc, from); err != nil {
			return nil, 0, err
		}
		if err := checkCounts(doc); err != nil {
			return nil, 0, fmt.Errorf("schema: %w", err)
		}
	default:
		return nil, 0, errors.New("schema: not an object and not a boolean")
	}
	return doc, draft, nil
}

func draftOf(doc map[string]any, from loader) (jsonschema.Draft, error) {
	uri, ok := doc["$schema"].(string)
	if !ok {
		return jsonschema.Draft2020, nil
	}
	switch strings.TrimPrefix(strings.TrimPrefix(strings.TrimSuffix(uri, "#"), "https://"), "http://") {
	case "json-schema.org/draft/2020-12/schema":
		return jsonschema.Draft2020, nil
	case "json-schema.org/draft-07/schema":
		return jsonschema.Draft7, nil
	}
	if _, closed := from.(nothing); closed {
		return 0, fmt.Errorf("schema: $schema %q is neither draft 2020-12 nor draft 7", uri)
	}
	return jsonschema.Draft2020, nil
}

// compileError says where a schema breaks the rules for schemas.
func compileError(err error) error {
	var invalid *jsonschema.InvalidError
	if errors.As(err, &invalid) {
		vs := violations(invalid.Errors, nil)
		reported := make([]string, 0, 3)
		for i := range vs[:min(len(vs), cap(reported))] {
			if strings.HasSuffix(vs[i].Pointer, "/type") && vs[i].Keyword == "anyOf" {
				reported = append(reported, fmt.Sprintf("at %q: must be one of array, boolean, integer, null, number, object and string, or a list of them", vs[i].Pointer))
				continue
			}
			reported = append(reported, fmt.Sprintf("at %q: %s %s", vs[i].Pointer, vs[i].Keyword, vs[i].Message))
		}
		return fmt.Errorf("schema: not a valid JSON Schema: %s", strings.Join(reported, "; "))
	}
	var load *jsonschema.LoadError
	if errors.As(err, &load) {
		return fmt.Errorf("schema: %q: %w", load.URL, load.Err)
	}
	return fmt.Errorf("schema: %w", err)
}

// placed adds line and column to the error of a schema that is not JSON, where its offset is known.
func placed(raw []byte, err error) error {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) || syntax.Offset < 1 || syntax.Offset > int64(len(raw)) {
		return err
	}
	before := raw[:syntax.Offset-1]
	line := bytes.Count(before, []byte("\n")) + 1
	return fmt.Errorf("line %d, column %d: %w", line, len(before)-bytes.LastIndexByte(before, '\n'), err)
}
