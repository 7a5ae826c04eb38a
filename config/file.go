package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/lathe-run/lathe/internal/lazy"
	"github.com/lathe-run/lathe/internal/nearest"
)

// maxListed bounds the words that an error lists where none is near.
const maxListed = 12

// yamlLine finds the line in the errors of the YAML reader.
var yamlLine = lazy.Regexp(`^yaml: (?:line (\d+): )?`)

// readFile walks the file's tree. The YAML reader's own strict decoding would stop at the type
// level; here each key meets its row, with its line.
func (l *loader) readFile(b []byte) {
	dec := yaml.NewDecoder(bytes.NewReader(b))
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if !errors.Is(err, io.EOF) { // an empty file
			l.yamlProblem(b, err)
		}
		return
	}
	var second yaml.Node
	if err := dec.Decode(&second); err == nil {
		l.problem(second.Line, "", "a second document: the file has one")
	} else if !errors.Is(err, io.EOF) {
		l.yamlProblem(b, err)
	}
	l.section(doc.Content[0], "", "", l.rows)
}

func (l *loader) yamlProblem(b []byte, err error) {
	msg := err.Error()
	m := yamlLine().FindStringSubmatch(msg)
	line := 0
	if m != nil {
		line, _ = strconv.Atoi(m[1])
		msg = msg[len(m[0]):]
	}
	if strings.Contains(msg, "cannot start any token") && startsWithTab(b, line) {
		msg = "the line is indented with a tab: YAML is indented with spaces"
	}
	l.problem(line, "", "not YAML: %s", msg)
}

// startsWithTab reports whether the indentation of line n, from 1, has a tab.
func startsWithTab(b []byte, n int) bool {
	lines := bytes.SplitN(b, []byte("\n"), n+1)
	if n < 1 || len(lines) < n {
		return false
	}
	line := lines[n-1]
	return bytes.ContainsRune(line[:len(line)-len(bytes.TrimLeft(line, " \t"))], '\t')
}

// section reads a mapping. base is the path that is not in the rows (models.NAME.), prefix the
// path within the rows.
func (l *loader) section(n *yaml.Node, base, prefix string, rows []key) {
	name := strings.TrimSuffix(base+prefix, ".")
	l.eachEntry(n, name, func(k, v *yaml.Node) {
		path := prefix + k.Value
		full := base + path
		if full == "models" {
			l.models(v)
			return
		}
		for i := range rows {
			if rows[i].path == path {
				l.lines[full] = k.Line
				l.cfg.origin[full] = l.place(k.Line)
				l.setValue(rows[i].v, v, full)
				return
			}
		}
		if hasSection(rows, path) {
			l.section(v, base, path+".", rows)
			return
		}
		l.problem(k.Line, full, "%s", l.unknownKey(rows, prefix, k.Value))
	})
}

func (l *loader) models(n *yaml.Node) {
	l.eachEntry(n, "models", func(k, v *yaml.Node) {
		full := "models." + k.Value
		if !isModelName(k.Value) {
			l.problem(k.Line, full, "a model's name has 1 to 64 letters, digits, _ . : / and -, and does not begin with sim/")
			return
		}
		l.section(v, full+".", "", l.model(k.Value).keys())
	})
}

func isModelName(s string) bool {
	for i := range len(s) {
		if c := s[i]; c != '/' && c != ':' && !isLabel(strings.ToLower(string(c))) {
			return false
		}
	}
	return s != "" && len(s) <= 64 && !strings.HasPrefix(s, "sim/")
}

// eachEntry calls fn for the entries of a mapping. An empty value is an empty mapping.
func (l *loader) eachEntry(n *yaml.Node, full string, fn func(k, v *yaml.Node)) {
	if isNull(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		l.problem(n.Line, full, "wants a mapping, not %s", nodeKind(n))
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		path := strings.TrimPrefix(full+"."+k.Value, ".")
		switch first := seen[k.Value]; {
		case k.Kind != yaml.ScalarNode || k.Tag == "!!merge" || k.Kind == yaml.AliasNode:
			l.problem(k.Line, full, "a key is a plain word")
		case v.Kind == yaml.AliasNode:
			l.problem(v.Line, path, "anchors and aliases are not read here")
		case first > 0:
			l.problem(k.Line, path, "stands in line %d already", first)
		default:
			seen[k.Value] = k.Line
			fn(k, v)
		}
	}
}

