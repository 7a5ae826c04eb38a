package jsonschema

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// Options say how a schema is compiled.
type Options struct {
	Draft Draft // of documents that name none
	// Load returns a document outside the schema, decoded with numbers as [json.Number]. It is not called for the schemas of the drafts.
	Load func(address string) (any, error)
	// Compile returns a regular expression.
	Compile func(expr string) (Regexp, error)
}

// A LoadError says that a document could not be loaded.
type LoadError struct {
	URL string
	Err error
}

// Error returns the address and the cause.
func (e *LoadError) Error() string { return fmt.Sprintf("failing loading %q: %v", e.URL, e.Err) }

// Unwrap returns the cause.
func (e *LoadError) Unwrap() error { return e.Err }

// An InvalidError says that a schema is not valid against the schema of its dialect. The paths of its errors begin at the schema.
type InvalidError struct {
	URL    string
	Errors []*Error
}

// Error returns the address of the schema.
func (e *InvalidError) Error() string {
	return fmt.Sprintf("%q is not valid against metaschema", e.URL)
}

// A compiler compiles one schema and what it refers to.
type compiler struct {
	Options
	formats   bool           // format is an assertion
	loaded    map[string]any // documents by their address
	documents map[string]*document
	schemas   map[place]*Schema
	queue     []queued
}

// queued is a schema whose keywords are not read yet, and the value that it is compiled from, if that is known.
type queued struct {
	s     *Schema
	v     any
	known bool
}

// Compile compiles doc, the schema at address, decoded with numbers as [json.Number]. It returns an *[InvalidError] if doc is not valid against the
// schema of its draft, and a *[LoadError] if it refers to a document that cannot be loaded.
func Compile(address string, doc any, o *Options) (*Schema, error) {
	c := &compiler{Options: *o, loaded: map[string]any{address: doc}, documents: map[string]*document{}, schemas: map[place]*Schema{}}
	return c.compile(address)
}

func (c *compiler) compile(address string) (*Schema, error) {
	if _, err := c.document(address); err != nil {
		return nil, err
	}
	root := c.schema(place{document: address}, nil, false)
	for i := 0; i < len(c.queue); i++ { // fill appends to it
		if err := c.fill(c.queue[i]); err != nil {
			return nil, err
		}
	}
	return root, nil
}

// load returns the document at an address.
func (c *compiler) load(address string) (any, error) {
	if v, ok := c.loaded[address]; ok {
		return v, nil
	}
	v := metaschemaOfAddress(address)
	if v == nil {
		var err error
		if v, err = c.Load(address); err != nil {
			return nil, &LoadError{address, err}
		}
	}
	c.loaded[address] = v
	return v, nil
}

// document returns the document at an address after it has found its resources and checked it.
func (c *compiler) document(address string) (*document, error) {
	if d := c.documents[address]; d != nil {
		return d, nil
	}
	v, err := c.load(address)
	if err != nil {
		return nil, err
	}
	d := &document{address: address, root: v, resources: map[string]*resource{}, byID: map[string]*resource{}, read: map[string]bool{}}
	if err := c.collect(d, v, "", address, dialect{draft: c.Draft}); err != nil {
		return nil, err
	}
	if !strings.HasPrefix(address, "http://json-schema.org/") && !strings.HasPrefix(address, "https://json-schema.org/") {
		if err := c.check(d, v, ""); err != nil {
			return nil, err
		}
	}
	c.documents[address] = d
	return d, nil
}

// schema returns the schema at a place, and queues it if it is new. v is its value, if known.
func (c *compiler) schema(at place, v any, known bool) *Schema {
	if s := c.schemas[at]; s != nil {
		return s
	}
	s := &Schema{place: at}
	c.schemas[at] = s
	c.queue = append(c.queue, queued{s, v, known})
	return s
}

