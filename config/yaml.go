package config

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// YAML returns the whole configuration as a file, defaults included. Keys and headers show their
// reference, or "[redacted]" where the file holds the value itself.
func (c *Config) YAML() []byte {
	root := &yaml.Node{Kind: yaml.MappingNode}
	rows := c.keys()
	appendRow(root, &rows[0])
	models := child(root, "models")
	for _, name := range slices.Sorted(maps.Keys(c.Models)) {
		entry := child(models, name)
		for _, k := range c.Models[name].keys() {
			appendRow(entry, &k)
		}
	}
	for i := range rows[1:] {
		appendRow(root, &rows[i+1])
	}
	var buf bytes.Buffer
	enc := yaml.NewEncoder(&buf)
	enc.SetIndent(2)
	if err := enc.Encode(root); err != nil {
		panic("config: a tree of plain nodes has no YAML form: " + err.Error())
	}
	return buf.Bytes()
}

// appendRow adds a row's value below the sections of its path.
func appendRow(n *yaml.Node, k *key) {
	if d, ok := k.v.(distinct); ok && d.list() == nil {
		return
	}
	if o, ok := k.v.(objectValue); ok && *o.p == nil && k.path == "schema" {
		return // {} would be any value, and unset is a text
	}
	path := strings.Split(k.path, ".")
	for _, section := range path[:len(path)-1] {
		n = child(n, section)
	}
	n.Content = append(n.Content, stringNode(k.last()), valueNode(k.v))
}

// child returns the mapping under a name, made if need be.
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

func valueNode(v value) *yaml.Node {
	switch v := v.(type) {
	case lister:
		n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, item := range v.list() {
			n.Content = append(n.Content, stringNode(item))
		}
		return n
	case tabler:
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, e := range v.entries() {
			n.Content = append(n.Content, stringNode(e.name), valueNode(e.v))
		}
		return n
	case grouper:
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, e := range v.groups() {
			entry := child(n, e.name)
			for _, k := range e.rows {
				appendRow(entry, &k)
			}
		}
		return n
	case objectValue:
		return v.node()
	case *fn:
		if !v.str {
			return &yaml.Node{Kind: yaml.ScalarNode, Value: v.text()}
		}
	}
	return stringNode(v.text())
}

// stringNode is a scalar that stays text: the writer quotes it where it would read as something else.
func stringNode(s string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
}
