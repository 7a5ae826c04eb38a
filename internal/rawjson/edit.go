package rawjson

import "bytes"

// AppendEdited appends the JSON object obj, which must be valid, with its members edited. edit gets the name of each
// member, unquoted, and its value. It returns the key to write, a JSON string (nil: the key stays), the value to write, and whether
// the member is kept. All other bytes stay.
// rest, unless nil, appends further members before the closing bracket.
func AppendEdited(dst, obj []byte, edit func(name string, value []byte) (key, to []byte, keep bool), rest func([]byte) []byte) []byte {
	start := len(dst)
	open := SkipSpace(obj, 0) + 1
	dst = append(dst, obj[:open]...)
	copied := open // obj[:copied] is dealt with
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
		if kept == start+open && copied > open { // the first that is kept: no comma before it
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

// Without returns a copy of the JSON object obj, which must be valid, without its members of that name.
func Without(obj []byte, name string) []byte {
	return AppendEdited(nil, obj, func(member string, value []byte) ([]byte, []byte, bool) { return nil, value, member != name }, nil)
}
