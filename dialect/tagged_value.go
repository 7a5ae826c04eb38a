package dialect

import "strings"

// param begins the value of the parameter whose name is in token. types are the types that its tag states. It returns false if the name
// is invalid or a duplicate.
func (t *tagged) param(types valueTypes) bool {
	key := t.token
	prefix, ok := t.params.add(key)
	if !ok || t.complete {
		return false
	}
	schema := t.schema(t.name)
	types = parameterTypes(schema, string(key), types)
	isFirst := len(t.params.ends) == 1
	t.value.sole = isFirst && t.grammar.isSole(string(key)) && len(schema) > 0 && !declares(schema, string(key))
	t.value.begin(prefix, types)
	t.lines.begin(t.grammar)
	t.state, t.nested = taggedValue, nestedTags{}
	return true
}

// isSole reports whether a parameter of this name contains all arguments if the tool does not declare it.
func (g *grammar) isSole(key string) bool { return g.single && (key == "arguments" || key == "input") }

// inValue reads a token inside a value.
func (t *tagged) inValue(text string, r role) {
	if r == roleText || t.value.inString() {
		t.addPiece(text)
		return
	}
	isNested := t.nested.wraps+t.nested.calls > 0
	endsCall := r == roleCallClose || r == roleWrapClose && t.wrapped
	switch {
	case r == roleParamClose:
		t.mayEndValue(taggedClose, text)
		t.closed = false
	case r == roleParam && t.grammar.keyClose != nil:
		t.mayEndValue(taggedNextKey, text)
		t.token = t.token[:0]
	case r == roleParam && t.lines.atLine():
		t.mayEndValue(taggedNextTag, text)
		t.token, t.quoted = t.token[:0], 0
	case endsCall && !isNested && t.lines.atLine():
		t.mayEndValue(taggedEnding, text)
		t.closed = r == roleWrapClose || !t.wrapped
	default:
		t.nested.count(r)
		t.addPiece(text)
	}
}

// addPiece reads the next text of the value.
func (t *tagged) addPiece(s string) {
	for s != "" {
		n := t.checkLimit(s)
		t.keep(s[:n])
		t.value.add(t.lines.add(s[:n]))
		s = s[n:]
	}
}

// nestedTags are the numbers of unclosed tags inside a value.
type nestedTags struct{ params, wraps, calls int }

// count counts a tag of a wrapper or a call inside the value.
func (n *nestedTags) count(r role) {
	switch r {
	case roleWrap:
		n.wraps++
	case roleWrapClose:
		n.wraps = max(0, n.wraps-1)
	case roleCall:
		n.calls++
	case roleCallClose:
		n.calls = max(0, n.calls-1)
	}
}

// mayEndValue buffers a mark that may end the value, and sets the state in which the next tokens decide.
func (t *tagged) mayEndValue(state taggedState, text string) {
	t.pending = append(t.pending[:0], text...)
	t.state = state
}

// valueLines are the line breaks at both ends of a value, which may belong to its tags, as both do in
//
//	<parameter=text>
//	one line
//	</parameter>
//
// begin sets the fields for a grammar. first removes the line break after the opening tag; add buffers each one that the text so far ends
// with in tail, until flush adds it to the value or the closing tag takes it.
type valueLines struct {
	fresh  bool   // nothing of the value was read: a line break that follows belongs to the opening tag
	empty  bool   // the value has at most a line break, which belongs to the opening tag
	tail   string // buffered line break, or its beginning, at the end of the value
	strips bool   // tail belongs to the closing tag and is removed; if line breaks are only removed as a pair, first sets it
}

// begin prepares l for a value in the grammar.
func (l *valueLines) begin(g *grammar) {
	*l = valueLines{fresh: g.newline, empty: g.newline, strips: g.newline && !g.paired}
}

// atLine reports whether the value so far ends at the beginning of a line.
func (l *valueLines) atLine() bool { return strings.HasSuffix(l.tail, "\n") || l.empty && !l.fresh }

// add reads the next part of the value and returns the text that is known to belong to it. It buffers a line break at the end, which may
// belong to the closing tag.
func (l *valueLines) add(s string) string {
	if l.fresh && s != "" {
		s = l.first(s)
	}
	if s == "" {
		return ""
	}
	l.empty = false
	if l.tail == "\r" && s == "\n" {
		l.tail = "\r\n"
		return ""
	}
	text := l.flush() + s
	l.tail = lineEnd(s)
	return strings.TrimSuffix(text, l.tail)
}

// first reads the first text of the value, and returns it without the line break that belongs to the opening tag.
func (l *valueLines) first(s string) string {
	if s == "\r" && l.tail == "" { // maybe the beginning of a line break
		l.tail = s
		return ""
	}
	l.fresh = false
	text := s
	switch {
	case s[0] == '\n':
		text, l.tail = s[1:], ""
	case l.tail == "":
		text = strings.TrimPrefix(s, "\r\n")
	}
	l.strips = l.strips || len(text) < len(s)
	return text
}

// flush returns the buffered line break, as part of the value.
func (l *valueLines) flush() string {
	tail := l.tail
	l.tail = ""
	return tail
}

// lineEnd returns the line break, or its beginning, that s ends with; "" if none exists.
func lineEnd(s string) string {
	for _, end := range [...]string{"\r\n", "\n", "\r"} {
		if strings.HasSuffix(s, end) {
			return end
		}
	}
	return ""
}

// json reads a token of arguments that are JSON.
func (t *tagged) json(text string, r role) {
	if r != roleText && !t.js.inString() {
		if t.complete && (r == roleCallClose || r == roleWrapClose && t.wrapped) {
			t.endCall(r)
		} else {
			t.reject(text, r)
		}
		return
	}
	for text != "" && t.js.state != jsonDone && t.js.state != jsonBad {
		n := t.js.scan(text[:t.checkLimit(text)])
		t.args(text[:n])
		t.keep(text[:n])
		text = text[n:]
	}
	bad := text // text after the JSON, or from the byte on that breaks its grammar
	t.complete = t.js.state == jsonDone
	if t.complete {
		bad = trimSpace(text)
	}
	t.keep(text[:len(text)-len(bad)])
	if bad != "" {
		t.reject(bad, r)
	}
}

// object reads a token of a JSON object with name and arguments.
func (t *tagged) object(text string, r role) {
	closes := r == roleWrapClose && !t.payload.inString()
	if !closes || !t.payload.good() {
		t.payload.add(text)
	}
	if !closes {
		return
	}
	t.payload.close(whole)
	t.state, t.wrapped = taggedGap, false
	t.leave()
}
