// Package schema checks JSON values against JSON Schema, draft 2020-12 or draft 7, and derives schemas from Go types.
//
// A schema is compiled once and never changes. Nothing is loaded from files or a network: a reference to a document that is neither the
// schema itself nor a metaschema is an error. The format and content keywords are annotations. Patterns are those of ECMA-262 with its flag
// u. The constants below limit schemas and values; a value that cannot be checked within the limits is not valid.
//
// santhosh-tekuri/jsonschema compiles schemas and checks values, and dlclark/regexp2 matches patterns. Package schema limits the work of
// both and writes the messages.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// Limits of a schema and of the values that are checked against it.
const (
	MaxSchemaBytes = 200_000 // bytes of the text of a schema
	MaxDepth       = 64      // nesting of a schema and of a value
	MaxSubschemas  = 5_000   // objects and booleans in a schema
	MaxReferences  = 2_000   // $ref and $dynamicRef in a schema
	MaxPatternSize = 10_000  // bytes of all regular expressions of a schema
	MaxDigits      = 1_100   // length of the text of a number, in a schema and in a value
	MaxExponent    = 1_100   // exponent of a number in exponent notation, in a schema and in a value
	MaxViolations  = 100     // reported violations of one value
	MaxMessage     = 500     // bytes of the message of a violation
	MaxPointer     = 1_000   // bytes of the pointer of a violation

	MaxPatternTime = time.Second // time to match one value with all patterns of a schema
)

// base is the URL of a schema without $id. Nothing can be loaded from it.
const base = "schema:///schema.json"

// A Schema is a compiled JSON Schema. It never changes and may be used by several goroutines at once.
type Schema struct {
	flat     *flat // nil if newFlat does not support the schema
	root     *jsonschema.Schema
	work     *workload
	metadata *metadata
}

// Compile parses and compiles a schema. The draft is 2020-12 unless `$schema` names draft 7. Any other draft is an error, as is a reference
// to another document.
func Compile(raw []byte) (*Schema, error) { return compile(raw, nothing{}) }

// A loader loads the documents that a schema refers to.
type loader = jsonschema.URLLoader

// nothing is a loader that loads no documents.
type nothing struct{}

var errNoLoading = errors.New("references to other documents are not loaded")

// Load implements loader. It always returns errNoLoading.
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
	anchors, err := readParts(doc)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(draft)
	c.UseLoader(from)
	engine := newPatterns()
	c.UseRegexpEngine(engine.compile)
	if err := c.AddResource(base, doc); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	root, err := c.Compile(base)
	if engine.over != nil {
		return nil, fmt.Errorf("schema: %w", engine.over)
	}
	if err != nil {
		if wrong := engine.problems(doc); len(wrong) > 0 {
			return nil, invalid(wrong)
		}
		return nil, compileError(err)
	}
	s = &Schema{root: root, flat: newFlat(root)} // before prepare, which modifies root
	var all []*jsonschema.Schema
	s.metadata, all = prepare(root, func() []*jsonschema.Schema { return compileAt(c, anchors) })
	if s.work, err = newWorkload(all); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return s, nil
}

// read parses a schema, checks its limits, and returns it with its draft.
func read(raw []byte, from loader) (doc any, draft *jsonschema.Draft, err error) {
	if len(raw) > MaxSchemaBytes {
		return nil, nil, fmt.Errorf("schema: %d bytes, at most %d are allowed", len(raw), MaxSchemaBytes)
	}
	if err := checkBounds(raw, 0); err != nil {
		return nil, nil, fmt.Errorf("schema: %w", err)
	}
	if doc, err = rawjson.Value(raw); err != nil {
		return nil, nil, fmt.Errorf("schema: not JSON: %w", placed(raw, err))
	}
	draft = jsonschema.Draft2020
	switch doc := doc.(type) {
	case bool:
	case map[string]any:
		if uri, ok := doc["$schema"].(string); ok {
			if named := draftNamed(uri); named != nil {
				draft = named
			} else if _, closed := from.(nothing); closed {
				return nil, nil, fmt.Errorf("schema: $schema %q is neither draft 2020-12 nor draft 7", uri)
			}
		}
		if err := checkCounts(doc); err != nil {
			return nil, nil, fmt.Errorf("schema: %w", err)
		}
	default:
		return nil, nil, errors.New("schema: not an object and not a boolean")
	}
	return doc, draft, nil
}

// draftNamed returns the draft of a $schema, or nil for drafts other than 2020-12 and 7.
func draftNamed(uri string) *jsonschema.Draft {
	switch strings.TrimPrefix(strings.TrimPrefix(strings.TrimSuffix(uri, "#"), "https://"), "http://") {
	case "json-schema.org/draft/2020-12/schema":
		return jsonschema.Draft2020
	case "json-schema.org/draft-07/schema":
		return jsonschema.Draft7
	}
	return nil
}

// compileError returns a short error for a schema that is not valid, with the locations of the mistakes.
func compileError(err error) error {
	var refused *jsonschema.SchemaValidationError
	var cause *jsonschema.ValidationError
	if errors.As(err, &refused) && errors.As(refused.Err, &cause) {
		vs := violations(cause, nil)
		wrong := make([]string, len(vs))
		for i, v := range vs {
			wrong[i] = fmt.Sprintf("at %q: %s %s", v.Pointer, v.Keyword, v.Message)
			if strings.HasSuffix(v.Pointer, "/type") && v.Keyword == "anyOf" {
				wrong[i] = fmt.Sprintf("at %q: must be one of array, boolean, integer, null, number, object and string, or a list of them", v.Pointer)
			}
		}
		return invalid(wrong)
	}
	var load *jsonschema.LoadURLError
	if errors.As(err, &load) {
		return fmt.Errorf("schema: %q: %w", load.URL, load.Err)
	}
	return fmt.Errorf("schema: %w", err)
}

// invalid returns the error of a schema that is not valid, with the first three mistakes.
func invalid(wrong []string) error {
	return fmt.Errorf("schema: not a valid JSON Schema: %s", strings.Join(wrong[:min(len(wrong), 3)], "; "))
}

// placed adds line and column to the error of a schema that is not JSON, if the offset is known.
func placed(raw []byte, err error) error {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) || syntax.Offset < 1 || syntax.Offset > int64(len(raw)) {
		return err
	}
	before := raw[:syntax.Offset-1]
	line := bytes.Count(before, []byte("\n")) + 1
	return fmt.Errorf("line %d, column %d: %w", line, len(before)-bytes.LastIndexByte(before, '\n'), err)
}
