// Package yamljson converts YAML to JSON.
package yamljson

import (
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// Append appends a node as JSON, with the members in order. Numbers are unchanged if they are valid JSON, and dates are strings. Errors, such
// as that of an alias or of a node that is nested deeper than depth, begin with the line.
func Append(dst []byte, n *yaml.Node, depth int) ([]byte, error) {
	var err error
	switch {
	case depth == 0:
		return nil, fmt.Errorf("line %d: it is nested too deeply", n.Line)
	case n.Kind == yaml.MappingNode:
		dst = append(dst, '{')
		seen := map[string]bool{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := n.Content[i]
			switch {
			case k.Kind != yaml.ScalarNode || k.Tag == "!!merge":
				return nil, fmt.Errorf("line %d: a key is a plain word", k.Line)
			case seen[k.Value]:
				return nil, fmt.Errorf("line %d: %.100q stands twice", k.Line, k.Value)
			}
			seen[k.Value] = true
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = Append(append(rawjson.AppendQuote(dst, k.Value), ':'), n.Content[i+1], depth-1); err != nil {
				return nil, err
			}
		}
		return append(dst, '}'), nil
	case n.Kind == yaml.SequenceNode:
		dst = append(dst, '[')
		for i, item := range n.Content {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = Append(dst, item, depth-1); err != nil {
				return nil, err
			}
		}
		return append(dst, ']'), nil
	case n.Kind != yaml.ScalarNode:
		return nil, fmt.Errorf("line %d: anchors and aliases are not read here", n.Line)
	}
	var v any = n.Value
	switch n.ShortTag() {
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) {
			return append(dst, n.Value...), nil
		}
		fallthrough
	case "!!null", "!!bool":
		err = n.Decode(&v)
	}
	b, bad := rawjson.Marshal(v)
	if err != nil || bad != nil {
		return nil, fmt.Errorf("line %d: %.100q is not a value that JSON has", n.Line, n.Value)
	}
	return append(dst, b...), nil
}
