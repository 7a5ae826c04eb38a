package connect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// JSON is JSON without comments. An edit leaves the order of members and the indentation unchanged.
var JSON = &Format{Name: "JSON", decode: decodeJSON, edit: editJSON}

func decodeJSON(text []byte) (map[string]any, error) {
	n, err := parseJSON(text)
	if err != nil {
		return nil, err
	}
	return n.tree().(map[string]any), nil
}

// A node is a JSON value. Its members are ordered.
type node struct {
	object, list bool
	names        []string // names of the members of an object
	values       []*node  // values of the members of an object, or elements of a list
	scalar       any      // other values: string, json.Number, bool or nil
}

func parseJSON(text []byte) (*node, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return &node{object: true}, nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	n, err := parseNode(d)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is text after the value")
	}
	if !n.object {
		return nil, errors.New("it is not an object")
	}
	return n, nil
}

func parseNode(d *json.Decoder) (*node, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	n := &node{}
	delim, ok := t.(json.Delim)
	if !ok {
		n.scalar = t
		return n, nil
	}
	n.object, n.list = delim == '{', delim == '['
	for d.More() {
		if n.object {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			if n.member(name.(string)) != nil {
				return nil, fmt.Errorf("the member %q is there twice", name)
			}
			n.names = append(n.names, name.(string))
		}
		value, err := parseNode(d)
		if err != nil {
			return nil, err
		}
		n.values = append(n.values, value)
	}
	_, err = d.Token()
	return n, err
}

func (n *node) member(name string) *node {
	for i, have := range n.names {
		if have == name {
			return n.values[i]
		}
	}
	return nil
}

// tree returns the value in the form of [Format.Decode]: maps, lists and scalars.
func (n *node) tree() any {
	switch {
	case n.object:
		m := map[string]any{}
		for i, name := range n.names {
			m[name] = n.values[i].tree()
		}
		return m
	case n.list:
		l := make([]any, len(n.values))
		for i, v := range n.values {
			l[i] = v.tree()
		}
		return l
	}
	return n.scalar
}

// MarshalJSON implements json.Marshaler.
func (n *node) MarshalJSON() ([]byte, error) {
	if !n.object && !n.list {
		return marshal(n.scalar)
	}
	open, end := byte('['), byte(']')
	if n.object {
		open, end = '{', '}'
	}
	b := []byte{open}
	for i, v := range n.values {
		if i > 0 {
			b = append(b, ',')
		}
		if n.object {
			name, err := marshal(n.names[i])
			if err != nil {
				return nil, err
			}
			b = append(append(b, name...), ':')
		}
		value, err := v.MarshalJSON()
		if err != nil {
			return nil, err
		}
		b = append(b, value...)
	}
	return append(b, end), nil
}

// marshal is json.Marshal without HTML escapes.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}

// remove removes the value at a path, if it exists.
func (n *node) remove(path []string) {
	last := len(path) - 1
	of, value := n.at(path[:last]), n.at(path)
	if value == nil {
		return
	}
	i := slices.Index(of.values, value)
	of.values = slices.Delete(of.values, i, i+1)
	if of.object {
		of.names = slices.Delete(of.names, i, i+1)
	}
}

// set sets the value at a path and creates the objects and lists on the way.
func (n *node) set(path []string, value *node) {
	if len(path) == 0 {
		*n = *value
		return
	}
	if name, selected, ok := selector(path[0]); ok && !n.object {
		if v := n.element(path[0]); v != nil {
			v.set(path[1:], value)
			return
		}
		n.list = true
		v := &node{object: true, names: []string{name}, values: []*node{{scalar: selected}}}
		n.values = append(n.values, v)
		v.set(path[1:], value)
		return
	}
	n.object = true
	m := n.member(path[0])
	if m == nil {
		m = &node{}
		n.names, n.values = append(n.names, path[0]), append(n.values, m)
	}
	m.set(path[1:], value)
}

func editJSON(text []byte, entries []Entry) ([]byte, error) {
	n, err := parseJSON(text)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.Value == Absent {
			n.remove(e.Path)
			continue
		}
		raw, err := marshal(e.Value)
		if err != nil {
			return nil, err
		}
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		value, err := parseNode(d)
		if err != nil {
			return nil, err
		}
		n.set(e.Path, value)
	}
	return n.text(indentation(text))
}

// indentation returns the white space before the first indented line, or two blanks if no line is indented.
func indentation(text []byte) string {
	for line := range strings.Lines(string(text)) {
		if rest := strings.TrimLeft(line, " \t"); rest != line && strings.TrimSpace(rest) != "" {
			return line[:len(line)-len(rest)]
		}
	}
	return "  "
}
