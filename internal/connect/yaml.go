package connect

import (
	"bytes"
	"errors"
	"io"

	"go.yaml.in/yaml/v3"
)

// YAML is the YAML format. An edit leaves comments and the order of keys unchanged. setYAML, elementYAML and memberYAML are also used for
// JSON, whose files are edited as trees of the same nodes: see [JSON].
var YAML = &Format{Name: "YAML", decode: decodeYAML, edit: editYAML}

func decodeYAML(text []byte) (map[string]any, error) {
	var tree map[string]any
	d := yaml.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&tree); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		return nil, errors.New("it has more than one document")
	}
	if tree == nil { // the text is empty, or the document is null
		tree = map[string]any{}
	}
	return tree, nil
}

func editYAML(text []byte, entries []Entry) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) == 0 {
		doc = yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{{Kind: yaml.MappingNode}}}
	}
	for _, e := range entries {
		if e.Value == Absent {
			return nil, ErrNotEdited // no agent has an entry in YAML that is to be removed
		}
		var value yaml.Node
		if err := value.Encode(e.Value); err != nil {
			return nil, err
		}
		if err := setYAML(doc.Content[0], e.Path, &value); err != nil {
			return nil, err
		}
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	err := errors.Join(enc.Encode(&doc), enc.Close())
	return b.Bytes(), err
}

// setYAML sets the value at a path and creates the objects and lists on the path. If the path has a value of another kind, other than null,
// it changes nothing and returns ErrNotEdited.
func setYAML(n *yaml.Node, path []string, value *yaml.Node) error {
	if len(path) == 0 {
		value.HeadComment, value.LineComment, value.FootComment = n.HeadComment, n.LineComment, n.FootComment
		*n = *value
		return nil
	}
	kind := yaml.MappingNode
	if selectsInList(path) {
		kind = yaml.SequenceNode
	}
	if n.Kind != kind {
		if n.ShortTag() != "!!null" { // a new node has this tag, too
			return ErrNotEdited
		}
		n.Kind, n.Tag, n.Value = kind, "", ""
	}
	if kind == yaml.SequenceNode {
		e := elementYAML(n, path[0])
		if e == nil {
			name, selected, _ := selector(path[0])
			e = &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{stringYAML(name), stringYAML(selected)}}
			n.Content = append(n.Content, e)
		}
		return setYAML(e, path[1:], value)
	}
	m := memberYAML(n, path[0])
	if m == nil {
		m = &yaml.Node{}
		n.Content = append(n.Content, stringYAML(path[0]), m)
	}
	return setYAML(m, path[1:], value)
}

// elementYAML returns the first object of a list that a path element `[name=value]` selects, or nil.
func elementYAML(n *yaml.Node, element string) *yaml.Node {
	name, value, ok := selector(element)
	for _, e := range n.Content {
		m := memberYAML(e, name)
		isText := m != nil && (m.Tag != "" || m.Alias != nil) // of the values of a JSON file, only strings have a tag
		if ok && isText && m.Value == value {
			return e
		}
	}
	return nil
}

func stringYAML(s string) *yaml.Node {
	var n yaml.Node
	n.SetString(s)
	return &n
}

// memberYAML returns the value of a member of an object, or nil if n has no such member or is not an object.
func memberYAML(n *yaml.Node, name string) *yaml.Node {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}
