package bfcl

import "strings"

// A shape says how the calls of a case are held against its answers.
type shape uint8

const (
	single     shape = iota // one call of the one function
	oneOfMany               // one call, of the right function among many
	anyOrder                // several calls, whatever their order
	noCall                  // no call is right
	someCall                // any call is right
	multiTurn               // needs the state of the leaderboard's classes
	unknownWay              // another way of judging
)

// A category is what the name of a category says.
type category struct {
	shape    shape
	language *language
}

// readCategory reads the name of a category, of any version of the leaderboard: simple, java,
// live_parallel_multiple and the like.
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

// hasAnswers says whether the cases of the category have a file of answers.
func (c category) hasAnswers() bool { return c.shape != noCall && c.shape != someCall }

// unscored says why the cases of the category have no verdict; empty where they have one.
func (c category) unscored() string {
	switch c.shape {
	case multiTurn:
		return "multi-turn cases are judged by the state of classes that the data does not hold"
	case unknownWay:
		return "the way in which this category is judged is not known here"
	}
	return ""
}

// A language says how arguments stand for the values of their types.
type language struct {
	kinds map[string]kind // of the type names
	lists map[string]bool // the types whose items have a type
	// convert reads the text that stands for a value; false where the type cannot be read. Without
	// it the values are those of JSON.
	convert func(text, typ, itemType string) (value, bool)
	notText string // the error type of an argument that is no text, with convert
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
