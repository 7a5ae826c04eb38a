package rawjson

import (
	"bytes"
	"iter"
)

// Members yields the members of the JSON object obj in order: the key as its literal, including quotes and escapes, and the value without
// white space around it. Both are subslices of obj. obj must be valid JSON; if it is not an object, nothing is yielded.
func Members(obj []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		i := begin(obj, '{')
		for i < len(obj) && obj[i] == '"' {
			keyEnd := skipString(obj, i)
			key := obj[i:keyEnd:keyEnd]
			i = SkipSpace(obj, keyEnd)
			if i >= len(obj) || obj[i] != ':' {
				return
			}
			i = SkipSpace(obj, i+1)
			end := skip(obj, i)
			if end == i || !yield(key, obj[i:end:end]) {
				return
			}
			i = next(obj, end)
		}
	}
}

// Elements yields the values of the JSON array arr in order, without white space around them. They are subslices of arr. arr must be valid
// JSON; if it is not an array, nothing is yielded.
func Elements(arr []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		i := begin(arr, '[')
		for i < len(arr) && arr[i] != ']' {
			end := skip(arr, i)
			if end == i || !yield(arr[i:end:end]) {
				return
			}
			i = next(arr, end)
		}
	}
}

// Get returns the value of the member key of the JSON object obj, which must be valid. If the key is repeated, it returns the first value.
func Get(obj []byte, key string) (raw []byte, ok bool) {
	for k, v := range Members(obj) {
		if EqualKey(k, key) {
			return v, true
		}
	}
	return nil, false
}

// At returns the value at a path of member names in the JSON object obj, which must be valid. It returns nil if obj lacks a member of the
// path. Of repeated members it reads the first.
func At(obj []byte, path ...string) []byte {
	for _, key := range path {
		obj, _ = Get(obj, key)
	}
	return obj
}

// TextAt returns the decoded text of the string at a path of member names, as [Text] does. It returns "" if no string is there.
func TextAt(obj []byte, path ...string) string { return Text(At(obj, path...)) }

// Kind returns the first byte of a JSON value, which determines its type: '{', '[', '"', 't', 'f', 'n', a digit or '-'. It
// returns 0 if v is empty.
func Kind(v []byte) byte {
	if len(v) == 0 {
		return 0
	}
	return v[0]
}

// EqualKey reports whether the valid JSON string literal quoted represents the text s.
func EqualKey(quoted []byte, s string) bool {
	if len(quoted) < 2 {
		return false
	}
	in := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(in, '\\') < 0 {
		return string(in) == s
	}
	text, err := AppendUnquote(nil, quoted)
	return err == nil && string(text) == s
}

// begin returns the index of the first token after the opening bracket, or len(b).
func begin(b []byte, bracket byte) int {
	i := SkipSpace(b, 0)
	if i >= len(b) || b[i] != bracket {
		return len(b)
	}
	return SkipSpace(b, i+1)
}

// next returns the index of the next token after the comma that follows b[i], or len(b) if there is no comma.
func next(b []byte, i int) int {
	i = SkipSpace(b, i)
	if i >= len(b) || b[i] != ',' {
		return len(b)
	}
	return SkipSpace(b, i+1)
}

// skip returns the end of the valid value at b[i]. For invalid text it returns any index up to len(b).
func skip(b []byte, i int) int {
	if i >= len(b) {
		return len(b)
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		depth := 0
		for i < len(b) {
			switch b[i] {
			case '"':
				i = skipString(b, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
		return len(b)
	}
	for i < len(b) {
		switch b[i] {
		case ',', '}', ']', ' ', '\t', '\r', '\n':
			return i
		}
		i++
	}
	return i
}

// skipString returns the end of the valid string that begins at b[i]: the first quote after an even number of backslashes. Its time is
// linear, because each backslash is counted for at most one quote.
func skipString(b []byte, i int) int {
	for i++; ; {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return len(b)
		}
		slashes := n
		for slashes > 0 && b[i+slashes-1] == '\\' {
			slashes--
		}
		i += n + 1
		if (n-slashes)%2 == 0 {
			return i
		}
	}
}

// AppendCompact appends the valid JSON text b without the white space between its tokens. All other bytes are unchanged.
func AppendCompact(dst, b []byte) []byte {
	for i := 0; i < len(b); {
		start := i
		for i < len(b) && b[i] > ' ' && b[i] != '"' {
			i++
		}
		if i < len(b) && b[i] == '"' {
			i = skipString(b, i)
		}
		dst = append(dst, b[start:i]...)
		i = SkipSpace(b, i)
		if i == start {
			i++ // a control character, which cannot occur here in valid JSON
		}
	}
	return dst
}
