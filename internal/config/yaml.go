package config

import (
	"bytes"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// This file writes a configuration as YAML. The configuration is a list of rows: each has the path of a setting ("retention.mode"), its
// value v as a reflect.Value, and its kind, which says how the value is written (see kind.go).

// YAML returns the whole configuration as a file, with defaults. Secrets are shown as their references, or as "[redacted]" if the file
// contains the values.
func (c *Config) YAML() []byte {
	root := &yaml.Node{Kind: yaml.MappingNode}
	appendRows(root, c.rows())
	var buf bytes.Buffer
	enc := yaml.NewEncoder(&buf)
	enc.SetIndent(2)
	if err := enc.Encode(root); err != nil {
		panic("config: a tree of plain nodes has no YAML form: " + err.Error())
	}
	return buf.Bytes()
}

// appendRows adds the value of each row to root, in nested mappings: one for each part of its path but the last, which is the key. Unset
// values that cannot be written are left out.
func appendRows(root *yaml.Node, rows []row) {
	for _, r := range rows {
		if r.kind.omitUnset && r.v.IsNil() {
			continue
		}
		section, path := root, strings.Split(r.path, ".")
		for _, name := range path[:len(path)-1] {
			section = child(section, name)
		}
		section.Content = append(section.Content, stringNode(r.name()), valueNode(r.kind, r.v))
	}
}

// child returns the mapping with a name in the mapping n, which it creates if necessary. Content has keys and values in turn.
func child(n *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	m := &yaml.Node{Kind: yaml.MappingNode}
	n.Content = append(n.Content, stringNode(name), m)
	return m
}

// valueNode returns the node of a value of the kind k.
func valueNode(k *kind, v reflect.Value) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	switch k.shape {
	case list: // [a, b]
		n.Kind, n.Style = yaml.SequenceNode, yaml.FlowStyle
		for _, item := range k.items(v) {
			n.Content = append(n.Content, stringNode(item))
		}
	case table: // values under names
		for _, name := range namesIn(v) {
			n.Content = append(n.Content, stringNode(name), valueNode(k.values, v.MapIndex(reflect.ValueOf(name))))
		}
	case group: // structs with settings of their own under names
		for _, name := range namesIn(v) {
			appendRows(child(n, name), rowsOf(v.MapIndex(reflect.ValueOf(name))))
		}
	case object: // JSON, of which YAML is a superset; {} if it is empty
		var doc yaml.Node
		if err := yaml.Unmarshal(v.Bytes(), &doc); err == nil && len(doc.Content) > 0 {
			return doc.Content[0]
		}
		n.Style = yaml.FlowStyle
	default:
		n = stringNode(k.text(v))
		if !k.isString {
			n.Tag = "" // written without quotes, such as a number, a duration or true
		}
	}
	return n
}

// stringNode returns a scalar of type string: the encoder quotes it if YAML would parse it as another type.
func stringNode(s string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
}
