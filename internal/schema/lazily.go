package schema

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/lathe-run/lathe/internal/lazy"
)

// A Lazy is a schema that is known to be valid and is compiled at first use: compiling takes about 20 times as long as parsing, and of a
// thousand tools most are not called. It may be used from several goroutines at once.
type Lazy struct {
	raw  []byte
	once sync.Once
	s    *Schema
}

// CompileLazily returns the schema of raw, which must not change afterwards. It returns the same errors as [Compile]: a schema of common
// keywords is checked without being compiled, and any other schema is compiled at once.
func CompileLazily(raw []byte) (*Lazy, error) {
	doc, draft, err := read(raw, nothing{})
	if err != nil {
		return nil, err
	}
	if isPlain(doc, draft) {
		return &Lazy{raw: raw}, nil
	}
	s, err := Compile(raw)
	if err != nil {
		return nil, err
	}
	l := &Lazy{s: s}
	l.once.Do(func() {}) // prevents a second compilation
	return l, nil
}

// Schema returns the compiled schema. Each call returns the same one.
func (l *Lazy) Schema() *Schema {
	l.once.Do(func() {
		var err error
		if l.s, err = Compile(l.raw); err != nil { // isPlain has wrongly accepted the schema: treat every value as invalid
			l.s = never()
		}
		l.raw = nil
	})
	return l.s
}

// never returns a schema that no value matches.
func never() *Schema {
	s, err := Compile([]byte("false"))
	if err != nil {
		panic(err) // cannot happen: the schema is a constant
	}
	return s
}

// isPlain reports whether a document consists of common keywords with valid values, so that [Compile] certainly accepts it. It may return
// false for a document that [Compile] accepts.
func isPlain(doc any, draft *jsonschema.Draft) bool {
	root, ok := doc.(map[string]any)
	if !ok {
		return false
	}
	p := plain{}
	if defs, has := root["$defs"]; has {
		if p.defs, ok = defs.(map[string]any); !ok || draft != jsonschema.Draft2020 {
			return false
		}
	}
	for key, v := range root {
		if !p.rootKeyword(key, v) {
			return false
		}
	}
	state := map[string]bool{}
	for name := range p.defs {
		if !p.ends(name, state) {
			return false
		}
	}
	return p.endsIn(root, state)
}

// plain checks the schemas of one document for isPlain.
type plain struct {
	defs map[string]any // $defs of the root schema
}

// rootKeyword reports whether the value of one keyword of the root schema is valid.
func (p *plain) rootKeyword(key string, v any) bool {
	switch key {
	case "$schema":
		_, ok := v.(string) // read has checked that it names a known draft
		return ok
	case "$defs":
		return p.schemas(v)
	}
	return p.keyword(key, v)
}

// schema reports whether a schema below the root is valid.
func (p *plain) schema(v any) bool {
	m, ok := v.(map[string]any)
	if !ok {
		_, ok = v.(bool)
		return ok
	}
	for key, val := range m {
		if !p.keyword(key, val) {
			return false
		}
	}
	return true
}

// keyword reports whether the value of one keyword is valid.
func (p *plain) keyword(key string, v any) bool {
	switch key {
	case "title", "description", "$comment", "format":
		_, ok := v.(string)
		return ok
	case "default", "const":
		return true
	case "enum", "examples":
		_, ok := v.([]any)
		return ok
	case "uniqueItems", "readOnly", "writeOnly":
		_, ok := v.(bool)
		return ok
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		_, ok := v.(json.Number)
		return ok
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties":
		n, ok := v.(json.Number)
		return ok && len(n) <= 9 && !strings.ContainsFunc(string(n), func(r rune) bool { return r < '0' || r > '9' })
	case "type":
		return isType(v)
	case "required":
		names, ok := v.([]any)
		return ok && distinct(names, func(string) bool { return true })
	case "properties":
		return p.schemas(v)
	case "items", "additionalProperties":
		return p.schema(v)
	case "anyOf", "oneOf", "allOf":
		list, ok := v.([]any)
		return ok && len(list) > 0 && !slices.ContainsFunc(list, func(e any) bool { return !p.schema(e) })
	case "$ref":
		_, ok := p.target(v)
		return ok
	default:
		return false
	}
}

// schemas reports whether v is an object whose values are schemas.
func (p *plain) schemas(v any) bool {
	m, ok := v.(map[string]any)
	if !ok {
		return false
	}
	for _, e := range m {
		if !p.schema(e) {
			return false
		}
	}
	return true
}

var definition = lazy.Regexp(`^#/\$defs/([\w.-]+)$`)

// target returns the name in $defs that a reference points to. ok is false for other references.
func (p *plain) target(v any) (string, bool) {
	ref, _ := v.(string)
	m := definition().FindStringSubmatch(ref)
	if m == nil {
		return "", false
	}
	_, ok := p.defs[m[1]]
	return m[1], ok
}

// ends reports whether the schemas that a definition applies to the same value never lead back to that definition. state is true for
// definitions that are known to end, and false for those in progress.
func (p *plain) ends(name string, state map[string]bool) bool {
	if done, seen := state[name]; seen {
		return done
	}
	state[name] = false
	state[name] = p.endsIn(p.defs[name], state)
	return state[name]
}

func (p *plain) endsIn(v any, state map[string]bool) bool {
	m, _ := v.(map[string]any)
	if ref, has := m["$ref"]; has {
		if name, ok := p.target(ref); !ok || !p.ends(name, state) {
			return false
		}
	}
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		list, _ := m[key].([]any)
		for _, e := range list {
			if !p.endsIn(e, state) {
				return false
			}
		}
	}
	return true
}

var typeNames = strings.Fields("array boolean integer null number object string")

// isType reports whether v is the name of a type, or a list of distinct names of types.
func isType(v any) bool {
	known := func(s string) bool { return slices.Contains(typeNames, s) }
	if s, ok := v.(string); ok {
		return known(s)
	}
	list, ok := v.([]any)
	return ok && len(list) > 0 && distinct(list, known)
}

// distinct reports whether all elements are strings for which allowed returns true, without duplicates.
func distinct(list []any, allowed func(string) bool) bool {
	seen := make(map[string]bool, len(list))
	for _, e := range list {
		s, ok := e.(string)
		if !ok || seen[s] || !allowed(s) {
			return false
		}
		seen[s] = true
	}
	return true
}
