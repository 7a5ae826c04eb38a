package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// maxObjectDepth is the largest depth of a mapping with any content.
const maxObjectDepth = 32

// parseObject parses a mapping with any content, which is stored as a JSON object. For an empty text it returns nil.
func parseObject(s string) (any, error) {
	trimmed := strings.TrimSpace(s)
	switch {
	case trimmed == "":
		return json.RawMessage(nil), nil
	case trimmed[0] != '{' || !json.Valid([]byte(s)):
		return nil, errors.New("wants a mapping, or a JSON object")
	}
	return json.RawMessage(s), nil
}

// objectNode returns the YAML node of a JSON object.
func objectNode(b []byte) *yaml.Node {
	var doc yaml.Node
	if err := yaml.Unmarshal(b, &doc); err != nil || len(doc.Content) == 0 {
		return &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
	}
	return doc.Content[0]
}

// appendJSON appends a node of the file as JSON, with the members in order. Numbers are unchanged if they are valid JSON.
func appendJSON(dst []byte, n *yaml.Node, depth int) ([]byte, error) {
	if depth == 0 {
		return nil, errors.New("is nested too deeply")
	}
	switch n.Kind {
	case yaml.MappingNode:
		return appendMapping(dst, n, depth)
	case yaml.SequenceNode:
		dst = append(dst, '[')
		for i, item := range n.Content {
			if i > 0 {
				dst = append(dst, ',')
			}
			var err error
			if dst, err = appendJSON(dst, item, depth-1); err != nil {
				return nil, err
			}
		}
		return append(dst, ']'), nil
	case yaml.ScalarNode:
		return appendScalar(dst, n)
	default:
		return nil, errors.New("anchors and aliases are not read here")
	}
}

func appendMapping(dst []byte, n *yaml.Node, depth int) ([]byte, error) {
	dst = append(dst, '{')
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		switch {
		case k.Kind != yaml.ScalarNode || k.Tag == "!!merge":
			return nil, errors.New("a key is a plain word")
		case seen[k.Value]:
			return nil, errors.New(quote(k.Value) + " stands twice")
		}
		seen[k.Value] = true
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(rawjson.AppendQuote(dst, k.Value), ':')
		var err error
		if dst, err = appendJSON(dst, n.Content[i+1], depth-1); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

func appendScalar(dst []byte, n *yaml.Node) ([]byte, error) {
	switch n.Tag {
	case "!!null":
		return append(dst, "null"...), nil
	case "!!bool":
		var b bool
		if err := n.Decode(&b); err != nil {
			return nil, fmt.Errorf("%s is neither true nor false", quote(n.Value))
		}
		return strconv.AppendBool(dst, b), nil
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) {
			return append(dst, n.Value...), nil
		}
		var v any
		if n.Decode(&v) == nil {
			if b, err := json.Marshal(v); err == nil {
				return append(dst, b...), nil
			}
		}
		return nil, fmt.Errorf("%s is not a number that JSON has", quote(n.Value))
	default:
		return rawjson.AppendQuote(dst, n.Value), nil
	}
}