// fill reads the keywords of a schema.
func (c *compiler) fill(q queued) (err error) {
	s, v := q.s, q.v
	d, err := c.document(s.place.document)
	if err != nil {
		return err
	}
	if !q.known {
		if v, err = lookUp(d.root, s.place); err != nil {
			return err
		}
	}
	if !d.read[s.place.pointer] { // a reference leads to a place where no keyword holds schemas
		in := d.resourceOf(s.place.pointer)
		if err := c.collect(d, v, s.place.pointer, in.id, in.dialect); err != nil {
			return err
		}
		if err := c.check(d, v, s.place.pointer); err != nil {
			return err
		}
	}
	r := d.resourceOf(s.place.pointer)
	s.Draft = r.dialect.draft
	s.resource = c.schema(place{s.place.document, r.pointer}, nil, false)
	if s == s.resource {
		for _, name := range r.dynamic {
			if s.anchors == nil {
				s.anchors = map[string]*Schema{}
			}
			s.anchors[name] = c.schema(place{s.place.document, r.anchors[name]}, nil, false)
		}
	}
	switch v := v.(type) {
	case bool:
		s.Bool = &v
	case map[string]any:
		if len(v) == 0 {
			yes := true
			s.Bool = &yes
			return nil
		}
		k := keywords{c: c, s: s, d: d, r: r, obj: v}
		return k.read()
	}
	return nil
}

// keywords reads the keywords of one schema.
type keywords struct {
	c   *compiler
	s   *Schema
	d   *document
	r   *resource
	obj map[string]any
}

func (k *keywords) read() (err error) {
	s, dialect := k.s, k.r.dialect
	if s.Ref, err = k.reference("$ref"); err != nil || s.Ref != nil && s.Draft == Draft7 { // the keywords beside it are ignored
		return err
	}
	if dialect.has("applicator") {
		if err := k.applicators(); err != nil {
			return err
		}
	}
	if dialect.has("validation") {
		if err := k.validation(); err != nil {
			return err
		}
	}
	if k.c.formats {
		s.format, _ = k.obj["format"].(string)
	}
	if s.Draft == Draft7 {
		return nil
	}
	if dialect.has("unevaluated") {
		s.UnevaluatedItems, s.UnevaluatedProperties = k.one("unevaluatedItems"), k.one("unevaluatedProperties")
	}
	s.DynamicAnchor, _ = k.obj["$dynamicAnchor"].(string)
	target, err := k.reference("$dynamicRef")
	if err != nil {
		return err
	}
	if target != nil {
		_, fragment, err := splitFragment(k.obj["$dynamicRef"].(string))
		if err != nil {
			return err
		}
		s.DynamicRef = &DynamicRef{Ref: target}
		if isAnchor(fragment) {
			s.DynamicRef.Anchor = fragment
		}
	}
	// $recursiveRef is of draft 2019-09. Schemas that name no draft have it.
	if target, err = k.reference("$recursiveRef"); target != nil {
		s.AllOf = append(s.AllOf, target)
	}
	return err
}

func (k *keywords) applicators() (err error) {
	s := k.s
	s.AllOf, s.AnyOf, s.OneOf = k.list("allOf"), k.list("anyOf"), k.list("oneOf")
	s.Not, s.Contains, s.PropertyNames = k.one("not"), k.one("contains"), k.one("propertyNames")
	if s.If = k.one("if"); s.If != nil {
		s.Then, s.Else = k.one("then"), k.one("else")
	}
	s.Properties, s.AdditionalProperties = k.byName("properties"), k.additional("additionalProperties")
	if subs := k.byName("patternProperties"); subs != nil {
		s.PatternProperties = make(map[Regexp]*Schema, len(subs))
		for expr, sub := range subs {
			re, err := k.expression("patternProperties", expr)
			if err != nil {
				return err
			}
			s.PatternProperties[re] = sub
		}
	}
	if deps, ok := k.obj["dependencies"].(map[string]any); ok {
		s.Dependencies = make(map[string]any, len(deps))
		for name, v := range deps {
			if names, ok := v.([]any); ok {
				s.Dependencies[name] = texts(names)
				continue
			}
			s.Dependencies[name] = k.sub(v, "dependencies", name)
		}
	}
	if s.Draft == Draft7 {
		if s.PrefixItems = k.list("items"); s.PrefixItems != nil {
			s.AdditionalItems = k.additional("additionalItems")
		} else {
			s.Items = k.one("items")
		}
		return nil
	}
	s.PrefixItems, s.Items, s.DependentSchemas = k.list("prefixItems"), k.one("items"), k.byName("dependentSchemas")
	return nil
}

