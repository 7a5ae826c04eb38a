package eval

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/lathe-run/lathe/internal/lazy"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// A syntaxError describes a mistake in a suite and its position.
type syntaxError struct {
	File    string
	Line    int // 0: no particular line
	Message string
}

// Error returns "file:line: message".
func (e *syntaxError) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Message
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message)
}

// A decoder reads the nodes of a YAML file into values. Its errors name the file and the line; it does not change.
type decoder struct{ file string }

var yamlLine = lazy.Regexp(`^yaml: (?:line (\d+): )?`)

func (d *decoder) yamlError(err error) error {
	e := &syntaxError{File: d.file, Message: "not YAML: " + err.Error()}
	if m := yamlLine().FindStringSubmatch(err.Error()); m != nil {
		e.Line, _ = strconv.Atoi(m[1]) // 0 if the message has no line
		e.Message = "not YAML: " + err.Error()[len(m[0]):]
	}
	return e
}

func (d *decoder) errorf(n *yaml.Node, format string, args ...any) error {
	return &syntaxError{File: d.file, Line: n.Line, Message: fmt.Sprintf(format, args...)}
}

// A member is a key of a mapping and the destination of its value: see decoder.read.
type member struct {
	name string
	into any
}

// mapping parses a mapping that has only these keys, each at most once.
func (d *decoder) mapping(n *yaml.Node, what string, members []member) error {
	names := make([]string, len(members))
	for i, m := range members {
		names[i] = m.name
	}
	return d.entries(n, what, func(k, v *yaml.Node) error {
		i := slices.Index(names, k.Value)
		if i < 0 {
			return d.errorf(k, "unknown key %q: %s has %s", k.Value, what, strings.Join(names, ", "))
		}
		return d.read(v, members[i].name, members[i].into)
	})
}

func (d *decoder) entries(n *yaml.Node, what string, fn func(k, v *yaml.Node) error) error {
	if n.Kind != yaml.MappingNode {
		return d.errorf(n, "%s wants a mapping", what)
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		switch {
		case k.Kind != yaml.ScalarNode || k.Tag == "!!merge":
			return d.errorf(k, "a key of %s is a plain word", what)
		case v.Kind == yaml.AliasNode || v.Anchor != "":
			return d.errorf(v, "anchors and aliases are not read here")
		case seen[k.Value]:
			return d.errorf(k, "%s stands twice", k.Value)
		}
		seen[k.Value] = true
		if err := fn(k, v); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) list(n *yaml.Node, what string, fn func(*yaml.Node) error) error {
	if n.Kind != yaml.SequenceNode {
		return d.errorf(n, "%s wants a list", what)
	}
	for _, item := range n.Content {
		if item.Kind == yaml.AliasNode {
			return d.errorf(item, "anchors and aliases are not read here")
		}
		if err := fn(item); err != nil {
			return err
		}
	}
	return nil
}

// read parses the value of a key into a string, a number, a bool, a list of strings, JSON, a node, or another type that the YAML decoder
// supports. If into is a function, it calls the function with the node.
func (d *decoder) read(n *yaml.Node, name string, into any) error {
	switch into := into.(type) {
	case func(*yaml.Node) error:
		return into(n)
	case *string:
		if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
			return d.errorf(n, "%s wants text", name)
		}
		*into = n.Value
	case *int:
		v, err := strconv.Atoi(n.Value)
		if n.Kind != yaml.ScalarNode || err != nil || v < 0 {
			return d.errorf(n, "%s wants a number from 0 on", name)
		}
		*into = v
	case *bool:
		if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
			return d.errorf(n, "%s wants true or false", name)
		}
		return n.Decode(into)
	case *[]string:
		return d.list(n, name, func(item *yaml.Node) error {
			var s string
			if err := d.read(item, "an entry of "+name, &s); err != nil {
				return err
			}
			*into = append(*into, s)
			return nil
		})
	case *json.RawMessage:
		v, err := d.plain(n)
		if err != nil {
			return err
		}
		if *into, err = json.Marshal(v); err != nil {
			return d.errorf(n, "%s has no JSON form", name)
		}
	case **yaml.Node:
		*into = n
	default:
		return n.Decode(into)
	}
	return nil
}

// maxRepeat is the maximum number of bytes of a value {repeat: x, times: n}.
const maxRepeat = 1 << 20

// plain converts a node into a value for encoding/json. {repeat: x, times: n} becomes a long string.
func (d *decoder) plain(n *yaml.Node) (any, error) {
	switch n.Kind {
	case yaml.MappingNode:
		obj := map[string]any{}
		err := d.entries(n, "a value", func(k, v *yaml.Node) (err error) {
			obj[k.Value], err = d.plain(v)
			return err
		})
		text, isText := obj["repeat"].(string)
		digits, isNumber := obj["times"].(json.Number)
		if err != nil || len(obj) != 2 || !isText || !isNumber || strings.ContainsAny(digits.String(), ".eE") {
			return obj, err
		}
		times, err := strconv.Atoi(digits.String())
		if err != nil {
			return nil, d.errorf(n, "times of a repeated text wants a number")
		}
		if times < 0 || len(text) > maxRepeat || times > maxRepeat/max(1, len(text)) {
			return nil, d.errorf(n, "a repeated text has at most %d bytes", maxRepeat)
		}
		return strings.Repeat(text, times), nil
	case yaml.SequenceNode:
		items := []any{}
		err := d.list(n, "a value", func(item *yaml.Node) error {
			v, err := d.plain(item)
			items = append(items, v)
			return err
		})
		return items, err
	default:
		if (n.Tag == "!!int" || n.Tag == "!!float") && rawjson.Check([]byte(n.Value), rawjson.Limits{}) == nil {
			return json.Number(n.Value), nil // a number retains all its digits
		}
		var v any
		if err := n.Decode(&v); err != nil {
			return nil, d.errorf(n, "this value cannot be read")
		}
		return v, nil
	}
}
