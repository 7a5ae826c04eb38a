package schema

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// readParts prepares a document for the library: it lowers counts that would overflow, such as a maxLength beyond 64 bits, and refuses
// parts of other drafts, even those without a reference to them. It returns the locations with a $dynamicAnchor.
func readParts(doc any) (anchors []string, err error) {
	parts(doc, "", func(at string, s map[string]any) {
		boundCounts(s)
		if _, has := s["$dynamicAnchor"]; has {
			anchors = append(anchors, at)
		}
		uri, _ := s["$schema"].(string)
		if _, isResource := s["$id"].(string); isResource && at != "" && strings.Contains(uri, "json-schema.org/draft") && draftNamed(uri) == nil {
			err = fmt.Errorf("%q is of another draft than 2020-12 and 7", base+"#"+at)
		}
	})
	return anchors, err
}

// parts calls f with each object of a document that may be a schema, and with its location. It skips the values of const, enum, default and
// examples.
func parts(v any, at string, f func(at string, s map[string]any)) {
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			parts(e, at+"/"+strconv.Itoa(i), f)
		}
	case map[string]any:
		f(at, v)
		for name, e := range v {
			place := at + "/" + escapeToken(name)
			switch name {
			case "const", "enum", "default", "examples":
			case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies":
				named, _ := e.(map[string]any)
				for name, part := range named {
					parts(part, place+"/"+escapeToken(name), f)
				}
			default:
				parts(e, place, f)
			}
		}
	}
}

// boundCounts replaces counts above the largest int by the largest int.
func boundCounts(s map[string]any) {
	for _, keyword := range [...]string{"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains"} {
		n, _ := s[keyword].(json.Number)
		if len(n) < 19 && !strings.ContainsAny(string(n), "eE") {
			continue
		}
		if r, ok := new(big.Rat).SetString(string(n)); ok && r.IsInt() && r.Num().Cmp(big.NewInt(math.MaxInt)) > 0 {
			s[keyword] = json.Number(strconv.Itoa(math.MaxInt))
		}
	}
}

// compileAt returns the compiled schemas at the locations. The library does not compile a schema to which only a $dynamicRef refers.
func compileAt(c *jsonschema.Compiler, places []string) []*jsonschema.Schema {
	var all []*jsonschema.Schema
	for _, at := range places {
		if s, err := c.Compile(base + "#" + strings.ReplaceAll(at, "%", "%25")); err == nil {
			all = append(all, s)
		}
	}
	return all
}
