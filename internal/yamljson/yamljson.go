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
		return appendObject(dst, n, depth)
	case yaml.SequenceNode:
		return appendList(dst, n, depth)
	case yaml.ScalarNode:
		return appendScalar(dst, n)
	}
	return nil, n.Line, errors.New("anchors and aliases are not read here")
}

// appendObject appends a mapping; its content are keys and values in turn.
func appendObject(dst []byte, n *yaml.Node, depth int) (text []byte, line int, err error) {
	dst = append(dst, '{')
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode || key.Tag == "!!merge" {
			return nil, key.Line, errors.New("a key is a plain word")
		}
		if seen[key.Value] {
			return nil, key.Line, fmt.Errorf("%.100q stands twice", key.Value)
		}
		seen[key.Value] = true
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(rawjson.AppendQuote(dst, key.Value), ':')
		if dst, line, err = Append(dst, n.Content[i+1], depth-1); err != nil {
			return nil, line, err
		}
	}
	return append(dst, '}'), 0, nil
}

func appendList(dst []byte, n *yaml.Node, depth int) (text []byte, line int, err error) {
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
}

func appendScalar(dst []byte, n *yaml.Node) (text []byte, line int, err error) {
	tag := n.ShortTag()
	if (tag == "!!int" || tag == "!!float") && json.Valid([]byte(n.Value)) {
		return append(dst, n.Value...), 0, nil
	}
	var v any = n.Value
	switch tag {
	case "!!null":
		v = nil
	case "!!int", "!!float", "!!bool":
		err = n.Decode(&v)
	}
	b, bad := rawjson.Marshal(v)
	if err != nil || bad != nil {
		return nil, n.Line, fmt.Errorf("%.100q is not a value that JSON has", n.Value)
	}
	return append(dst, b...), 0, nil
}
