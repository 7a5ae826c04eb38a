package config

import (
	"bytes"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

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

// appendRows adds the value of each row in the section of its path.
func appendRows(root *yaml.Node, rows []row) {
	for _, r := range rows {
		if r.kind.omit && r.v.IsNil() {
			continue
		}
		n, path := root, strings.Split(r.path, ".")
		for _, section := range path[:len(path)-1] {
			n = child(n, section)
		}
		n.Content = append(n.Content, stringNode(r.last()), valueNode(r.kind, r.v))
	}
}

// child returns the mapping with a name, which it creates if necessary.
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

func valueNode(k *kind, v reflect.Value) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	switch k.shape {
	case list:
		n.Kind, n.Style = yaml.SequenceNode, yaml.FlowStyle
		for _, item := range k.items(v) {
			n.Content = append(n.Content, stringNode(item))
		}
	case table:
		for _, name := range namesIn(v) {
			n.Content = append(n.Content, stringNode(name), valueNode(k.values, v.MapIndex(reflect.ValueOf(name))))
		}
	case group:
		for _, name := range namesIn(v) {
			appendRows(child(n, name), rowsOf(v.MapIndex(reflect.ValueOf(name))))
		}
	case object:
		var doc yaml.Node
		if err := yaml.Unmarshal(v.Bytes(), &doc); err == nil && len(doc.Content) > 0 {
			return doc.Content[0]
		}
		n.Style = yaml.FlowStyle
	default:
		if n = stringNode(k.text(v)); !k.str {
			n.Tag = ""
		}
	}
	return n
}

// stringNode returns a scalar of type string: the encoder quotes it if YAML would parse it as another type.
func stringNode(s string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
}
