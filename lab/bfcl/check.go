package bfcl

import (
	"math/big"
	"slices"
	"strings"
)

// The error types of the leaderboard. In the functions below, "" means that there is no error.
const (
	wrongFormat  = "ast_decoder:decoder_wrong_output_format"
	undecodable  = "ast_decoder:decoder_failed"
	calledAnyway = "irrelevance_error:decoder_success"
	calledNone   = "relevance_error:decoder_failed"

	wrongCount       = "simple_function_checker:wrong_count"
	wrongCountOfMany = "multiple_function_checker:wrong_count"
	wrongCountBeside = "parallel_function_checker_no_order:wrong_count"
	noMatch          = "parallel_function_checker_no_order:cannot_find_match"
	wrongName        = "simple_function_checker:wrong_func_name"
	missingRequired  = "simple_function_checker:missing_required"
	missingOptional  = "simple_function_checker:missing_optional"
	unexpectedParam  = "simple_function_checker:unexpected_param"

	wrongType       = "type_error:simple"
	wrongNestedType = "type_error:nested"
	notJavaText     = "type_error:java"
	notScriptText   = "type_error:js"

	wrongText      = "value_error:string"
	wrongList      = "value_error:list/tuple"
	wrongDictKey   = "value_error:dict_key"
	wrongDictValue = "value_error:dict_value"
	wrongDictCount = "value_error:list_dict_count"
	wrongValue     = "value_error:others"
	unclearDict    = "dict_checker:unclear"
	unclearDicts   = "list_dict_checker:unclear"

	badFunction = InputError + "function"
	badAnswer   = InputError + "answer"
)

// A checker scores the calls of one case. functions are the descriptions of its functions, and answers the right calls.
type checker struct {
	category  category
	functions []value
	answers   []value
}

// check returns the error type of calls. Each call is a dict with one member, whose key is the name of the function.
func (c *checker) check(calls []value) string {
	if len(c.answers) == 0 {
		return badAnswer
	}
	switch {
	case c.category.shape == anyOrder:
		return c.anyOrder(calls)
	case c.category.shape == oneOfMany:
		if len(calls) != len(c.answers) {
			return wrongCountOfMany
		}
		return c.call(c.described(c.answers[0]), calls[0], c.answers[0])
	case len(calls) != 1:
		return wrongCount
	case len(c.functions) == 0:
		return badFunction
	}
	return c.call(c.functions[0], calls[0], c.answers[0])
}

// anyOrder assigns each answer to the first call that matches it and is not taken by an earlier answer.
func (c *checker) anyOrder(calls []value) string {
	if len(calls) != len(c.answers) {
		return wrongCountBeside
	}
	taken := make([]bool, len(calls))
	for _, answer := range c.answers {
		if wrong := c.take(answer, calls, taken); wrong != "" {
			return wrong
		}
	}
	return ""
}

// take marks the first call that matches the answer and is not yet taken. It returns noMatch if no such call matches.
func (c *checker) take(answer value, calls []value, taken []bool) string {
	fn := c.described(answer)
	for i, call := range calls {
		if taken[i] {
			continue
		}
		wrong := c.call(fn, call, answer)
		taken[i] = wrong == ""
		if taken[i] || strings.HasPrefix(wrong, InputError) {
			return wrong
		}
	}
	return noMatch
}

// described returns the description of the function that an answer names, or null if none exists.
func (c *checker) described(answer value) value {
	if len(answer.keys) > 0 {
		for _, fn := range c.functions {
			if fn.dict["name"].isText(answer.keys[0]) {
				return fn
			}
		}
	}
	return value{}
}

// call returns the error type of one call. fn is the description of its function, and answer contains the right values of each argument.
func (c *checker) call(fn, call, answer value) string {
	name, params := fn.dict["name"], fn.dict["parameters"]
	if name.kind != text || params.kind != dict {
		return badFunction
	}
	if len(answer.keys) == 0 || answer.dict[answer.keys[0]].kind != dict {
		return badAnswer
	}
	right := answer.dict[answer.keys[0]]
	args, ok := call.dict[name.text]
	if !ok {
		return wrongName
	}
	for _, p := range params.dict["required"].list {
		if _, ok := args.dict[p.text]; !ok {
			return missingRequired
		}
	}
	for _, p := range args.keys {
		property, described := params.dict["properties"].dict[p]
		answers, answered := right.dict[p]
		if !described || !answered {
			return unexpectedParam
		}
		if answers.kind != list {
			return badAnswer
		}
		if wrong := c.argument(property, args.dict[p], answers.list); wrong != "" {
			return wrong
		}
	}
	for _, p := range right.keys {
		if _, given := args.dict[p]; !given && !contains(right.dict[p].list, textValue("")) {
			return missingOptional
		}
	}
	return ""
}

// argument returns the error type of one argument v. property is the description of its parameter, and right are the right values. ""
// among these means that the argument may be missing.
func (c *checker) argument(property, v value, right []value) string {
	lang := c.category.language
	want, typ, ok := lang.kindOf(property)
	nested, itemType := null, "" // there is no nested type
	if ok && lang.lists[typ] {
		nested, itemType, ok = lang.kindOf(property.dict["items"])
	}
	if !ok {
		return badFunction
	}
	switch {
	case lang.convert != nil && v.kind != text:
		return lang.notText
	case lang.convert != nil:
		if v, ok = lang.convert(v.text, typ, itemType); !ok {
			return badFunction
		}
	case typ == "float" && v.kind == integer:
		f, _ := new(big.Float).SetInt(v.whole).Float64()
		v = value{kind: float, real: f}
	}
	if wrong := checkType(v, right, want, nested); wrong != "" {
		return wrong
	}
	return checkValue(v, right, want, nested)
}

