package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/lathe-run/lathe/internal/lazy"
	"github.com/lathe-run/lathe/internal/yamljson"
)

// yamlLine matches the line number in errors of the YAML decoder.
var yamlLine = lazy.Regexp(`^yaml: (?:line (\d+): )?`)

// readFile reads the settings from the tree of the YAML file. Each key is matched to its row with its line; the strict mode of the decoder
// would stop at a wrong type.
func (l *loader) readFile(b []byte) {
	dec := yaml.NewDecoder(bytes.NewReader(b))
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if !errors.Is(err, io.EOF) { // the file is empty
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

// yamlProblem reports an error of the YAML decoder at the line that causes it, with advice.
func (l *loader) yamlProblem(b []byte, err error) {
	msg := err.Error()
	m := yamlLine().FindStringSubmatch(msg)
	line := 0
	if m != nil {
		line, _ = strconv.Atoi(m[1])
		msg = msg[len(m[0]):]
	}
	if at := faultLine(b); at > 0 {
		line = at
	}
	if strings.Contains(msg, "cannot start any token") && startsWithTab(b, line) {
		msg = "the line is indented with a tab: YAML is indented with spaces"
	}
	for _, known := range yamlFaults {
		if strings.Contains(msg, known[0]) {
			msg = known[1] + " (" + msg + ")"
			break
		}
	}
	l.problem(line, "", "not YAML: %s", msg)
}

// yamlFaults maps parts of errors of the YAML decoder to advice.
var yamlFaults = [][2]string{
	{"expected ',' or", "the bracket [ or { of this line is not closed"},
	{"unexpected end of stream", "the quotation mark of this line is not closed"},
	{"could not find expected ':'", "a colon is missing after the key"},
	{"did not find expected key", "the line does not fit those before it: look at its indentation"},
	{"'-' indicator", "the line does not fit the list before it: look at its indentation"},
	{"not allowed in this context", "look at the indentation of the line, and for a colon in a text without quotation marks"},
}

// maxFaultLines is the largest number of lines that are tried before the line at which the decoder stopped.
const maxFaultLines = 50

// faultLine returns the number of the first line that makes the file invalid YAML, because the YAML decoder reports the line at which the
// surrounding mapping or list begins. It returns 0 if that line is more than maxFaultLines before the line at which the decoder stopped.
func faultLine(b []byte) int {
	r := &lineReader{rest: b, ends: []int{0}}
	_ = decodeAll(r) // the error is known
	stopped := len(r.ends) - 1
	for line := stopped; line > max(stopped-maxFaultLines, 0); line-- {
		if decodeAll(bytes.NewReader(b[:r.ends[line-1]])) == nil { // the lines before this one are valid
			return line
		}
	}
	return 0
}

// decodeAll returns the first error in the YAML documents of a reader, or nil. What it decodes is discarded.
func decodeAll(r io.Reader) error {
	dec := yaml.NewDecoder(r)
	for {
		switch err := dec.Decode(&yaml.Node{}); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// A lineReader returns one line for each read, which shows how far the decoder has read.
type lineReader struct {
	rest []byte
	at   int   // offset of rest in the file
	ends []int // 0, and the offset of the end of each line of which at least a part was read
}

// Read implements [io.Reader].
func (r *lineReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	end := bytes.IndexByte(r.rest, '\n') + 1
	if end == 0 {
		end = len(r.rest)
	}
	if r.at == r.ends[len(r.ends)-1] {
		r.ends = append(r.ends, r.at+end)
	}
	n := copy(p, r.rest[:end])
	r.rest, r.at = r.rest[n:], r.at+n
	return n, nil
}

// startsWithTab reports whether the indentation of line n, counted from 1, contains a tab.
func startsWithTab(b []byte, n int) bool {
	lines := bytes.SplitN(b, []byte("\n"), n+1)
	if n < 1 || len(lines) < n {
		return false
	}
	line := lines[n-1]
	return bytes.ContainsRune(line[:len(line)-len(bytes.TrimLeft(line, " \t"))], '\t')
}

// section reads a mapping. base is the path of the struct to which the rows belong (models.NAME.), and prefix is the path within the
// struct.
func (l *loader) section(n *yaml.Node, base, prefix string, rows []row) {
	name := strings.TrimSuffix(base+prefix, ".")
	l.eachEntry(n, name, func(k, v *yaml.Node) {
		path := prefix + k.Value
		switch r := find(rows, path); {
		case r != nil:
			full := base + r.path
			if full != "models" { // keys that an entry of models omits have the origin "default"
				l.note(full, k.Line)
			}
			l.setValue(r.kind, r.v, v, full)
		case hasSection(rows, path):
			l.section(v, base, path+".", rows)
		default:
			l.problem(k.Line, base+path, "%s", l.unknownKey(rows, prefix, k.Value))
		}
	})
}

// note records the position of a key.
func (l *loader) note(key string, line int) {
	l.lines[key] = line
	l.cfg.origin[key] = l.place(line)
}

// eachEntry calls fn for each entry of a mapping. An empty value counts as an empty mapping.
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
		case k.Kind != yaml.ScalarNode || k.Tag == "!!merge":
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

// setValue reads one value. The YAML node must have the shape of the kind. Groups and tables report the problems of their entries themselves.
func (l *loader) setValue(k *kind, v reflect.Value, n *yaml.Node, full string) {
	at := n.Line // of an error
	var err error
	switch {
	case k.shape == group:
		l.eachEntry(n, full, func(name, n *yaml.Node) { l.setEntry(k, v, name, n, full) })
	case k.shape == table:
		l.eachEntry(n, full, func(name, n *yaml.Node) { l.setTableEntry(k, v, name, n, full+"."+name.Value) })
	case k.shape == list && n.Kind == yaml.SequenceNode:
		at, err = setSequence(k, v, n)
	case k.shape == object && n.Kind == yaml.MappingNode:
		var text []byte
		if text, at, err = yamljson.Append(nil, n, maxObjectDepth); err == nil {
			at, err = n.Line, l.setFromUser(k, v, string(text))
		}
	default:
		err = l.setScalar(k, v, n)
	}
	if err != nil {
		l.problem(at, full, "%s", err)
	}
}

// setSequence sets a list from a YAML sequence. at is the line to which the error belongs.
func setSequence(k *kind, v reflect.Value, n *yaml.Node) (at int, err error) {
	items := []string{} // an empty list differs from an unset one
	for _, item := range n.Content {
		if item.Kind != yaml.ScalarNode || isNull(item) {
			return item.Line, fmt.Errorf("wants a list of words, not of %ss", strings.TrimPrefix(nodeKind(item), "a "))
		}
		items = append(items, item.Value)
	}
	return n.Line, k.setList(v, items)
}

// setEntry reads one entry of a map of structs.
func (l *loader) setEntry(k *kind, m reflect.Value, name, n *yaml.Node, full string) {
	path := full + "." + name.Value
	if err := k.check(name.Value); err != nil {
		l.problem(name.Line, path, "%s", err)
		return
	}
	if full != "models" {
		l.note(path, name.Line)
	}
	l.cfg.entries[path] = true
	l.section(n, path+".", "", rowsOf(entry(m, name.Value)))
}

// setTableEntry reads one entry of a map of values. A refused value is left out, unless it is a reference, because checks of other keys
// count it as set.
func (l *loader) setTableEntry(k *kind, m reflect.Value, name, n *yaml.Node, path string) {
	l.lines[path] = name.Line
	value := reflect.New(m.Type().Elem()).Elem()
	isList := k.values.shape == list && n.Kind == yaml.SequenceNode
	err := k.check(name.Value)
	if err == nil && isList {
		l.setValue(k.values, value, n, path) // reports its problems itself
	}
	if err == nil && !isList {
		err = l.setScalar(k.values, value, n)
	}
	if err != nil {
		l.problem(name.Line, path, "%s", err)
		if value.IsZero() { // the value was refused, and is no reference
			return
		}
	}
	if m.IsNil() {
		m.Set(reflect.MakeMap(m.Type()))
	}
	m.SetMapIndex(reflect.ValueOf(name.Value), value)
}

// setScalar sets a value from a node that must be a single value.
func (l *loader) setScalar(k *kind, v reflect.Value, n *yaml.Node) error {
	switch {
	case isNull(n):
		return errors.New("has no value")
	case n.Kind != yaml.ScalarNode:
		return fmt.Errorf("wants one value, not %s", nodeKind(n))
	}
	return l.setFromUser(k, v, n.Value)
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

// hasSection reports whether at least one row is below the path.
func hasSection(rows []row, path string) bool {
	return slices.ContainsFunc(rows, func(r row) bool { return strings.HasPrefix(r.path, path+".") })
}
