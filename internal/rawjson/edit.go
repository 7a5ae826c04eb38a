package rawjson

import (
	"bytes"
	"slices"
)

// AppendEdited appends the JSON object obj, which must be valid, with edited members. edit receives the decoded name and the value of each
// member. It returns the new key as a JSON string (nil: unchanged), the new value, and whether to keep the member. All other bytes are
// unchanged. rest, if not nil, appends further members before the closing bracket. Without the member a, `{ "a": 1, "b": 2 }` becomes
// `{ "b": 2 }`.
func AppendEdited(dst, obj []byte, edit func(name string, value []byte) (key, to []byte, keep bool), rest func([]byte) []byte) []byte {
	open := SkipSpace(obj, 0) + 1 // after the opening bracket
	dst = append(dst, obj[:open]...)
	read := open // obj[:read] has been copied or removed
	isFirst := true
	for key, value := range Members(obj) {
		keyStart := SkipSpace(obj, read)
		if obj[keyStart] == ',' {
			keyStart = SkipSpace(obj, keyStart+1)
		}
		keyEnd := keyStart + len(key)
		valueStart := SkipSpace(obj, SkipSpace(obj, keyEnd)+1)
		before := obj[read:keyStart] // the comma and white space
		removed := read > open
		read = valueStart + len(value)
		newKey, newValue, keep := edit(Text(key), value)
		if !keep {
			continue
		}
		if isFirst && removed {
			before = bytes.TrimLeft(before, ", \t\r\n")
		}
		isFirst = false
		if newKey == nil {
			newKey = key
		}
		dst = append(append(dst, before...), newKey...)
		dst = append(append(dst, obj[keyEnd:valueStart]...), newValue...)
	}
	if rest != nil {
		dst = rest(dst)
	}
	return append(dst, bytes.TrimLeft(obj[read:], ",")...)
}

// Without returns a copy of the JSON object obj, which must be valid, without the members with these names.
func Without(obj []byte, names ...string) []byte {
	return Filter(obj, func(name string) bool { return !slices.Contains(names, name) })
}

// Filter returns a copy of the JSON object obj, which must be valid, with the members for whose names keep is true.
func Filter(obj []byte, keep func(name string) bool) []byte {
	return AppendEdited(nil, obj, func(name string, value []byte) ([]byte, []byte, bool) { return nil, value, keep(name) }, nil)
}
