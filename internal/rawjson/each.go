package rawjson

// AppendEach appends the array or object v, which must be valid, with change in place of copying each value. key is the literal of a
// member's name, or nil for an element of an array. A value for which change appends nothing is left out.
func AppendEach(dst, v []byte, change func(dst, key, value []byte) []byte) []byte {
	dst = append(dst, v[0])
	first := len(dst)
	put := func(key, value []byte) {
		before := len(dst)
		if before > first {
			dst = append(dst, ',')
		}
		if key != nil {
			dst = append(append(dst, key...), ':')
		}
		start := len(dst)
		if dst = change(dst, key, value); len(dst) == start {
			dst = dst[:before]
		}
	}
	if v[0] == '[' {
		for value := range Elements(v) {
			put(nil, value)
		}
		return append(dst, ']')
	}
	for key, value := range Members(v) {
		put(key, value)
	}
	return append(dst, '}')
}
