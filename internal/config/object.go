package config

import (
	"encoding/json"
	"errors"
	"strings"
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
