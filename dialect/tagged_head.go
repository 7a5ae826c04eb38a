package dialect

import (
	"strings"

	"github.com/lathe-run/lathe"
)

// This file reads the name of the tool and the keys of the parameters. They are in a tag, which is read byte by byte up to `>`, or follow
// one and are read in the tokens of the scanner. The states in which they are read:
//
//	            in a tag                             after a tag
//	the name    taggedHead   <function=write>        taggedName  <tool_call>write
//	a key       taggedParam  <parameter name="path"> taggedKey   <arg_key>path</arg_key>
//
// The tag of a parameter that follows a value without a closing tag is read in the state taggedNextTag.

// inParamKey reads a token of a key that follows a tag, up to the closing tag of the key.
func (t *tagged) inParamKey(text string, r role) {
	switch r {
	case roleText:
		n := min(len(text), maxNameBytes-len(t.token))
		t.token = append(t.token, text[:n]...)
		t.keep(text[:n])
		if n < len(text) {
			t.reject(text[n:], r)
		}
	case roleKeyClose:
		t.keep(text)
		t.state = taggedEq
	default:
		t.reject(text, r)
	}
}

// inName reads a token of a name that follows the tag of the wrapper. A newline or any mark ends the name.
func (t *tagged) inName(text string, r role) {
	if r != roleText {
		t.endName(text, r)
		return
	}
	name, _, found := strings.Cut(text, "\n")
	n := min(len(name), maxNameBytes-len(t.token))
	t.token = append(t.token, name[:n]...)
	t.keep(name[:n])
	switch {
	case n < len(name):
		t.reject(text[n:], r)
	case found:
		t.endName(text[n:], r)
	}
}

// endName starts the call of the name that was read, and reads text, which follows the name.
func (t *tagged) endName(text string, r role) {
	if !t.startCall(string(t.token)) {
		t.reject(text, r)
		return
	}
	if r == roleNameEnd {
		t.keep(text)
	} else {
		t.inside(text, r)
	}
}

// startCall starts the call of the named tool. It returns false if name cannot be a name.
func (t *tagged) startCall(name string) bool {
	name = strings.TrimSpace(name)
	invalid := "<>{}\n"
	if t.grammar.call == nil {
		invalid += " \t"
	}
	if !t.means(name) && (name == "" || len(name) > maxNameBytes || strings.ContainsAny(name, invalid)) {
		return false
	}
	t.name = t.toolName([]byte(name))
	t.params.reset()
	t.complete = false
	t.start("", t.name)
	t.state = taggedBody
	return true
}

// openingTag reads a tag that opens a call or a parameter, up to `>`. A line end, or the end of maxTagBytes, ends it too early.
func (t *tagged) openingTag() {
	for n, c := range []byte(t.in) {
		switch {
		case t.quoted != 0:
			if c == t.quoted {
				t.quoted = 0
			}
		case t.grammar.attrs && (c == '"' || c == '\''):
			t.quoted = c
		case c == '>':
			t.addToken(t.scanner.take(n + 1))
			t.endTag()
			return
		}
		if c == '\n' || len(t.token)+n >= maxTagBytes {
			t.addToken(t.scanner.take(n))
			if t.state == taggedNextTag {
				t.notClosed()
			} else {
				t.notATag()
			}
			return
		}
	}
	t.addToken(t.scanner.take(len(t.in)))
}

func (t *tagged) addToken(s string) {
	t.token = append(t.token, s...)
	if t.state == taggedNextTag {
		t.pending = append(t.pending, s...)
		return
	}
	t.keep(s)
}

// notATag ends a tag that opens no call or parameter. The tag of a call that counts only if it names an offered tool (without a wrapper, or
// in a message for the user) becomes text; any other makes the attempt unreadable.
func (t *tagged) notATag() {
	if t.state == taggedHead && (!t.wrapped || t.message.to == toUser) {
		t.state, t.wrapped = taggedText, false
		t.prose.text(t.lead)
		t.prose.text(string(t.raw))
		return
	}
	t.becomeUnreadable(lathe.CodePayloadParseError)
}

// endTag handles a complete tag of a call or a parameter.
func (t *tagged) endTag() {
	inner := string(t.token[:len(t.token)-1])
	switch t.state {
	case taggedHead:
		name := inner
		if t.grammar.attrs {
			name = attributeValue(inner, "name")
		}
		if t.grammar.messages {
			name = t.invokedName(name)
		}
		mustBeOffered := !t.wrapped || t.message.to == toUser
		if mustBeOffered && !t.means(name) {
			t.notATag()
			return
		}
		if !t.startCall(name) {
			t.becomeUnreadable(lathe.CodePayloadParseError)
		}
	case taggedParam:
		key, types := t.grammar.paramTag(inner)
		t.token = append(t.token[:0], key...)
		if !t.param(types) {
			t.becomeUnreadable(lathe.CodePayloadParseError)
		}
	case taggedNextTag:
		t.nextParam(t.grammar.paramTag(inner))
	}
}

// paramTag returns the key in the tag of a parameter, and the types that the tag states; 0 if it states none.
func (g *grammar) paramTag(inner string) (key string, types valueTypes) {
	switch {
	case !g.attrs:
		return inner, 0
	case !g.typed: // types stays 0: the attribute string has no meaning
	case attributeValue(inner, "string") == "true":
		types = typeString
	default:
		types = typeOther
	}
	return attributeValue(inner, "name"), types
}

// attributeValue returns the value of the attribute key in the tag s; "" if it is missing.
func attributeValue(s, key string) string {
	for {
		s = trimSpace(s)
		name, rest, ok := strings.Cut(s, "=")
		if !ok {
			return ""
		}
		value, rest, ok := attribute(trimSpace(rest))
		if !ok {
			return ""
		}
		if strings.TrimSpace(name) == key {
			return value
		}
		s = rest
	}
}
