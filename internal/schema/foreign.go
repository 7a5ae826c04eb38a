package schema

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// Tolerate returns the schema of a tool that others have written, which is strict JSON, without the parts that keep this package from
// compiling it and that the tool's server can check: patterns that cannot be matched here, and keywords that are null. Every value that
// the schema allows is allowed by the result. For that, a part whose meaning such a pattern turns round (not, if, contains) is left out,
// and oneOf becomes anyOf. left has the place of each part that was left out, and the reason. If it is empty, out is raw itself.
func Tolerate(raw []byte) (out []byte, left []string) {
	if !bytes.Contains(raw, []byte(`"pattern`)) && !hasNull(raw) {
		return raw, nil
	}
	t := &tolerance{verdicts: map[string]error{}}
	t.refers = t.hasBad(raw) // what a reference leads to may have become looser
	out = t.schema(nil, raw[rawjson.SkipSpace(raw, 0):], "")
	if len(t.left) == 0 {
		return raw, nil
	}
	return out, t.left
}

// hasNull reports whether a member may be null: most schemas have null only in lists of types.
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

// A tolerance rewrites one schema.
type tolerance struct {
	verdicts map[string]error // by pattern
	size     int              // of the patterns that are kept
	refers   bool             // a part with a reference counts as one with a pattern that cannot be matched
	left     []string
}

// What keywords hold.
var (
	schemasByName = strings.Fields("properties patternProperties $defs definitions dependentSchemas dependencies")
	schemaLists   = strings.Fields("allOf anyOf oneOf prefixItems items")
	oneSchema     = strings.Fields("items additionalItems additionalProperties contains propertyNames unevaluatedItems unevaluatedProperties not if then else contentSchema")
	noSchema      = strings.Fields(`$schema $id $ref $comment title description type enum examples required pattern format minLength maxLength minItems maxItems
		minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minProperties maxProperties uniqueItems readOnly writeOnly deprecated`)
	notNull = slices.Concat(schemasByName, schemaLists, oneSchema, noSchema)
)

// bad returns why a pattern is left out, or nil.
func (t *tolerance) bad(expr string) error {
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

// hasBad reports whether a value holds a pattern that is left out, or a reference if these count.
func (t *tolerance) hasBad(v []byte) bool {
	switch v = v[rawjson.SkipSpace(v, 0):]; v[0] {
	case '[':
		for e := range rawjson.Elements(v) {
			if t.hasBad(e) {
				return true
			}
		}
	case '{':
		if t.refers && (has(v, "$ref") || has(v, "$dynamicRef")) || t.badIn(v, "patternProperties") {
			return true
		}
		if p, ok := rawjson.Get(v, "pattern"); ok && p[0] == '"' && t.bad(rawjson.Text(p)) != nil {
			return true
		}
		for _, e := range rawjson.Members(v) {
			if t.hasBad(e) {
				return true
			}
		}
	}
	return false
}

// badIn reports whether a member of an object has a pattern that is left out among its names.
func (t *tolerance) badIn(obj []byte, name string) bool {
	named, ok := rawjson.Get(obj, name)
	if !ok || named[0] != '{' {
		return false
	}
	for key := range rawjson.Members(named) {
		if t.bad(rawjson.Text(key)) != nil {
			return true
		}
	}
	return false
}

func has(obj []byte, name string) bool {
	_, ok := rawjson.Get(obj, name)
	return ok
}

// schema appends a schema. at is its place.
func (t *tolerance) schema(dst, raw []byte, at string) []byte {
	if raw[0] != '{' {
		return append(dst, raw...)
	}
	branches, _ := rawjson.Get(raw, "if")
	isUnsure := branches != nil && t.hasBad(branches)
	isOpen := t.badIn(raw, "patternProperties")
	return rawjson.AppendEdited(dst, raw, func(name string, v []byte) (key, to []byte, keep bool) {
		place := strings.TrimPrefix(at+"."+name, ".")
		reason := ""
		switch name {
		case "pattern":
			if v[0] == '"' {
				if err := t.bad(rawjson.Text(v)); err != nil {
					reason = err.Error()
				}
			}
		case "not", "contains":
			if t.hasBad(v) {
				reason = "it holds a pattern that is left out"
			}
		case "if", "then", "else":
			if isUnsure {
				reason = "its condition holds a pattern that is left out"
			}
		case "additionalProperties", "unevaluatedProperties":
			if isOpen {
				reason = "a pattern for names is left out"
			}
		case "oneOf":
			switch {
			case !t.hasBad(v):
			case has(raw, "anyOf"):
				reason = "it holds a pattern that is left out"
			default:
				key = []byte(`"anyOf"`)
			}
		}
		if string(v) == "null" && slices.Contains(notNull, name) {
			reason = "it is null"
		}
		if reason != "" {
			t.left = append(t.left, place+": "+reason)
			return nil, nil, false
		}
		return key, t.inside(name, v, place), true
	}, nil)
}

// inside returns the value of a keyword.
func (t *tolerance) inside(name string, v []byte, at string) []byte {
	switch {
	case v[0] == '{' && slices.Contains(schemasByName, name):
		return rawjson.AppendEdited(nil, v, func(member string, e []byte) (key, to []byte, keep bool) {
			place := at + "." + member
			if name == "patternProperties" {
				if err := t.bad(member); err != nil {
					t.left = append(t.left, place+": "+err.Error())
					return nil, nil, false
				}
			}
			return nil, t.schema(nil, e, place), true
		}, nil)
	case v[0] == '{' && slices.Contains(oneSchema, name):
		return t.schema(nil, v, at)
	case v[0] == '[' && slices.Contains(schemaLists, name):
		out, i := []byte{'['}, 0
		for e := range rawjson.Elements(v) {
			if i > 0 {
				out = append(out, ',')
			}
			out = t.schema(out, e, fmt.Sprintf("%s.%d", at, i))
			i++
		}
		return append(out, ']')
	}
	return v
}
