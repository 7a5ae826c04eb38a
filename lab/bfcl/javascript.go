package bfcl

import (
	"strings"

	"github.com/lathe-run/lathe/internal/lazy"
)

// The forms of collections in JavaScript, such as
//
//	[1, 2] and new Array(1, 2)
//	[[1, 2], [3, 4]]
//	{a: 1, 'b': [2]}
//
// Text after a match is ignored.
var (
	scriptRow    = blanks + `\[.*?\]` + blanks
	scriptRows   = scriptRow + `(?:,` + scriptRow + `)*`
	scriptTable  = lazy.Regexp(`^(?:\[` + scriptRows + `\]|new` + blanks1 + `Array\(` + scriptRows + `\))`)
	scriptArray  = lazy.Regexp(`^(?:\[(.*?)\]|new` + blanks1 + `Array\((.*?)\))`)
	scriptInner  = lazy.Regexp(`\[(.*?)\]`)
	scriptObject = lazy.Regexp(`^\{(.*?)\}`)
)

// fromScript parses a JavaScript expression as a value of its type. If the text is not such an expression, it returns it as a text. It
// returns false for unsupported types.
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
	case "dict":
		return fromScriptObject(trim(s)), true
	case "array":
		return fromScriptArray(trim(s), itemType), true
	case "any": // a text
	default:
		return value{}, false
	}
	return textValue(s), true
}

func fromScriptArray(s, itemType string) value {
	if table := scriptTable().FindString(s); table != "" {
		return fromScriptTable(table)
	}
	m := scriptArray().FindStringSubmatch(s)
	if m == nil {
		return textValue(s)
	}
	v := value{kind: list}
	content := trim(m[1] + m[2]) // one of the two is empty
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

// fromScriptTable parses an array of arrays of literals.
func fromScriptTable(s string) value {
	v := value{kind: list}
	for i, inner := range scriptInner().FindAllStringSubmatch(s, -1) {
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

// quotedType returns "String" if the item begins with a quote, else "".
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

// scriptPair parses `key: item` at the beginning of an object's content. The item ends at the first comma that another key follows. ok is
// false if there is no colon.
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

// keyFollows reports whether s begins with a key: a colon that is not the first byte, before the next comma.
func keyFollows(s string) bool {
	s, _, _ = strings.Cut(s, ",")
	return strings.LastIndexByte(s, ':') > 0
}

// scriptLiteral parses a literal of unknown type.
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