// setValue reads one value. A scalar, a list and a mapping go where they fit.
func (l *loader) setValue(v value, n *yaml.Node, full string) {
	note := func(line int, key string, err error) {
		if err != nil {
			l.problem(line, key, "%s", err)
		}
	}
	lister, isList := v.(lister)
	tabler, isTable := v.(tabler)
	object, isObject := v.(objectValue)
	grouper, isGroup := v.(grouper)
	switch {
	case isGroup:
		l.eachEntry(n, full, func(k, v *yaml.Node) { l.entry(grouper, k, v, full) })
	case isTable:
		l.eachEntry(n, full, func(k, v *yaml.Node) {
			entry, err := tabler.entry(k.Value)
			path := full + "." + k.Value
			l.lines[path] = k.Line
			if inner := listIn(entry); inner != nil && v.Kind == yaml.SequenceNode {
				l.setValue(inner, v, path)
				return
			}
			if err == nil {
				err = l.scalar(entry, v)
			}
			note(k.Line, path, err)
		})
	case isList && n.Kind == yaml.SequenceNode:
		items := []string{} // an empty list is not an unset one
		for _, item := range n.Content {
			if item.Kind != yaml.ScalarNode || isNull(item) {
				l.problem(item.Line, full, "wants a list of words, not of %ss", strings.TrimPrefix(nodeKind(item), "a "))
				return
			}
			items = append(items, item.Value)
		}
		note(n.Line, full, lister.setList(items))
	case isObject && n.Kind == yaml.MappingNode:
		text, err := appendJSON(nil, n, maxObjectDepth)
		if err == nil {
			err = l.assign(object, string(text))
		}
		note(n.Line, full, err)
	default:
		note(n.Line, full, l.scalar(v, n))
	}
}

func (l *loader) scalar(v value, n *yaml.Node) error {
	switch {
	case isNull(n):
		return errors.New("has no value")
	case n.Kind != yaml.ScalarNode:
		return fmt.Errorf("wants one value, not %s", nodeKind(n))
	}
	return l.assign(v, n.Value)
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

func nodeKind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.SequenceNode:
		return "a list"
	case yaml.MappingNode:
		return "a mapping"
	case yaml.AliasNode:
		return "an alias"
	default:
		return "a single value"
	}
}

// hasSection reports whether some row stands below the path.
func hasSection(rows []key, path string) bool {
	return slices.ContainsFunc(rows, func(k key) bool { return strings.HasPrefix(k.path, path+".") })
}

// unknownKey says what a key that is not there was probably meant to be: the same thing under
// another word, the same word in another place, or a word with a slip in it.
func (l *loader) unknownKey(rows []key, prefix, name string) string {
	var here []string
	for i := range rows {
		rest, ok := strings.CutPrefix(rows[i].path, prefix)
		if !ok {
			continue
		}
		word, deeper, _ := strings.Cut(rest, ".")
		if deeper == "" && slices.Contains(strings.Fields(rows[i].also), name) {
			return "unknown key, it is called " + word + " here"
		}
		if !slices.Contains(here, word) {
			here = append(here, word)
		}
	}
	if len(rows) == len(l.rows) && prefix == "" {
		here = append(here, "models")
	}
	if near := nearest.Word(name, here); near != "" {
		return "unknown key, did you mean " + near + "?"
	}
	for _, k := range append(everyKey(l.rows), flat(l.rows)...) {
		if k.last() == name || slices.Contains(strings.Fields(k.also), name) {
			return "unknown key here, did you mean " + k.path + "?"
		}
	}
	if len(here) == 0 || len(here) > maxListed {
		return "unknown key"
	}
	slices.Sort(here)
	return "unknown key (" + strings.Join(here, ", ") + ")"
}

// everyKey returns the rows with their whole paths, those of a model under models.NAME.
func everyKey(rows []key) []key {
	all := slices.Clone(rows)
	for _, k := range (&Model{}).keys() {
		k.path = "models.NAME." + k.path
		all = append(all, k)
	}
	return all
}
