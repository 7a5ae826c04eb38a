package bfcl

import (
	"strings"

	"github.com/lathe-run/lathe/internal/lazy"
)

// The forms in which collections are written in JavaScript. What follows them is not looked at.
var (
	scriptRow    = blanks + `\[.*?\]` + blanks
	scriptRows   = scriptRow + `(?:,` + scriptRow + `)*`
	scriptTable  = lazy.Regexp(`^(?:\[` + scriptRows + `\]|new` + blanks1 + `Array\(` + scriptRows + `\))`)
	scriptArray  = lazy.Regexp(`^(?:\[(.*?)\]|new` + blanks1 + `Array\((.*?)\))`)
	scriptInner  = lazy.Regexp(`\[(.*?)\]`)
	scriptObject = lazy.Regexp(`^\{(.*?)\}`)
)

// fromScript reads the text of a JavaScript expression as a value of its type. A text that is none
// stays a text. It is false for types that cannot be read.
func fromScript(s, typ, itemType string) (value, bool) {
	switch typ {
	case "String":
		if quotedBy(s, `"`) || quotedBy(s, `'`) {
			return textValue(within(s)), true
		}
	case "integer":
		return wholeOrText(s), true
	case "float":
		if shortFloat().MatchString(s) {
			return floatOf(strings.TrimSuffix(s, "\n")), true
		}
	case "Bigint":
		if v, ok := suffixed(s, "n"); ok {
			return v, true
		}
	case "Boolean":
		if s == "true" || s == "false" {
			return value{kind: boolean, flag: s == "true"}, true
		}
	case "any":
	case "dict":
		return fromScriptObject(trim(s)), true
	case "array":
		return fromScriptArray(trim(s), itemType), true
	default:
		return value{}, false
	}
	return textValue(s), true
}

func fromScriptArray(s, itemType string) value {
	if m := scriptTable().FindString(s); m != "" {
		v := value{kind: list}
		for i, inner := range scriptInner().FindAllStringSubmatch(m, -1) {
			row := trim(inner[1])
			if i == 0 {
				row = strings.TrimPrefix(row, "[")
			}
			items := value{kind: list}
			for _, item := range strings.Split(row, ",") {
				items.list = append(items.list, scriptLiteral(item))
			}
			v.list = append(v.list, items)
		}
		return v
	}
	m := scriptArray().FindStringSubmatch(s)
	if m == nil {
		return textValue(s)
	}
	v := value{kind: list}
	content := trim(m[1] + m[2]) // one of them is empty
	if content == "" {
		return v
	}
	for _, item := range strings.Split(content, ",") {
		item = trim(item)
		if itemType == "" {
			v.list = append(v.list, scriptLiteral(item))
			continue
		}
		el, ok := fromScript(item, itemType, quotedType(item))
		if !ok {
			return textValue(s)
		}
		v.list = append(v.list, el)
	}
	return v
}

// quotedType is the type of what an item holds, where it begins like a string.
func quotedType(item string) string {
	if strings.HasPrefix(item, `"`) || strings.HasPrefix(item, `'`) {
		return "String"
	}
	return ""
}

func fromScriptObject(s string) value {
	if s == "{}" {
		return newDict()
	}
	m := scriptObject().FindStringSubmatch(s)
	if m == nil {
		return textValue(s)
	}
	v := newDict()
	for rest := m[1]; ; {
		key, item, after, ok := scriptPair(rest)
		if !ok {
			return v
		}
		key, item, rest = strings.Trim(trim(key), `'"`), trim(item), after
		switch {
		case strings.HasPrefix(item, "[") && strings.HasSuffix(item, "]"):
			v.set(key, fromScriptArray(item, ""))
		case strings.HasPrefix(item, "{") && strings.HasSuffix(item, "}"):
			v.set(key, fromScriptObject(item))
		default:
			v.set(key, scriptLiteral(strings.Trim(item, `'"`)))
		}
	}
}

// scriptPair cuts `key: item` from the front of an object's content. The item goes on to the first
// comma after which another key follows.
func scriptPair(s string) (key, item, rest string, ok bool) {
	s = strings.TrimLeft(s, ":")
	key, after, ok := strings.Cut(s, ":")
	if !ok {
		return "", "", "", false
	}
	after = strings.TrimLeftFunc(after, isBlank)
	for i := range len(after) {
		if after[i] != ',' {
			continue
		}
		next := strings.TrimLeftFunc(after[i+1:], isBlank)
		if keyFollows(next) {
			return key, after[:i], next, true
		}
		if keyFollows(after[i+1:]) {
			return key, after[:i], after[i+1:], true
		}
	}
	return key, after, "", true
}

// keyFollows says whether a colon stands before the next comma, and not at once.
func keyFollows(s string) bool {
	s, _, _ = strings.Cut(s, ",")
	return strings.LastIndexByte(s, ':') > 0
}

// scriptLiteral reads a literal whose type is not known.
func scriptLiteral(s string) value {
	s = trim(s)
	switch {
	case s == "true" || s == "false":
		return value{kind: boolean, flag: s == "true"}
	case quotedBy(s, `"`), quotedBy(s, `'`):
		return textValue(within(s))
	}
	return numberOrText(s)
}