// kindOf returns the kind and the name of the type that a schema describes; ok is false if the language has no such type.
func (l *language) kindOf(schema value) (k kind, name string, ok bool) {
	typ := schema.dict["type"]
	k, ok = l.kinds[typ.text]
	return k, typ.text, ok && typ.kind == text
}

// checkValue compares a value of the described type with the right values.
func checkValue(v value, right []value, want, nested kind) string {
	answered, known := firstKind(right)
	if !known || answered == want { // otherwise the right values are variables: v is compared unchanged
		switch {
		case want == dict:
			return checkDict(v, right)
		case want == list && nested == dict:
			return checkDicts(v, right)
		case want == list:
			return checkList(v, right)
		case want == text && !contains(allLoosely(right), loosely(v)):
			return wrongText
		case want == text:
			return ""
		}
	}
	if !contains(right, v) {
		return wrongValue
	}
	return ""
}

// checkType returns the error type of the type of v: v must have the described type want, or the type of the right values. If nested is not
// null, the items of a list must have that type, or the types of the items of one right value.
func checkType(v value, right []value, want, nested kind) string {
	answered, known := firstKind(right)
	asAnswered := known && answered == v.kind
	switch {
	case v.kind != want && !asAnswered:
		return wrongType
	case v.kind != want, nested == null:
		return ""
	}
	for _, answer := range right {
		if answer.kind != list || !slices.ContainsFunc(v.list, func(item value) bool { return checkType(item, answer.list, nested, null) != "" }) {
			return ""
		}
	}
	if asAnswered {
		return wrongNestedType
	}
	return wrongType
}

// firstKind returns the kind of the first right value that is not the empty string; false if none exists.
func firstKind(right []value) (kind, bool) {
	for _, v := range right {
		if !v.isText("") {
			return v.kind, true
		}
	}
	return null, false
}

// loosely normalizes a text for comparison: it removes blanks and some punctuation, and unifies case and quotes. Other values are
// unchanged.
func loosely(v value) value {
	if v.kind != text {
		return v
	}
	return textValue(strings.Map(func(r rune) rune {
		switch r {
		case ' ', ',', '.', '/', '-', '_', '*', '^':
			return -1
		case '\'':
			return '"'
		}
		return r
	}, strings.ToLower(v.text)))
}

func allLoosely(vs []value) []value {
	out := make([]value, len(vs))
	for i, v := range vs {
		out[i] = loosely(v)
	}
	return out
}

// checkList compares a list with the right lists. All right values must be lists, also those after one that is equal.
func checkList(v value, right []value) string {
	got := value{kind: list, list: allLoosely(v.list)}
	wrong := wrongList
	for _, answer := range right {
		items, ok := answer.items()
		if !ok {
			return badAnswer
		}
		if equal(got, value{kind: list, list: allLoosely(items)}) {
			wrong = ""
		}
	}
	return wrong
}

// checkDicts compares a list of dicts with the right lists. It returns the error type for the last of them if none matches.
func checkDicts(v value, right []value) string {
	wrong := unclearDicts
	for _, answer := range right {
		items, ok := answer.items()
		if !ok {
			return badAnswer
		}
		wrong = dictsAgainst(v.list, items)
		if wrong == "" {
			return ""
		}
	}
	return wrong
}

// dictsAgainst compares the dicts of two lists in order.
func dictsAgainst(got, want []value) string {
	if len(got) != len(want) {
		return wrongDictCount
	}
	for i := range want {
		if wrong := checkDict(got[i], want[i:i+1]); wrong != "" {
			return wrong
		}
	}
	return ""
}

// checkDict compares a dict with the right dicts. It returns the error type for the last of them if none matches.
func checkDict(v value, right []value) string {
	wrong := unclearDict
	for _, answer := range right {
		if answer.isText("") {
			continue
		}
		if answer.kind != dict {
			return badAnswer
		}
		wrong = dictAgainst(v, answer)
		if wrong == "" || strings.HasPrefix(wrong, InputError) {
			return wrong
		}
	}
	return wrong
}

// dictAgainst compares a dict with one answer, which contains the right values of each key. If a key is missing and a value is wrong, it
// reports the missing key.
func dictAgainst(v, answer value) string {
	if v.kind != dict {
		return wrongNestedType // an answer that is not a list accepts every type
	}
	wrong := ""
	for _, key := range v.keys {
		values, ok := answer.dict[key]
		if !ok {
			wrong = wrongDictKey
			break
		}
		items, ok := values.items()
		if !ok {
			return badAnswer
		}
		if !contains(allLoosely(items), loosely(v.dict[key])) {
			wrong = wrongDictValue
			break
		}
	}
	for _, key := range answer.keys {
		if _, ok := v.dict[key]; ok {
			continue
		}
		optional, ok := answer.dict[key].optional()
		if !ok {
			return badAnswer
		}
		if !optional {
			return wrongDictKey
		}
	}
	return wrong
}

// optional reports whether the right values of a key contain "", so that the key may be missing, by the rules of Python's operator in. ok is
// false if that operator raises an exception.
func (v value) optional() (optional, ok bool) {
	switch v.kind {
	case text:
		return true, true
	case list:
		return contains(v.list, textValue("")), true
	case dict:
		_, optional = v.dict[""]
		return optional, true
	}
	return false, false
}
