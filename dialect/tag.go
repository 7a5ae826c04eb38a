package dialect

import "strings"

// A tag is the text between `<tool` and `>`.
type tag struct {
	name   string
	args   bool // the word args is present
	named  bool // the attribute name is present
	closed bool // the text ends with `/`
	broken bool // the attributes have a syntax error
}

// looksLikeCall reports whether the tag was meant as a call, not only mentioned in text.
func (t tag) looksLikeCall() bool { return t.named || t.args }

// readTag parses attributes in any order: name="N", name='N', name=N and the word args. It ignores all others.
func readTag(s string) (t tag) {
	for {
		s = trimSpace(s)
		if s == "" {
			return t
		}
		if s == "/" {
			t.closed = true
			return t
		}
		n := 0
		for n < len(s) && isNameByte(s[n]) {
			n++
		}
		if n == 0 {
			t.broken = true
			return t
		}
		key := s[:n]
		s = trimSpace(s[n:])
		if !strings.HasPrefix(s, "=") {
			t.args = t.args || strings.EqualFold(key, "args")
			continue
		}
		var value string
		var ok bool
		if value, s, ok = attribute(trimSpace(s[1:])); !ok {
			t.broken = true
		}
		switch {
		case !strings.EqualFold(key, "name"):
			t.args = t.args || strings.EqualFold(key, "args")
			continue
		case t.named || !isToolName(value):
			t.broken = true
		default:
			t.name = value
		}
		t.named = true
	}
}

// attribute parses the value of an attribute, quoted or not, and returns the text after it. ok is false if there is no value.
func attribute(s string) (value, rest string, ok bool) {
	if s == "" {
		return "", "", false
	}
	if q := s[0]; q == '"' || q == '\'' {
		end := strings.IndexByte(s[1:], q)
		if end < 0 {
			return "", "", false
		}
		return s[1 : 1+end], s[2+end:], true
	}
	n := strings.IndexAny(s, " \t\r\n")
	if n < 0 {
		n = len(s)
		if s[n-1] == '/' {
			n--
		}
	}
	return s[:n], s[n:], true
}

// isToolName reports whether s can be the name of a tool as models write it; dots and colons are allowed.
func isToolName(s string) bool {
	for i := range len(s) {
		if !isNameByte(s[i]) {
			return false
		}
	}
	return s != "" && len(s) <= maxNameBytes
}

func isNameByte(c byte) bool {
	return isLetter(c) || '0' <= c && c <= '9' || c == '_' || c == '-' || c == '.' || c == ':'
}
