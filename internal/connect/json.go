package connect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// JSON is JSON without comments. An edit leaves the order of members and the indentation unchanged: it works on a tree of YAML nodes, in
// which an object is a mapping whose Content has the name and the value of each member in turn.
var JSON = &Format{Name: "JSON", decode: decodeJSON, edit: editJSON}

func decodeJSON(text []byte) (map[string]any, error) {
	n, err := parseJSON(text)
	if err != nil {
		return nil, err
	}
	return treeJSON(n).(map[string]any), nil
}

// parseJSON returns an object as a mapping node.
func parseJSON(text []byte) (*yaml.Node, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return &yaml.Node{Kind: yaml.MappingNode}, nil
	}
	d := decoder(text)
	n, err := parseNode(d, maxDepth)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is text after the value")
	}
	if n.Kind != yaml.MappingNode {
		return nil, errors.New("it is not an object")
	}
	return n, nil
}

// maxDepth is the maximum depth of nested arrays and objects in a file. It is that of encoding/json.
const maxDepth = 10_000

// parseNode returns a JSON value as a node. Scalars other than strings have their JSON text as the value. It returns an error if arrays and
// objects are nested deeper than depth.
func parseNode(d *json.Decoder, depth int) (*yaml.Node, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	n := &yaml.Node{Kind: yaml.ScalarNode}
	switch t := t.(type) {
	case json.Delim:
		if depth == 0 {
			return nil, fmt.Errorf("it has more than %d levels", maxDepth)
		}
		n.Kind = yaml.SequenceNode
		if t == '{' {
			n.Kind = yaml.MappingNode
		}
		return n, parseContent(d, n, depth-1)
	case string:
		return stringYAML(t), nil
	default:
		text, err := json.Marshal(t)
		n.Value = string(text)
		return n, err
	}
}

// parseContent appends the elements of an array, or the names and values of an object, to the Content of n.
func parseContent(d *json.Decoder, n *yaml.Node, depth int) error {
	for d.More() {
		if n.Kind == yaml.MappingNode {
			name, err := parseNode(d, depth) // a string: the decoder accepts nothing else
			if err != nil {
				return err
			}
			if memberYAML(n, name.Value) != nil {
				return fmt.Errorf("the member %q is there twice", name.Value)
			}
			n.Content = append(n.Content, name)
		}
		value, err := parseNode(d, depth)
		if err != nil {
			return err
		}
		n.Content = append(n.Content, value)
	}
	_, err := d.Token() // the closing mark
	return err
}

// treeJSON returns the value in the form of [Format.Decode]: maps, lists and scalars.
func treeJSON(n *yaml.Node) any {
	switch n.Kind {
	case yaml.MappingNode:
		m := map[string]any{}
		for i := 0; i < len(n.Content); i += 2 {
			m[n.Content[i].Value] = treeJSON(n.Content[i+1])
		}
		return m
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, e := range n.Content {
			list[i] = treeJSON(e)
		}
		return list
	}
	if n.Tag != "" {
		return n.Value
	}
	scalar, _ := rawjson.Value([]byte(n.Value)) // cannot fail: null, a boolean or a number
	return scalar
}

func decoder(text []byte) *json.Decoder {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d
}

// appendJSON appends the value as compact JSON.
func appendJSON(b []byte, n *yaml.Node) []byte {
	switch {
	case n.Tag != "":
		return rawjson.AppendQuote(b, n.Value)
	case n.Kind == yaml.ScalarNode:
		return append(b, n.Value...)
	}
	marks := "[,,]" // the opening mark, the mark before an element with an even index and with an odd one, and the closing mark
	if n.Kind == yaml.MappingNode {
		marks = "{,:}"
	}
	b = append(b, marks[0])
	for i, v := range n.Content {
		if i > 0 {
			b = append(b, marks[1+i%2])
		}
		b = appendJSON(b, v)
	}
	return append(b, marks[3])
}

// removeJSON removes the value at a path, if it exists.
func removeJSON(n *yaml.Node, path []string) {
	of, value := nodeAt(n, path[:len(path)-1]), nodeAt(n, path)
	if value == nil {
		return
	}
	from := slices.Index(of.Content, value)
	end := from + 1
	if of.Kind == yaml.MappingNode { // the name precedes the value
		from--
	}
	of.Content = slices.Delete(of.Content, from, end)
}

func editJSON(text []byte, entries []Entry) ([]byte, error) {
	n, err := parseJSON(text)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.Value == Absent {
			removeJSON(n, e.Path)
			continue
		}
		raw, err := rawjson.Marshal(e.Value)
		if err != nil {
			return nil, err
		}
		value, err := parseNode(decoder(raw), maxDepth)
		if err != nil {
			return nil, err
		}
		if err := setYAML(n, e.Path, value); err != nil {
			return nil, err
		}
	}
	return textJSON(n, indentation(text))
}

// indentation returns the white space before the first indented line, or two blanks if no line is indented.
func indentation(text []byte) string {
	for line := range strings.Lines(string(text)) {
		if rest := strings.TrimLeft(line, " \t"); rest != line && strings.TrimSpace(rest) != "" {
			return line[:len(line)-len(rest)]
		}
	}
	return "  "
}
