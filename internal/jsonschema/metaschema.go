package jsonschema

import (
	"errors"
	"regexp"
	"strings"
	"sync"
)

const vocabularyPrefix = "https://json-schema.org/draft/2020-12/vocab/"

// vocabularies are those of draft 2020-12.
var vocabularies = []string{"applicator", "content", "core", "format-annotation", "format-assertion", "meta-data", "unevaluated", "validation"}

// metaschemaOfAddress returns the schema of a draft or vocabulary as a value; nil if the address is of none.
func metaschemaOfAddress(address string) any {
	rest, ok := strings.CutPrefix(address, "https://json-schema.org/")
	if !ok {
		if rest, ok = strings.CutPrefix(address, "http://json-schema.org/"); !ok {
			return nil
		}
	}
	if name, ok := strings.CutPrefix(rest, "draft/2020-12/"); ok {
		if s := schemaOfDraft2020(name); s != nil {
			return s
		}
	}
	switch rest {
	case "schema":
		return schemaOfDraft2020(rest)
	case "draft-07/schema":
		return schemaOfDraft7()
	}
	return nil
}

// The compiled schemas of the drafts.
var (
	compiling                   sync.Mutex
	metaschema7, metaschema2020 *Schema
)

// metaschemaOf returns the compiled schema of a draft.
func metaschemaOf(d Draft) *Schema {
	compiling.Lock()
	defer compiling.Unlock()
	made, address := &metaschema2020, "https://json-schema.org/draft/2020-12/schema"
	if d == Draft7 {
		made, address = &metaschema7, "http://json-schema.org/draft-07/schema"
	}
	if *made == nil {
		*made = compileMetaschema(address)
	}
	return *made
}

func compileMetaschema(address string) *Schema {
	c := &compiler{
		Options: Options{
			Draft:   Draft2020,
			Load:    func(string) (any, error) { return nil, errors.New("not a schema of a draft") },
			Compile: func(expr string) (Regexp, error) { return regexp.Compile(expr) },
		},
		formats: true, loaded: map[string]any{}, documents: map[string]*document{}, schemas: map[place]*Schema{},
	}
	s, err := c.compile(address)
	if err != nil {
		panic(err) // it is a constant of the program
	}
	return s
}

// metaschema returns the schema against which the schemas of a dialect are checked.
func (d dialect) metaschema() *Schema {
	if d.vocabularies == nil {
		return metaschemaOf(d.draft)
	}
	s := &Schema{Draft: d.draft, DynamicAnchor: "meta"}
	for _, name := range d.vocabularies {
		s.AllOf = append(s.AllOf, compileMetaschema("https://json-schema.org/draft/2020-12/meta/"+name))
	}
	s.resource, s.anchors = s, map[string]*Schema{"meta": s}
	return s
}

// check checks a schema at a JSON pointer of a document against the schema of its dialect, and the resources in it against those of theirs.
func (c *compiler) check(d *document, v any, pointer string) error {
	own := d.resourceOf(pointer).dialect
	meta := own.metaschema()
	r := run{compile: c.Compile}
	for _, other := range d.resources {
		if !other.dialect.same(own) {
			r.dialects = &dialects{d: d, at: pointer, roots: map[*Schema]bool{meta: true}, known: map[*resource]*Schema{}}
			break
		}
	}
	if errs := r.apply(&frame{schema: meta}, v, false, nil); errs != nil {
		return &InvalidError{place{d.address, pointer}.String(), errs}
	}
	return nil
}

// dialects chooses the schemas against which the resources of one document are checked: for each that of its own dialect.
type dialects struct {
	d     *document
	at    string // the JSON pointer of the value that the run begins with
	roots map[*Schema]bool
	known map[*resource]*Schema
}

// schema returns the schema to apply in a frame.
func (m *dialects) schema(f *frame) *Schema {
	if !m.roots[f.schema] {
		return f.schema
	}
	pointer := m.at
	for _, token := range f.path() {
		pointer += "/" + escapeToken(token)
	}
	r := m.d.resources[pointer]
	if r == nil {
		return f.schema
	}
	if m.known[r] == nil {
		m.known[r] = r.dialect.metaschema()
		m.roots[m.known[r]] = true
	}
	return m.known[r]
}
