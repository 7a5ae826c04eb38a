package connect

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// How [Undo] removes the written settings from a JSON file that has been changed since.

// A Put is a setting that [Write] set in a file, or removed from it.
type Put struct {
	Path    []string `json:"path"`
	Value   any      `json:"value,omitempty"`
	Removed bool     `json:"removed,omitempty"`
	// Default: the setting was written only because the file had none. The agent may replace it.
	Default bool `json:"default,omitempty"`
}

// putsOf returns the settings that a merge of the entries into the JSON text before sets or removes.
func putsOf(before []byte, entries []Entry) ([]Put, error) {
	had, err := JSON.Decode(before)
	if err != nil {
		return nil, err
	}
	var puts []Put
	for _, e := range entries {
		p := Put{Path: e.Path, Value: e.Value, Removed: e.Value == Absent, Default: e.Holds == "default"}
		if _, is := Lookup(had, e.Path); is && p.Default {
			continue
		}
		if p.Removed {
			p.Value = nil
		}
		puts = append(puts, p)
	}
	return puts, nil
}

// add adds the settings of a later write. They replace settings with the same paths.
func (w *Written) add(puts []Put) {
	for _, p := range puts {
		if i := slices.IndexFunc(w.Puts, func(old Put) bool { return slices.Equal(old.Path, p.Path) }); i >= 0 {
			p.Default = p.Default || w.Puts[i].Default
			w.Puts[i] = p
			continue
		}
		w.Puts = append(w.Puts, p)
	}
}

// takeOut returns the JSON text now without the written settings: it restores their values in before and keeps all other changes. left
// lists the paths of settings that have been changed since, alone or with a value on their path; they stay unchanged. The returned text is
// nil if before is nil (the file did not exist) and nothing else remains.
func takeOut(before, now []byte, puts []Put) (text []byte, left []string, err error) {
	had, errBefore := parseJSON(before)
	n, err := parseJSON(now)
	if err = cmp.Or(errBefore, err); err != nil {
		return nil, nil, fmt.Errorf("%w as JSON: %w", ErrUnreadable, err)
	}
	changed := false
	for _, p := range puts {
		undone, isLeft := p.undo(n, had)
		changed = changed || undone
		if isLeft {
			left = append(left, strings.Join(p.Path, "."))
		}
	}
	if !changed {
		return now, left, nil
	}
	prune(n, had, puts)
	if before == nil && len(n.Content) == 0 {
		return nil, left, nil
	}
	text, err = textJSON(n, indentation(now))
	return text, left, err
}

// undo restores in n the value that the setting has in had. left is true if the setting stays because it has been changed since. If both
// results are false, there is nothing to undo.
func (p *Put) undo(n, had *yaml.Node) (undone, left bool) {
	old, current := nodeAt(had, p.Path), nodeAt(n, p.Path)
	isRemoved := current == nil && !p.Removed
	isChanged := current != nil && (p.Removed || !equal(treeJSON(current), p.Value))
	switch {
	case isRemoved, same(current, old):
		return false, false
	case isChanged:
		return false, !p.Default
	case old == nil:
		removeJSON(n, p.Path)
		return true, false
	}
	err := setYAML(n, p.Path, old) // fails if a value on the path has been changed to one of another kind
	return err == nil, err != nil
}

func same(a, b *yaml.Node) bool {
	return a == b || a != nil && b != nil && equal(treeJSON(a), treeJSON(b))
}

// prune removes the objects and lists on the paths of puts that contain only defaults and that do not exist in had.
func prune(n, had *yaml.Node, puts []Put) {
	for _, p := range puts {
		for i := len(p.Path) - 1; i > 0; i-- {
			path := p.Path[:i]
			value := nodeAt(n, path)
			if value == nil || nodeAt(had, path) != nil || !onlyDefaults(value, path, puts) {
				break
			}
			removeJSON(n, path)
		}
	}
}

// nodeAt returns the value at a path, or nil if the path does not exist.
func nodeAt(n *yaml.Node, path []string) *yaml.Node {
	for _, key := range path {
		if n.Kind == yaml.SequenceNode {
			n = elementYAML(n, key)
		} else {
			n = memberYAML(n, key)
		}
		if n == nil {
			return nil
		}
	}
	return n
}

// onlyDefaults reports whether n, the value at path, is an empty list, or an object that has only defaults of puts and the member by which
// path selects it.
func onlyDefaults(n *yaml.Node, path []string, puts []Put) bool {
	if n.Kind == yaml.SequenceNode {
		return len(n.Content) == 0
	}
	selects, _, _ := selector(path[len(path)-1])
	if n.Kind != yaml.MappingNode {
		return false
	}
	for i := 0; i < len(n.Content); i += 2 {
		name := n.Content[i].Value
		member := slices.Concat(path, []string{name})
		if name != selects && !slices.ContainsFunc(puts, func(p Put) bool { return p.Default && slices.Equal(p.Path, member) }) {
			return false
		}
	}
	return true
}

// textJSON returns the value as indented JSON with a final line end.
func textJSON(n *yaml.Node, indent string) ([]byte, error) {
	var b bytes.Buffer
	err := json.Indent(&b, appendJSON(nil, n), "", indent)
	b.WriteByte('\n')
	return b.Bytes(), err
}
