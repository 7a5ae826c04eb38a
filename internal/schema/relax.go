package schema

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// Relax returns the schema of a tool of another author, which must be strict JSON, without the parts that would prevent this package from
// compiling it and that the tool's server can check: patterns that cannot be matched here, and keywords that are null. The result allows
// every value that the schema allows. Therefore a part in which such a pattern would restrict values inversely (not, if, contains) is
// removed, oneOf becomes anyOf, and unevaluatedProperties and unevaluatedItems are removed from each schema that contains such a pattern,
// because values that a removed part evaluates would count as unevaluated. left has the location of each removed part and the reason. If
// left is empty, out is raw.
func Relax(raw []byte) (out []byte, left []string) {
	if !bytes.Contains(raw, []byte(`"pattern`)) && !hasNull(raw) {
		return raw, nil
	}
	t := newRelaxation(raw)
	out = t.schema(nil, raw[rawjson.SkipSpace(raw, 0):], "")
	if len(t.left) == 0 {
		return raw, nil
	}
	return out, t.left
}

// hasNull reports whether a member may be null. Most schemas have null only in lists of types.
func hasNull(raw []byte) bool {
	for i := 0; ; {
		n := bytes.Index(raw[i:], []byte("null"))
		if n < 0 {
			return false
		}
		if bytes.HasSuffix(bytes.TrimRight(raw[:i+n], " \t\r\n"), []byte(":")) {
			return true
		}
		i += n + len("null")
	}
}

// A relaxation rewrites one schema for [Relax], in two passes: scan decides about each pattern and records which schemas contain one that is
// removed; then schema writes the result. The second pass reads all fields but left, and changes only left.
type relaxation struct {
	verdicts map[string]error   // why a pattern is removed, or nil, by pattern
	size     int                // bytes of the retained patterns
	contents map[*byte]contents // of each schema and list of schemas, by the address of the first byte of its text
	lossy    bool               // at least one pattern of the whole schema is removed
	scanned  int                // number of schemas and lists of schemas examined to fill contents

	left []string // the location of each removed part, and the reason
}

// contents describes a schema, or a list of schemas.
type contents struct {
	removes bool // contains a pattern that is removed
	refers  bool // contains a reference, which may lead to such a pattern
}

func (c *contents) add(other contents) {
	c.removes, c.refers = c.removes || other.removes, c.refers || other.refers
}

func newRelaxation(raw []byte) *relaxation {
	t := &relaxation{verdicts: map[string]error{}, contents: map[*byte]contents{}}
	t.lossy = t.scan(raw[rawjson.SkipSpace(raw, 0):]).removes
	return t
}

// Keywords by the kind of their value.
var (
	schemasByName = strings.Fields("properties patternProperties $defs definitions dependentSchemas dependencies")
	schemaLists   = strings.Fields("allOf anyOf oneOf prefixItems items")
	oneSchema     = strings.Fields("items additionalItems additionalProperties contains propertyNames unevaluatedItems unevaluatedProperties not if then else contentSchema")
	noSchema      = strings.Fields(`$schema $id $ref $comment title description type enum examples required pattern format minLength maxLength minItems maxItems
		minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minProperties maxProperties uniqueItems readOnly writeOnly deprecated`)
	notNull = slices.Concat(schemasByName, schemaLists, oneSchema, noSchema)
)

// check returns why a pattern must be removed, or nil. The first check of a pattern adds its size, so that those scanned first are retained.
func (t *relaxation) check(expr string) error {
	err, known := t.verdicts[expr]
	if known {
		return err
	}
	if _, err = newPattern(expr); err == nil {
		if t.size += len(expr); t.size > MaxPatternSize {
			err = fmt.Errorf("the patterns have more than %d bytes", MaxPatternSize)
		}
	}
	t.verdicts[expr] = err
	return err
}

// scan records the contents of a schema, or of a list of schemas, and of everything in it.
func (t *relaxation) scan(v []byte) (c contents) {
	switch v[0] {
	case '[':
		for e := range rawjson.Elements(v) {
			c.add(t.scan(e))
		}
	case '{':
		for key, e := range rawjson.Members(v) {
			c.add(t.scanKeyword(rawjson.Text(key), e))
		}
	default:
		return c
	}
	t.scanned++
	t.contents[&v[0]] = c
	return c
}

