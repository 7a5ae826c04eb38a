// Package yamljson converts YAML to JSON.
package yamljson

import (
	"encoding/json"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// Append appends a node as JSON, with the members in order. Numbers are unchanged if they are valid JSON, and dates are strings. It
// returns an error, such as that of an alias or of a node that is nested deeper than depth, together with the line of the error.
func Append(dst []byte, n *yaml.Node, depth int) (text []byte, line int, err error) {
	if depth == 0 {
		return nil, n.Line, errors.New("it is nested too deeply")
	}
	switch n.Kind {
	case yaml.MappingNode:
		dst = append(dst, '{')
		seen := map[string]bool{}
		for i := 0; i+1 < len(n.Content); i += 2 { // keys and values in turn
			k := n.Content[i]
			if k.Kind != yaml.ScalarNode || k.Tag == "!!merge" {
				return nil, k.Line, errors.New("a key is a plain word")
			}
			if seen[k.Value] {
				return nil, k.Line, fmt.Errorf("%.100q stands twice", k.Value)
			}
			seen[k.Value] = true
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, line, err = Append(append(rawjson.AppendQuote(dst, k.Value), ':'), n.Content[i+1], depth-1); err != nil {
				return nil, line, err
			}
		}
		return append(dst, '}'), 0, nil
	case yaml.SequenceNode:
		dst = append(dst, '[')
		for i, item := range n.Content {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, line, err = Append(dst, item, depth-1); err != nil {
				return nil, line, err
			}
		}
		return append(dst, ']'), 0, nil
	case yaml.ScalarNode:
		b, ok := scalar(n)
		if !ok {
			return nil, n.Line, fmt.Errorf("%.100q is not a value that JSON has", n.Value)
		}
		return append(dst, b...), 0, nil
	}
	return nil, n.Line, errors.New("anchors and aliases are not read here")
}

// scalar returns the JSON of a scalar. ok is false if JSON has no such value.
func scalar(n *yaml.Node) (text []byte, ok bool) {
	tag := n.ShortTag()
	if (tag == "!!int" || tag == "!!float") && json.Valid([]byte(n.Value)) {
		return []byte(n.Value), true
	}
	var v any = n.Value
	var err error
	switch tag {
	case "!!null":
		v = nil
	case "!!int", "!!float", "!!bool":
		err = n.Decode(&v)
	}
	text, bad := rawjson.Marshal(v)
	return text, err == nil && bad == nil
}
