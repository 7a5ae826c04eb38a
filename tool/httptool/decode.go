package httptool

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/yamljson"
)

// Limits of a document.
const (
	maxNesting = 200     // depth, including that of the targets of aliases
	maxMembers = 100_000 // of one object
	maxAliased = 100_000 // values that aliases stand for
	// maxAliasedBytes is the maximum size of the texts that aliases stand for, in bytes, because each alias becomes a copy.
	maxAliasedBytes = MaxDocumentBytes
)

// decodeDocument returns a JSON or YAML document as plain values. A JSON document must be strict, because two readers of a document with a
// duplicate key could see different operations.
func decodeDocument(b []byte) (any, error) {
	if i := rawjson.SkipSpace(b, 0); i < len(b) && b[i] == '{' {
		if _, err := rawjson.Scan(b, i); err == nil {
			if err := rawjson.Check(b, rawjson.Limits{MaxDepth: maxNesting, MaxKeys: maxMembers}); err != nil {
				return nil, err
			}
			return rawjson.Value(b)
		}
	}
	var root yaml.Node
	if err := yaml.Unmarshal(b, &root); err != nil {
		return nil, err
	}
	y := fromYAML{left: maxAliased, bytes: maxAliasedBytes, open: map[*yaml.Node]bool{}}
	return y.value(&root, 0)
}

// fromYAML converts YAML nodes to plain values.
type fromYAML struct {
	left, bytes int                 // remaining amounts of maxAliased and maxAliasedBytes
	open        map[*yaml.Node]bool // targets of the aliases around the current node; if not empty, the node is part of an alias
}

// spend subtracts a text within an alias from the remaining bytes.
func (y *fromYAML) spend(n *yaml.Node) error {
	if y.bytes -= len(n.Value); y.bytes < 0 {
		return fmt.Errorf("line %d: the aliases of the document stand for more than %d bytes of text", n.Line, maxAliasedBytes)
	}
	return nil
}

// value returns the plain value of a node at a depth.
func (y *fromYAML) value(n *yaml.Node, depth int) (any, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("it is nested deeper than %d", maxNesting)
	}
	if len(y.open) > 0 {
		if y.left--; y.left < 0 {
			return nil, fmt.Errorf("line %d: the aliases of the document stand for more than %d values", n.Line, maxAliased)
		}
		if err := y.spend(n); err != nil {
			return nil, err
		}
	}
	switch n.Kind {
	case yaml.DocumentNode:
		if len(n.Content) == 1 {
			return y.value(n.Content[0], depth+1)
		}
	case yaml.AliasNode:
		if y.open[n.Alias] {
			return nil, errors.New("an alias of the document holds itself")
		}
		y.open[n.Alias] = true
		defer delete(y.open, n.Alias)
		return y.value(n.Alias, depth+1)
	case yaml.SequenceNode:
		out := make([]any, len(n.Content))
		for i, c := range n.Content {
			var err error
			if out[i], err = y.value(c, depth+1); err != nil {
				return nil, err
			}
		}
		return out, nil
	case yaml.MappingNode:
		return y.mapping(n, depth)
	case yaml.ScalarNode:
		return yamlScalar(n)
	}
	return nil, nil
}

func (y *fromYAML) mapping(n *yaml.Node, depth int) (map[string]any, error) {
	out := make(map[string]any, len(n.Content)/2)
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		isAlias := key.Kind == yaml.AliasNode
		if isAlias {
			key = key.Alias
		}
		if isAlias || len(y.open) > 0 {
			if err := y.spend(key); err != nil {
				return nil, err
			}
		}
		if key.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("line %d: a key is not a text", key.Line)
		}
		if key.ShortTag() == "!!merge" {
			merged = append(merged, value)
			continue
		}
		if _, twice := out[key.Value]; twice {
			return nil, fmt.Errorf("line %d: the key %.100q stands twice", key.Line, key.Value)
		}
		var err error
		if out[key.Value], err = y.value(value, depth+1); err != nil {
			return nil, err
		}
	}
	for _, m := range merged {
		if err := y.merge(out, m, depth+1); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// merge adds the members of the mapping n, or of the mappings in the list n, that out does not have.
func (y *fromYAML) merge(out map[string]any, n *yaml.Node, depth int) error {
	v, err := y.value(n, depth)
	if err != nil {
		return err
	}
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, e := range list {
		from, ok := e.(map[string]any)
		if !ok {
			return fmt.Errorf("line %d: what is merged is not a mapping", n.Line)
		}
		for name, value := range from {
			if _, has := out[name]; !has {
				out[name] = value
			}
		}
	}
	return nil
}

// yamlScalar returns the value of a scalar: nil, a bool, a [json.Number] or a string. Dates are strings.
func yamlScalar(n *yaml.Node) (any, error) {
	b, line, err := yamljson.Append(nil, n, 1)
	if err != nil {
		return nil, fmt.Errorf("line %d: %w", line, err)
	}
	return rawjson.Value(b)
}

// shortest returns v with each number in the shortest form of its value: 1.5 for 1.50. It does not change v.
func shortest(v any) any {
	switch v := v.(type) {
	case json.Number:
		return shortestNumber(v)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = shortest(e)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, e := range v {
			out[name] = shortest(e)
		}
		return out
	}
	return v
}

// maxShortened is the maximum length of a number that is shortened, in bytes.
const maxShortened = 400

// shortestNumber returns n in its shortest form, or n itself if that form is not known to have the same value.
func shortestNumber(n json.Number) json.Number {
	f, err := n.Float64()
	if err != nil || len(n) > maxShortened {
		return n
	}
	if f == 0 && !isZero(n) { // the comparison as a fraction would be slow: 25 ms for 1e-999999
		return n
	}
	short, err := json.Marshal(f)
	if err != nil || string(short) == string(n) {
		return n
	}
	exact, _ := new(big.Rat).SetString(string(n))
	rounded, _ := new(big.Rat).SetString(string(short))
	if exact == nil || rounded == nil || exact.Cmp(rounded) != 0 {
		return n
	}
	return json.Number(short)
}

// isZero reports whether the digits before the exponent of a number are zeros.
func isZero(n json.Number) bool {
	mantissa, _, _ := strings.Cut(strings.ToLower(string(n)), "e")
	return strings.Trim(mantissa, "-.0") == ""
}