// scanKeyword returns the contents of a keyword with the value v, and records those of the schemas in it.
func (t *relaxation) scanKeyword(name string, v []byte) (c contents) {
	switch {
	case name == "$ref", name == "$dynamicRef":
		c.refers = true
	case name == "pattern":
		c.removes = v[0] == '"' && t.check(rawjson.Text(v)) != nil
	case v[0] == '{' && slices.Contains(schemasByName, name):
		c.removes = name == "patternProperties" && t.removesName(v)
		for _, member := range rawjson.Members(v) {
			c.add(t.scan(member))
		}
	case v[0] == '{' && slices.Contains(oneSchema, name), v[0] == '[' && slices.Contains(schemaLists, name):
		return t.scan(v)
	}
	return c
}

// mayRemove reports whether a pattern is removed from a schema, or possibly from one that it refers to.
func (t *relaxation) mayRemove(v []byte) bool {
	c := t.contents[&v[0]]
	return c.removes || t.lossy && c.refers
}

// removesName reports whether a name in patternProperties is a pattern that is removed. It checks all names, even after the first such name,
// so that scan decides about each pattern.
func (t *relaxation) removesName(named []byte) (removes bool) {
	for key := range rawjson.Members(named) {
		removes = t.check(rawjson.Text(key)) != nil || removes
	}
	return removes
}

// schema appends the rewritten schema. at is its location. A oneOf that may lose a pattern becomes anyOf: without the pattern, several of its
// schemas could match.
func (t *relaxation) schema(dst, raw []byte, at string) []byte {
	if raw[0] != '{' {
		return append(dst, raw...)
	}
	return rawjson.AppendEdited(dst, raw, func(name string, v []byte) (key, to []byte, keep bool) {
		place := strings.TrimPrefix(at+"."+name, ".")
		if reason := t.reason(raw, name, v); reason != "" {
			t.left = append(t.left, place+": "+reason)
			return nil, nil, false
		}
		if name == "oneOf" && t.mayRemove(v) {
			key = []byte(`"anyOf"`)
		}
		return key, t.inside(name, v, place), true
	}, nil)
}

// reason returns why the keyword name, whose value is v, is removed from the schema raw; "": it is not removed.
func (t *relaxation) reason(raw []byte, name string, v []byte) string {
	if string(v) == "null" && slices.Contains(notNull, name) {
		return "it is null"
	}
	switch name {
	case "pattern":
		if v[0] == '"' {
			if err := t.check(rawjson.Text(v)); err != nil {
				return err.Error()
			}
		}
	case "not", "contains":
		if t.mayRemove(v) {
			return "it holds a pattern that is left out"
		}
	case "if", "then", "else":
		if condition := rawjson.At(raw, "if"); condition != nil && t.mayRemove(condition) {
			return "its condition holds a pattern that is left out"
		}
	case "additionalProperties":
		if t.removesName(rawjson.At(raw, "patternProperties")) {
			return "a pattern for names is left out"
		}
	case "unevaluatedProperties", "unevaluatedItems":
		if t.mayRemove(raw) {
			return "a pattern that may decide what is evaluated is left out"
		}
	case "oneOf":
		if t.mayRemove(v) && rawjson.At(raw, "anyOf") != nil { // else schema renames it to anyOf
			return "it holds a pattern that is left out"
		}
	}
	return ""
}

// inside returns the rewritten value of a keyword.
func (t *relaxation) inside(name string, v []byte, at string) []byte {
	switch {
	case v[0] == '{' && slices.Contains(schemasByName, name):
		return rawjson.AppendEdited(nil, v, func(member string, e []byte) (key, to []byte, keep bool) {
			place := at + "." + member
			if name == "patternProperties" {
				if err := t.check(member); err != nil {
					t.left = append(t.left, place+": "+err.Error())
					return nil, nil, false
				}
			}
			return nil, t.schema(nil, e, place), true
		}, nil)
	case v[0] == '{' && slices.Contains(oneSchema, name):
		return t.schema(nil, v, at)
	case v[0] == '[' && slices.Contains(schemaLists, name):
		i := -1
		return rawjson.AppendEach(nil, v, func(dst, _, e []byte) []byte {
			i++
			return t.schema(dst, e, fmt.Sprintf("%s.%d", at, i))
		})
	}
	return v
}
