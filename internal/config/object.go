package config

import (
	"encoding/json"
	"errors"
	"strings"

	"go.yaml.in/yaml/v3"
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
