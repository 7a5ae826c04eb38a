package schema

import (
	"bytes"
	"encoding/json"

	"github.com/lathe-run/lathe/internal/jsonschema"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// Most values that are not valid are objects in which one or two members are wrong. A diagnosis
// checks those members alone, and the object as such with its members' values left out. What is wrong
// with the parts is what is wrong with the whole.

// A diagnosis collects what is wrong with the parts of a value.
type diagnosis struct {
	metadata *metadata
	path     []string
	found    []Violation
}

// diagnose returns what check returns, for a value that is JSON within the bounds.
func (s *Schema) diagnose(value []byte) []Violation {
	d := diagnosis{metadata: s.metadata}
	if !d.value(s.fast, value) {
		return s.check(value)
	}
	return tidy(d.found)
}

// value diagnoses a value that n may not admit. It returns false if it cannot diagnose the value.
func (d *diagnosis) value(n *node, raw []byte) bool {
	if raw[0] == '{' && n.shell != nil {
		return d.object(n, raw)
	}
	v, ok := decode(raw)
	if ok {
		d.check(n.from, v)
	}
	return ok
}

// check notes what is wrong with a value.
func (d *diagnosis) check(s *jsonschema.Schema, v any) {
	d.found = appendViolations(d.found, d.path, s.Validate(v), d.metadata)
}

func (d *diagnosis) object(n *node, raw []byte) bool {
	r := n.object
	var seen uint64
	count, strange := 0, false
	for key, value := range rawjson.Members(raw) {
		name, ok := plainName(key)
		if !ok {
			return false
		}
		count++
		known := false
		if m := r.find(name); m != nil {
			seen |= m.required
			if m.value != nil {
				known = true
				if !d.member(m.value, name, value) {
					return false
				}
			}
		}
		for _, p := range r.patterns {
			if p.name.match(name) {
				known = true
				if !d.member(p.value, name, value) {
					return false
				}
			}
		}
		switch {
		case known || r.rest == nil:
		case r.rest.from == nil:
			strange = true
		case !d.member(r.rest, name, value):
			return false
		}
	}
	if seen == r.required && !strange && count >= r.min && (r.max < 0 || count <= r.max) {
		return true
	}
	names := make(map[string]any, count)
	for key := range rawjson.Members(raw) {
		name, _ := plainName(key)
		names[string(name)] = nil
	}
	d.check(n.shell, names)
	return true
}

// member diagnoses the value of one member.
func (d *diagnosis) member(n *node, name, value []byte) bool {
	if v, _ := n.decide(value); v == yes {
		return true
	}
	d.path = append(d.path, string(name))
	ok := d.value(n, value)
	d.path = d.path[:len(d.path)-1]
	return ok
}

// plainName returns what a member's name stands for.
func plainName(key []byte) (name []byte, ok bool) {
	if bytes.IndexByte(key, '\\') < 0 {
		return key[1 : len(key)-1], true
	}
	name, err := rawjson.AppendUnquote(nil, key)
	return name, err == nil
}

// newShell returns s with nothing asked of the values of members, or nil where s asks more of an
// object than type, names and their number.
func (n *node) newShell(s *jsonschema.Schema) *jsonschema.Schema {
	if n.object == nil || (n.allow&isObject) == 0 || n.unsure&isObject != 0 || n.constant != nil || n.enum != nil ||
		len(n.all)+len(n.any)+len(n.one) > 0 || n.not != nil || n.test != nil {
		return nil
	}
	shell, anything := s.Empty(), s.Empty()
	yes := true
	anything.Bool = &yes
	shell.Required, shell.MinProperties, shell.MaxProperties = s.Required, s.MinProperties, s.MaxProperties
	if only, ok := s.AdditionalProperties.(bool); ok {
		shell.AdditionalProperties = only
	}
	shell.Properties = make(map[string]*jsonschema.Schema, len(s.Properties))
	for name := range s.Properties {
		shell.Properties[name] = anything
	}
	shell.PatternProperties = make(map[jsonschema.Regexp]*jsonschema.Schema, len(s.PatternProperties))
	for re := range s.PatternProperties {
		shell.PatternProperties[re] = anything
	}
	return shell
}

// decode builds a value as package jsonschema checks it.
func decode(raw []byte) (v any, ok bool) {
	switch raw[0] {
	case 'n':
		return nil, true
	case 't', 'f':
		return raw[0] == 't', true
	case '"':
		text, err := rawjson.AppendUnquote(nil, raw)
		return string(text), err == nil
	case '{', '[':
		v, err := unmarshal(raw)
		return v, err == nil
	}
	return json.Number(raw), true
}
