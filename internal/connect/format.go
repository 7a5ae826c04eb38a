package connect

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// A Format decodes and edits configuration files of one syntax.
type Format struct {
	Name string
	// decode returns the content as maps, lists and scalars; for empty text an empty map.
	decode func(text []byte) (map[string]any, error)
	// edit sets entries in the text and leaves the rest unchanged as far as the format allows.
	edit func(text []byte, entries []Entry) ([]byte, error)
}

// ErrUnreadable is the error of a file that does not parse. Such a file is not changed.
var ErrUnreadable = errors.New("the file does not parse")

// ErrNotEdited is the error of a file in which the entries cannot be set without a change of other settings.
var ErrNotEdited = errors.New("the settings cannot be added to this file without changing others")

// Decode returns the content of a file as maps, lists and scalars. The error wraps [ErrUnreadable].
func (f *Format) Decode(text []byte) (map[string]any, error) {
	tree, err := f.decode(text)
	if err != nil {
		return nil, fmt.Errorf("%w as %s: %w", ErrUnreadable, f.Name, err)
	}
	return tree, nil
}

// Merge returns the text with the entries set. An entry whose Holds is "default" is not set if the text has a value for it. Merge returns
// ErrNotEdited if the result does not parse to the entries and otherwise equal content.
func (f *Format) Merge(text []byte, entries []Entry) ([]byte, error) {
	want, err := f.Decode(text)
	if err != nil {
		return nil, err
	}
	entries = slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool {
		_, ok := Lookup(want, e.Path)
		return ok && e.Holds == "default"
	})
	for _, e := range entries {
		if err := set(want, e.Path, e.Value); err != nil {
			return nil, err
		}
	}
	before, _ := f.Decode(text) // cannot fail: it was decoded to want
	if equal(before, want) {
		return text, nil
	}
	merged, err := f.edit(text, entries)
	if err != nil {
		return nil, err
	}
	if got, err := f.Decode(merged); err != nil || !equal(got, want) {
		return nil, ErrNotEdited
	}
	return merged, nil
}

// equal reports whether two trees are equal. Numbers are compared by their text, because formats decode them to different types.
func equal(a, b any) bool { return reflect.DeepEqual(plain(a), plain(b)) }

func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := map[string]any{}
		for k, e := range v {
			m[k] = plain(e)
		}
		return m
	case []any:
		return plainList(v)
	case []map[string]any: // an array of tables in TOML
		return plainList(v)
	case string, bool, nil:
		return v
	default:
		return fmt.Sprintf("%v", v)
	}
}

func plainList[T any](list []T) any {
	out := make([]any, len(list))
	for i, e := range list {
		out[i] = plain(e)
	}
	return out
}

// Lookup returns the value at a path, and whether it exists.
func Lookup(tree any, path []string) (any, bool) {
	for _, key := range path {
		switch t := tree.(type) {
		case map[string]any:
			v, ok := t[key]
			if !ok {
				return nil, false
			}
			tree = v
		case []any:
			i := find(t, key)
			if i < 0 {
				return nil, false
			}
			tree = t[i]
		default:
			return nil, false
		}
	}
	return tree, true
}

// find returns the index of the object of a list that `[name=value]` selects, or -1.
func find(list []any, element string) int {
	name, value, _ := selector(element)
	for i, e := range list {
		m, _ := e.(map[string]any)
		if m[name] == value {
			return i
		}
	}
	return -1
}

// set sets the value at a path in a tree of maps and lists. Absent deletes it.
func set(tree map[string]any, path []string, value any) error {
	key, isLast := path[0], len(path) == 1
	object, isObject := tree[key].(map[string]any)
	switch {
	case isLast && value == Absent:
		delete(tree, key)
	case isLast:
		tree[key] = value
	case selectsInList(path[1:]):
		return setInList(tree, path, value)
	case isObject:
		return set(object, path[1:], value)
	case tree[key] != nil:
		return notThere(key, "object")
	case value != Absent:
		object = map[string]any{}
		tree[key] = object
		return set(object, path[1:], value)
	}
	return nil
}

// setInList does the work of set for a path whose first element is the key of a list and whose second selects an object in it. It creates
// the list and the object if they do not exist.
func setInList(tree map[string]any, path []string, value any) error {
	key := path[0]
	list, ok := tree[key].([]any)
	if !ok && tree[key] != nil {
		return notThere(key, "list")
	}
	i := find(list, path[1])
	if i < 0 {
		name, selected, _ := selector(path[1])
		i = len(list)
		list = append(list, map[string]any{name: selected})
		tree[key] = list
	}
	return set(list[i].(map[string]any), path[2:], value)
}

func notThere(key, want string) error {
	return fmt.Errorf("%w: %s is there and is not a %s", ErrNotEdited, key, want)
}
