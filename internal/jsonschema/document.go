package jsonschema

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// A document is one JSON document with the resources in it.
type document struct {
	address   string
	root      any
	resources map[string]*resource // by the JSON pointer of their root
	byID      map[string]*resource
	read      map[string]bool // the JSON pointers of the schemas whose resources and anchors are known
}

// A resource is a schema with an address, and all schemas in it that are not in another resource.
type resource struct {
	pointer string
	id      string
	dialect dialect
	anchors map[string]string // JSON pointers
	dynamic []string          // the anchors of $dynamicAnchor
}

// A dialect is a draft, and of draft 2020-12 the vocabularies that a metaschema of its own names.
type dialect struct {
	draft        Draft
	vocabularies []string // nil: all that validate
}

// has reports whether the keywords of a vocabulary apply.
func (d dialect) has(vocabulary string) bool {
	return d.vocabularies == nil || vocabulary == "core" || slices.Contains(d.vocabularies, vocabulary)
}

// same reports whether two dialects have the same metaschema.
func (d dialect) same(other dialect) bool {
	return d.draft == other.draft && (d.vocabularies == nil) == (other.vocabularies == nil) && slices.Equal(d.vocabularies, other.vocabularies)
}

// resourceOf returns the resource that the schema at a JSON pointer belongs to.
func (d *document) resourceOf(pointer string) *resource {
	if len(d.resources) == 1 {
		return d.resources[""]
	}
	for {
		if r := d.resources[pointer]; r != nil {
			return r
		}
		slash := strings.LastIndexByte(pointer, '/')
		if slash < 0 {
			return d.resources[""]
		}
		pointer = pointer[:slash]
	}
}

// find returns the JSON pointer in d that a fragment names within a resource.
func (d *document) find(r *resource, fragment string) (string, error) {
	if !isAnchor(fragment) {
		return r.pointer + fragment, nil
	}
	pointer, ok := r.anchors[fragment]
	if !ok {
		return "", fmt.Errorf("anchor in %q not found in schema %q", r.id+"#"+encodeFragment(fragment), d.address)
	}
	return pointer, nil
}

// The forms in which the value of a keyword holds schemas.
const (
	one  = 1 << iota // it is one
	list             // it is a list of them
	byName
	since2020 // draft 7 does not have the keyword
)

// holders are the keywords that hold schemas. Keywords of draft 7 that draft 2020-12 has removed are also read in its schemas.
var holders = map[string]int{
	"definitions": byName, "properties": byName, "patternProperties": byName, "dependencies": byName,
	"not": one, "additionalProperties": one, "additionalItems": one, "propertyNames": one, "contains": one, "if": one, "then": one, "else": one,
	"allOf": list, "anyOf": list, "oneOf": list, "items": one | list,
	"$defs": byName | since2020, "dependentSchemas": byName | since2020, "prefixItems": list | since2020,
	"unevaluatedProperties": one | since2020, "unevaluatedItems": one | since2020, "contentSchema": one | since2020,
}

// parts calls f with each schema in the value of a keyword, and with the JSON pointer that begins with that of the value.
func parts(how int, v any, pointer string, f func(v any, pointer string) error) error {
	switch v := v.(type) {
	case []any:
		if how&list == 0 {
			return nil
		}
		for i, e := range v {
			if err := f(e, pointer+"/"+strconv.Itoa(i)); err != nil {
				return err
			}
		}
		return nil
	case map[string]any:
		if how&byName != 0 {
			for name, e := range v {
				if err := f(e, pointer+"/"+escapeToken(name)); err != nil {
					return err
				}
			}
			return nil
		}
	}
	if how&one != 0 {
		return f(v, pointer)
	}
	return nil
}

// id returns the $id of a schema without its fragment. Beside $ref draft 7 has none.
func (d Draft) id(obj map[string]any) string {
	if _, refers := obj["$ref"]; refers && d == Draft7 {
		return ""
	}
	id, _ := obj["$id"].(string)
	id, _, _ = strings.Cut(id, "#")
	return id
}

