package rawjson

import (
	"bytes"
	"slices"
)

// AppendEdited appends the JSON object obj, which must be valid, with edited members. edit receives the decoded name and the value of each
// member. It returns the new key as a JSON string (nil: unchanged), the new value, and whether to keep the member. All other bytes are
// unchanged. rest, if not nil, appends further members before the closing bracket.
func AppendEdited(dst, obj []byte, edit func(name string, value []byte) (key, to []byte, keep bool), rest func([]byte) []byte) []byte {
	start := len(dst)
	open := SkipSpace(obj, 0) + 1
	dst = append(dst, obj[:open]...)
	copied := open // obj[:copied] has been processed
	kept := len(dst)
	for key, value := range Members(obj) {
		at := SkipSpace(obj, copied)
		if obj[at] == ',' {
			at = SkipSpace(obj, at+1)
		}
		keyEnd := at + len(key)
		from := SkipSpace(obj, SkipSpace(obj, keyEnd)+1)
		end := from + len(value)
		name, to, keep := edit(Text(key), value)
		if !keep {
			copied = end
			continue
		}
		lead := obj[copied:at]
		if kept == start+open && copied > open { // the first remaining member: no comma precedes it
			lead = bytes.TrimLeft(lead, ", \t\r\n")
		}
		dst = append(dst, lead...)
		if name == nil {
			name = obj[at:keyEnd]
		}
		dst = append(append(dst, name...), obj[keyEnd:from]...)
		dst = append(dst, to...)
		copied, kept = end, len(dst)
	}
	if rest != nil {
		dst = rest(dst)
	}
	return append(dst, bytes.TrimLeft(obj[copied:], ",")...)
}

// Without returns a copy of the JSON object obj, which must be valid, without the members with these names.
func Without(obj []byte, names ...string) []byte {
	return Filter(obj, func(name string) bool { return !slices.Contains(names, name) })
}

// Filter returns a copy of the JSON object obj, which must be valid, with the members for whose names keep is true.
func Filter(obj []byte, keep func(name string) bool) []byte {
	return AppendEdited(nil, obj, func(name string, value []byte) ([]byte, []byte, bool) { return nil, value, keep(name) }, nil)
}