func (k *keywords) validation() (err error) {
	s := k.s
	if v, ok := k.obj["type"]; ok {
		s.Types = typesOf(v)
	}
	if v, ok := k.obj["const"]; ok {
		s.Const = &v
	}
	s.Enum, _ = k.obj["enum"].([]any)
	s.Minimum, s.Maximum, s.MultipleOf = k.number("minimum"), k.number("maximum"), k.number("multipleOf")
	s.ExclusiveMinimum, s.ExclusiveMaximum = k.number("exclusiveMinimum"), k.number("exclusiveMaximum")
	s.MinLength, s.MaxLength = k.count("minLength"), k.count("maxLength")
	s.MinItems, s.MaxItems = k.count("minItems"), k.count("maxItems")
	s.MinProperties, s.MaxProperties = k.count("minProperties"), k.count("maxProperties")
	s.UniqueItems, _ = k.obj["uniqueItems"].(bool)
	if names, ok := k.obj["required"].([]any); ok {
		s.Required = texts(names)
	}
	if expr, ok := k.obj["pattern"].(string); ok {
		if s.Pattern, err = k.expression("pattern", expr); err != nil {
			return err
		}
	}
	if s.Draft == Draft7 {
		return nil
	}
	if s.Contains != nil {
		s.MinContains, s.MaxContains = k.count("minContains"), k.count("maxContains")
	}
	if deps, ok := k.obj["dependentRequired"].(map[string]any); ok {
		s.DependentRequired = make(map[string][]string, len(deps))
		for name, v := range deps {
			if names, ok := v.([]any); ok {
				s.DependentRequired[name] = texts(names)
			}
		}
	}
	return nil
}

// reference returns the schema that the reference in a keyword leads to; nil if there is none.
func (k *keywords) reference(keyword string) (*Schema, error) {
	ref, ok := k.obj[keyword].(string)
	if !ok {
		return nil, nil
	}
	address, fragment, err := resolve(k.r.id, ref)
	if err != nil {
		return nil, err
	}
	d, r := k.d, k.d.byID[address]
	if address == d.address {
		r = d.resources[""]
	}
	if r == nil {
		if d, err = k.c.document(address); err != nil {
			return nil, err
		}
		r = d.resources[""]
	}
	pointer, err := d.find(r, fragment)
	if err != nil {
		return nil, err
	}
	return k.c.schema(place{d.address, pointer}, nil, false), nil
}

// sub returns the schema that the value v of a keyword is, or holds under a name.
func (k *keywords) sub(v any, keyword string, names ...string) *Schema {
	pointer := k.s.place.pointer + "/" + keyword
	for _, name := range names {
		pointer += "/" + escapeToken(name)
	}
	return k.c.schema(place{k.d.address, pointer}, v, true)
}

func (k *keywords) one(keyword string) *Schema {
	v, ok := k.obj[keyword]
	if !ok {
		return nil
	}
	return k.sub(v, keyword)
}

func (k *keywords) list(keyword string) []*Schema {
	values, ok := k.obj[keyword].([]any)
	if !ok {
		return nil
	}
	subs := make([]*Schema, len(values))
	for i, v := range values {
		subs[i] = k.sub(v, keyword, strconv.Itoa(i))
	}
	return subs
}

func (k *keywords) byName(keyword string) map[string]*Schema {
	values, ok := k.obj[keyword].(map[string]any)
	if !ok {
		return nil
	}
	subs := make(map[string]*Schema, len(values))
	for name, v := range values {
		subs[name] = k.sub(v, keyword, name)
	}
	return subs
}

// additional returns true, false, a schema or nil.
func (k *keywords) additional(keyword string) any {
	if b, ok := k.obj[keyword].(bool); ok {
		return b
	}
	if s := k.one(keyword); s != nil {
		return s
	}
	return nil
}

func (k *keywords) expression(keyword, expr string) (Regexp, error) {
	re, err := k.c.Compile(expr)
	if err != nil {
		return nil, fmt.Errorf("invalid regex %q at %q: %w", expr, place{k.d.address, k.s.place.pointer + "/" + keyword}, err)
	}
	return re, nil
}

func (k *keywords) number(keyword string) *big.Rat {
	n, ok := k.obj[keyword].(json.Number)
	if !ok {
		return nil
	}
	return rational(n)
}

func (k *keywords) count(keyword string) *int {
	r := k.number(keyword)
	if r == nil || !r.IsInt() {
		return nil
	}
	n := math.MaxInt
	switch num := r.Num(); {
	case num.IsInt64() && num.Int64() <= math.MaxInt:
		n = int(num.Int64())
	case num.Sign() < 0:
		n = 0
	}
	return &n
}

// texts returns the strings of a list.
func texts(values []any) []string {
	var out []string
	for _, v := range values {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}