// collect finds the resources and anchors of the schema v at a JSON pointer and of those in it. base is the address of the resource that it
// belongs to unless it has its own, and outer the dialect of that one.
func (c *compiler) collect(d *document, v any, pointer, base string, outer dialect) error {
	if d.read[pointer] {
		return nil
	}
	d.read[pointer] = true
	obj, ok := v.(map[string]any)
	if !ok {
		if pointer == "" {
			d.add(&resource{id: base, dialect: outer})
		}
		return nil
	}
	own := outer
	if name, ok := obj["$schema"].(string); ok {
		var err error
		if own, err = c.dialectOf(name, place{d.address, pointer}, map[string]bool{}); err != nil {
			return err
		}
	}
	id := own.draft.id(obj)
	if id == "" && pointer != "" { // $schema is ignored elsewhere than at the root of a resource
		own = outer
		id = own.draft.id(obj)
	}
	if id != "" {
		var err error
		if base, _, err = resolve(base, id); err != nil {
			return fmt.Errorf("error in parsing id at %q", place{d.address, pointer})
		}
	}
	if id != "" || pointer == "" {
		if other := d.byID[base]; other != nil {
			return fmt.Errorf("duplicate id %q in %q at %q and %q", base, d.address, pointer, other.pointer)
		}
		d.add(&resource{pointer: pointer, id: base, dialect: own, anchors: map[string]string{}})
	}
	within := d.byID[base]
	if err := d.collectAnchors(within, obj, pointer); err != nil {
		return err
	}
	for keyword, value := range obj {
		how := holders[keyword]
		if how == 0 || how&since2020 != 0 && own.draft == Draft7 {
			continue
		}
		err := parts(how, value, pointer+"/"+keyword, func(v any, pointer string) error {
			return c.collect(d, v, pointer, base, within.dialect)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *document) add(r *resource) {
	d.resources[r.pointer], d.byID[r.id] = r, r
}

// collectAnchors notes the anchors that a schema has.
func (d *document) collectAnchors(r *resource, obj map[string]any, pointer string) error {
	add := func(name string) error {
		if at, ok := r.anchors[name]; ok && at != pointer {
			return fmt.Errorf("duplicate anchor %q in %q at %q and %q", name, d.address, at, pointer)
		}
		r.anchors[name] = pointer
		return nil
	}
	if r.dialect.draft == Draft7 {
		if _, refers := obj["$ref"]; refers {
			return nil
		}
		id, _ := obj["$id"].(string)
		_, fragment, err := splitFragment(id)
		if err != nil {
			return fmt.Errorf("error in parsing anchor at %q", place{d.address, pointer})
		}
		if isAnchor(fragment) {
			return add(fragment)
		}
		return nil
	}
	if name, ok := obj["$anchor"].(string); ok {
		if err := add(name); err != nil {
			return err
		}
	}
	if name, ok := obj["$dynamicAnchor"].(string); ok {
		if err := add(name); err != nil {
			return err
		}
		r.dynamic = append(r.dynamic, name)
	}
	return nil
}

// draftNamed returns the draft of a $schema; 0 if it names none of JSON Schema's own.
func draftNamed(name string) (d Draft, other bool) {
	address, fragment, _ := strings.Cut(name, "#")
	rest, ok := strings.CutPrefix(address, "https://json-schema.org/")
	if !ok {
		rest, ok = strings.CutPrefix(address, "http://json-schema.org/")
	}
	if !ok || fragment != "" {
		return 0, false
	}
	switch rest {
	case "schema", "draft/2020-12/schema":
		return Draft2020, false
	case "draft-07/schema":
		return Draft7, false
	case "draft/2019-09/schema", "draft-06/schema", "draft-04/schema":
		return 0, true
	}
	return 0, false
}

// dialectOf returns the dialect of a $schema at a place. passed are the metaschemas that led to it.
func (c *compiler) dialectOf(name string, at place, passed map[string]bool) (dialect, error) {
	draft, other := draftNamed(name)
	switch {
	case draft != 0:
		return dialect{draft: draft}, nil
	case other:
		return dialect{}, fmt.Errorf("%q is of another draft than 2020-12 and 7", at)
	}
	address, _, _ := strings.Cut(name, "#")
	if _, err := url.Parse(address); err != nil {
		return dialect{}, fmt.Errorf("invalid $schema in %q: %w", at, err)
	}
	if passed[address] || address == at.document && at.pointer == "" {
		return dialect{}, fmt.Errorf("draft %q is not supported", address)
	}
	passed[address] = true
	v, err := c.load(address)
	if err != nil {
		return dialect{}, err
	}
	meta, _ := v.(map[string]any)
	own := dialect{draft: c.Draft}
	if name, ok := meta["$schema"].(string); ok {
		if own, err = c.dialectOf(name, place{document: address}, passed); err != nil {
			return dialect{}, err
		}
	}
	own.vocabularies = nil
	if listed, ok := meta["$vocabulary"].(map[string]any); ok && own.draft == Draft2020 {
		own.vocabularies = []string{"core"}
		for name, required := range listed {
			known, ok := strings.CutPrefix(name, vocabularyPrefix)
			switch ok = ok && slices.Contains(vocabularies, known); {
			case required != true:
			case !ok:
				return dialect{}, fmt.Errorf("unsupported vocabulary %q in %q", name, address)
			case known != "core":
				own.vocabularies = append(own.vocabularies, known)
			}
		}
		slices.Sort(own.vocabularies)
	}
	return own, nil
}
