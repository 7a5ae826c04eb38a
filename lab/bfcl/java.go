package bfcl

import (
	"slices"
	"strings"

	"github.com/lathe-run/lathe/internal/lazy"
)

// The forms of collections in Java, such as
//
//	new int[]{1, 2}
//	new ArrayList<>(Arrays.asList("a", "b"))
//	new ArrayList<String>() {{ add("a"); add("b"); }}
//	new HashMap<String, Integer>() {{ put("a", 1); put("b", 2); }}
//
// Each pattern matches the shortest text.
var (
	javaArray     = lazy.Regexp(`new` + blanks1 + word + `+\[\]` + blanks + `\{(.*?)\}`)
	javaListOf    = lazy.Regexp(`new` + blanks1 + `ArrayList<` + word + `*>\(Arrays\.asList\((.+?)\)\)`)
	javaListAdds  = lazy.Regexp(`(?s)new` + blanks1 + `ArrayList<` + word + `*>\(\)` + blanks + `\{\{` + blanks + `(.+?)` + blanks + `\}\}`)
	javaListEmpty = lazy.Regexp(`new` + blanks1 + `ArrayList<` + word + `*>\(\)`)
	javaAdd       = lazy.Regexp(`add\((.+?)\)`)
	javaMapPuts   = lazy.Regexp(`(?s)new` + blanks1 + `HashMap<.*?>` + blanks + `\(\)` + blanks + `\{` + blanks + `\{?` + blanks + `(.*?)` + blanks + `\}?` + blanks + `\}`)
	javaMapEmpty  = lazy.Regexp(`new` + blanks1 + `HashMap<.*?>` + blanks + `\(\)`)
	javaPut       = lazy.Regexp(`put\("(.*?)",` + blanks + `(.*?)\)`)
)

// fromJava parses a Java expression as a value of its type. If the text is not such an expression, it returns it as a text. It returns
// false for unsupported types.
func fromJava(s, typ, itemType string) (value, bool) {
	switch typ {
	case "byte", "short", "integer":
		return wholeOrText(s), true
	case "long":
		if v, ok := suffixed(s, "lL"); ok {
			return v, true
		}
	case "float":
		if v, ok := javaFloat(s); ok {
			return v, true
		}
	case "double":
		if plainFloat().MatchString(s) {
			return floatOf(strings.TrimSuffix(s, "\n")), true
		}
	case "boolean":
		if s == "true" || s == "false" {
			return value{kind: boolean, flag: s == "true"}, true
		}
	case "char", "String", "any":
	case "Array":
		return fromJavaArray(s, itemType)
	case "ArrayList":
		return fromJavaList(s, itemType)
	case "HashMap":
		return fromJavaMap(s), true
	default:
		return value{}, false
	}
	return textValue(s), true
}

func fromJavaArray(s, itemType string) (value, bool) {
	m := javaArray().FindStringSubmatch(s)
	if m == nil {
		return textValue(s), true
	}
	items := slices.DeleteFunc(strings.Split(m[1], ","), func(item string) bool { return trim(item) == "" })
	return javaItems(items, func(item string) (value, bool) { return fromJavaItem(item, itemType) })
}

// javaItems returns the list of the parsed items. It returns false if parse does for one of them.
func javaItems(items []string, parse func(item string) (value, bool)) (value, bool) {
	v := value{kind: list}
	for _, item := range items {
		el, ok := parse(trim(item))
		if !ok {
			return value{}, false
		}
		v.list = append(v.list, el)
	}
	return v, true
}

func fromJavaList(s, itemType string) (value, bool) {
	var items []string
	if m := javaListOf().FindStringSubmatch(s); m != nil {
		items = strings.Split(m[1], ",")
	} else if m := javaListAdds().FindStringSubmatch(s); m != nil {
		for _, add := range javaAdd().FindAllStringSubmatch(m[1], -1) {
			items = append(items, add[1])
		}
	} else if !javaListEmpty().MatchString(s) {
		return textValue(s), true
	}
	return javaItems(items, func(item string) (value, bool) {
		if itemType == "char" || itemType == "String" {
			return textValue(within(item)), true
		}
		return fromJavaItem(item, itemType)
	})
}

// fromJavaItem parses an item of a collection. itemType is "" if the type of the items is unknown.
func fromJavaItem(item, itemType string) (value, bool) {
	if itemType == "" {
		return javaLiteral(item), true
	}
	return fromJava(item, itemType, "")
}

func fromJavaMap(s string) value {
	m := javaMapPuts().FindStringSubmatch(s)
	if m == nil {
		if javaMapEmpty().MatchString(s) {
			return newDict()
		}
		return textValue(s)
	}
	v := newDict()
	for _, put := range javaPut().FindAllStringSubmatch(m[1], -1) {
		v.set(put[1], javaLiteral(trim(put[2])))
	}
	return v
}

// javaLiteral parses a literal of unknown type.
func javaLiteral(s string) value {
	switch {
	case s == "true" || s == "false":
		return value{kind: boolean, flag: s == "true"}
	case quotedBy(s, `"`):
		return textValue(within(s))
	}
	if v, ok := suffixed(s, "lL"); ok {
		return v
	}
	if v, ok := javaFloat(s); ok {
		return v
	}
	return numberOrText(s)
}
