package bfcl

import "strings"

// A shape is the way in which the calls of a case are compared with its answers.
type shape uint8

const (
	single     shape = iota // one call, of the only function
	oneOfMany               // one call, of the right one of several functions
	anyOrder                // several calls, in any order
	noCall                  // any call is an error
	someCall                // at least one call, of any function
	multiTurn               // requires the state of the leaderboard's classes, so it is not scored
	unknownWay              // an unknown category, which is not scored
)

// A category is the information in the name of a category.
type category struct {
	shape    shape
	language *language
}

// readCategory parses the name of a category of any version of the leaderboard, such as simple, java or live_parallel_multiple.
func readCategory(name string) category {
	c := category{language: &python}
	switch {
	case strings.Contains(name, "javascript"):
		c.language = &javaScript
	case strings.Contains(name, "java"):
		c.language = &java
	}
	rest := strings.TrimPrefix(name, "live_")
	switch {
	case strings.Contains(name, "irrelevance"):
		c.shape = noCall
	case strings.Contains(name, "relevance"):
		c.shape = someCall
	case strings.Contains(name, "multi_turn"):
		c.shape = multiTurn
	case strings.HasPrefix(rest, "parallel"):
		c.shape = anyOrder
	case strings.HasPrefix(rest, "multiple"):
		c.shape = oneOfMany
	case strings.HasPrefix(rest, "simple"), strings.HasPrefix(rest, "java"):
		c.shape = single
	default:
		c.shape = unknownWay
	}
	return c
}

// hasAnswers reports whether the category has a file of answers.
func (c category) hasAnswers() bool { return c.shape != noCall && c.shape != someCall }

// unscored returns the reason for which the cases of the category have no verdict; "" if they have one.
func (c category) unscored() string {
	switch c.shape {
	case multiTurn:
		return "multi-turn cases are judged by the state of classes that the data does not hold"
	case unknownWay:
		return "the way in which this category is judged is not known here"
	}
	return ""
}

// A language is the form in which the arguments of a category represent values.
type language struct {
	kinds map[string]kind // the kind of each type name
	lists map[string]bool // type names whose items have a type
	// convert parses the text that represents a value; ok is false for an unsupported type. If convert is nil, arguments are JSON values.
	convert func(text, typ, itemType string) (value, bool)
	notText string // with convert: the error type of an argument that is not a string
	name    string
}

var python = language{
	name: "Python",
	kinds: map[string]kind{"string": text, "integer": integer, "float": float, "boolean": boolean,
		"array": list, "tuple": list, "dict": dict, "any": text},
	lists: map[string]bool{"array": true, "tuple": true},
}

var java = language{
	name: "Java",
	kinds: map[string]kind{"byte": integer, "short": integer, "integer": integer, "float": float, "double": float,
		"long": integer, "boolean": boolean, "char": text, "Array": list, "ArrayList": list, "Set": list,
		"HashMap": dict, "Hashtable": dict, "Queue": list, "Stack": list, "String": text, "any": text},
	lists:   map[string]bool{"Array": true, "ArrayList": true},
	convert: fromJava,
	notText: notJavaText,
}

var javaScript = language{
	name: "JavaScript",
	kinds: map[string]kind{"String": text, "integer": integer, "float": float, "Bigint": integer,
		"Boolean": boolean, "dict": dict, "array": list, "any": text},
	lists:   map[string]bool{"array": true},
	convert: fromScript,
	notText: notScriptText,
}
