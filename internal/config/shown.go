package config

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A Shown is one value of a configuration, without secrets.
type Shown struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
}

// Shown returns all values of the configuration without secrets, in the order of [Config.YAML].
func (c *Config) Shown() ([]Shown, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(c.YAML(), &doc); err != nil {
		return nil, fmt.Errorf("reading the configuration in force: %w", err)
	}
	var rows []Shown
	var walk func(key string, n *yaml.Node)
	walk = func(key string, n *yaml.Node) {
		if n.Kind == yaml.MappingNode && len(n.Content) > 0 {
			for i := 0; i+1 < len(n.Content); i += 2 {
				walk(strings.TrimPrefix(key+"."+n.Content[i].Value, "."), n.Content[i+1])
			}
			return
		}
		origin := c.Origin(key)
		// An entry of a table has the origin of the table. Keys of a struct that are not set have their defaults.
		for up := above(key); origin == "default" && up != "" && !c.entries[up]; up = above(up) {
			origin = c.Origin(up)
		}
		rows = append(rows, Shown{key, valueText(n), origin})
	}
	for _, n := range doc.Content {
		walk("", n)
	}
	return rows, nil
}

// valueText returns a value on one line.
func valueText(n *yaml.Node) string {
	switch n.Kind {
	case yaml.ScalarNode:
		return n.Value
	case yaml.SequenceNode:
		var items []string
		for _, item := range n.Content {
			items = append(items, item.Value)
		}
		return strings.Join(items, ",")
	default:
		return ""
	}
}
