package bfcl

import (
	"fmt"
	"testing"
	"testing/fstest"
)

// judge scores arguments of one function f against its parameters and right values.
func judge(t *testing.T, category, properties, right, args string) Verdict {
	t.Helper()
	name := "BFCL_v4_" + category + ".json"
	question := fmt.Sprintf(`{"id":"x","question":[[{"role":"user","content":"Do."}]],"function":[{"name":"f","description":"","parameters":{"type":"dict","properties":%s,"required":[]}}]}`, properties)
	s := NewScorer(fstest.MapFS{
		name:                   {Data: []byte(question)},
		answerDir + "/" + name: {Data: fmt.Appendf(nil, `{"id":"x","ground_truth":[{"f":%s}]}`, right)},
	})
	return s.Score(category, "x", fmt.Appendf(nil, `[{"f":%s}]`, args))
}

func TestScoreOfValues(t *testing.T) {
	t.Parallel()
	typed := func(typ string) string { return fmt.Sprintf(`{"a":{"type":%q}}`, typ) }
	lists := func(item string) string { return fmt.Sprintf(`{"a":{"type":"array","items":{"type":%q}}}`, item) }
	tests := []struct{ name, properties, right, args, want string }{
		{"text in other words", typed("string"), `["May 1, 2024"]`, `"may-1.2024"`, ""},
		{"quotes are alike", typed("string"), `["it's"]`, `"It\"s"`, ""},
		{"other text", typed("string"), `["a"]`, `"b"`, wrongText},
		{"case of other letters", typed("string"), `["Été"]`, `"éTÉ"`, ""},
		{"a variable of another type is compared as it is", typed("string"), `[5]`, `5`, ""},
		{"a text where the answer is of another type", typed("string"), `[5]`, `"5"`, wrongValue},
		{"integer for float", typed("float"), `[2.0]`, `2`, ""},
		{"float for integer", typed("integer"), `[2]`, `2.0`, wrongType},
		{"true is no integer", typed("integer"), `[1]`, `true`, wrongType},
		{"a large integer keeps its digits", typed("integer"), `[90071992547409931]`, `90071992547409932`, wrongValue},
		{"null", typed("integer"), `[1]`, `null`, wrongType},
		{"left out though it may not be", typed("integer"), `[1]`, ``, missingOptional},
		{"left out as it may be", typed("integer"), `[1,""]`, ``, ""},
		{"list", lists("string"), `[["A b","c"]]`, `["ab","C"]`, ""},
		{"list in another order", lists("string"), `[["a","b"]]`, `["b","a"]`, wrongList},
		{"list of other items", lists("integer"), `[[1]]`, `["1"]`, wrongNestedType},
		{"list of what the answer holds", lists("integer"), `[["x"]]`, `["x"]`, ""},
		{"empty list where it may be left out", lists("string"), `[["a"],""]`, `[]`, ""},
		{"dict", typed("dict"), `[{"k":["A","b"],"n":[1,""]}]`, `{"k":"a"}`, ""},
		{"dict with another key", typed("dict"), `[{"k":["a"]}]`, `{"k":"a","l":1}`, wrongDictKey},
		{"dict with another value", typed("dict"), `[{"k":["a"]}]`, `{"k":"b"}`, wrongDictValue},
		{"a missing key hides a wrong value", typed("dict"), `[{"k":["a"],"l":[1]}]`, `{"k":"b"}`, wrongDictKey},
		{"dict that may be left out", typed("dict"), `[""]`, `{}`, unclearDict},
		{"list of dicts", lists("dict"), `[[{"k":[1]},{"k":[2]}]]`, `[{"k":1},{"k":2}]`, ""},
		{"list of fewer dicts", lists("dict"), `[[{"k":[1]},{"k":[2]}]]`, `[{"k":1}]`, wrongDictCount},
		{"list of no dicts", lists("dict"), `[""]`, `[5]`, wrongDictCount},
		{"nested value in a dict", typed("dict"), `[{"k":[{"l":[1,2.0]}]}]`, `{"k":{"l":[1.0,2]}}`, ""},
		{"a type that is none", typed("text"), `["a"]`, `"a"`, badFunction},
		{"a list without a type of items", typed("array"), `[["a"]]`, `["a"]`, badFunction},
		{"dict that no answer is", typed("dict"), `[{"k":[1]},["k"]]`, `{"l":1}`, badAnswer},
		{"dict whose right values are no list", typed("dict"), `[{"k":7}]`, `{"k":7}`, badAnswer},
		{"dict whose missing values are no list", typed("dict"), `[{"k":7}]`, `{}`, badAnswer},
		{"dict whose right values are characters", typed("dict"), `[{"k":"ab"}]`, `{"k":"B"}`, ""},
		{"dict without right values", typed("dict"), `[{"k":{}}]`, `{"k":1}`, wrongDictValue},
		{"list that no answer is", lists("integer"), `[[1],7]`, `[1]`, badAnswer},
		{"list of dicts that no answer is", lists("dict"), `[[{"k":[1]}],7]`, `[{"k":2}]`, badAnswer},
		{"list of characters", lists("string"), `[["x"],"ab"]`, `["a","b"]`, ""},
		{"true beside one", typed("any"), `[true]`, `true`, ""},
		{"answers that are no list", typed("string"), `"a"`, `"a"`, badAnswer},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			args := "{}"
			if test.args != "" {
				args = `{"a":` + test.args + `}`
			}
			got := judge(t, "simple_python", test.properties, `{"a":`+test.right+`}`, args)
			if want := verdictOf(test.want); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func TestScoreOfSourceText(t *testing.T) {
	t.Parallel()
	plain := func(typ string) string { return fmt.Sprintf(`{"a":{"type":%q}}`, typ) }
	lists := func(typ, item string) string {
		return fmt.Sprintf(`{"a":{"type":%q,"items":{"type":%q}}}`, typ, item)
	}
	tests := []struct{ name, category, properties, right, args, want string }{
		{"java integer", "simple_java", plain("integer"), `[-7]`, `"-7"`, ""},
		{"java integer not as text", "simple_java", plain("integer"), `[7]`, `7`, notJavaText},
		{"java long", "simple_java", plain("long"), `[7]`, `"7L"`, ""},
		{"java long without its mark", "simple_java", plain("long"), `[7]`, `"7"`, wrongType},
		{"java float", "simple_java", plain("float"), `[2.5]`, `"2.5f"`, ""},
		{"java double", "simple_java", plain("double"), `[2500.0]`, `"2.5e3"`, ""},
		{"java boolean", "simple_java", plain("boolean"), `[true]`, `"true"`, ""},
		{"java variable", "simple_java", plain("boolean"), `["flag"]`, `"flag"`, ""},
		{"java any", "simple_java", plain("any"), `["this"]`, `"This"`, ""},
		{"java array", "simple_java", lists("Array", "integer"), `[[1,2]]`, `"new int[] { 1, 2 }"`, ""},
		{"java list", "simple_java", lists("ArrayList", "String"), `[["a","b"]]`, `"new ArrayList<>(Arrays.asList(\"a\", \"b\"))"`, ""},
		{"java list that adds", "simple_java", lists("ArrayList", "integer"), `[[1,2]]`, `"new ArrayList<Integer>() {{ add(1);\n add(2); }}"`, ""},
		{"java empty list", "simple_java", lists("ArrayList", "any"), `[[]]`, `"new ArrayList<>()"`, ""},
		{"java map", "simple_java", plain("HashMap"), `[{"k":["v"],"n":[1]}]`, `"new HashMap<String, Object>() {{ put(\"k\", \"v\"); put(\"n\", 1); }}"`, ""},
		{"java empty map", "simple_java", plain("HashMap"), `[{"k":[""]}]`, `"new HashMap<>()"`, ""},
		{"java map of literals", "simple_java", plain("HashMap"), `[{"a":[7],"b":[2.5],"c":[true],"d":["x"]}]`, `"new HashMap<>() {{ put(\"a\", 7L); put(\"b\", 2.5f); put(\"c\", true); put(\"d\", x); }}"`, ""},
		{"java list of another type", "simple_java", lists("ArrayList", "Set"), `[["a"]]`, `"new ArrayList<>(Arrays.asList(a))"`, badFunction},
		{"java array of lists", "simple_java", lists("Array", "Array"), `[["a"]]`, `"new int[][] {a}"`, wrongType},
		{"java set", "simple_java", plain("Set"), `["s"]`, `"s"`, badFunction},
		{"script text", "simple_javascript", plain("String"), `["a"]`, `"'a'"`, ""},
		{"script number not as text", "simple_javascript", plain("float"), `[1.0]`, `1.0`, notScriptText},
		{"script float", "simple_javascript", plain("float"), `[1.0]`, `"1"`, ""},
		{"script big integer", "simple_javascript", plain("Bigint"), `[5]`, `"5n"`, ""},
		{"script array", "simple_javascript", lists("array", "String"), `[["a","b"]]`, `"['a', \"b\"]"`, ""},
		{"script constructed array", "simple_javascript", lists("array", "integer"), `[[1,2]]`, `"new Array(1, 2)"`, ""},
		{"script table", "simple_javascript", lists("array", "array"), `[[[1,2],[3]]]`, `" [ [1, 2], [ 3 ] ]"`, ""},
		{"script object", "simple_javascript", plain("dict"), `[{"k":["v"],"l":[["a",2]],"m":[true]}]`, `"{k: 'v', \"l\": ['a', 2], m: true}"`, ""},
		{"script value with a comma", "simple_javascript", plain("dict"), `[{"k":["f(a, b)"]}]`, `"{k: f(a, b)}"`, ""},
		{"script empty object", "simple_javascript", plain("dict"), `[{}]`, `"{}"`, ""},
		{"script variable", "simple_javascript", plain("dict"), `["options"]`, `"options"`, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := judge(t, test.category, test.properties, `{"a":`+test.right+`}`, `{"a":`+test.args+`}`)
			if want := verdictOf(test.want); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func TestScorerReportsWhatItCannotJudge(t *testing.T) {
	t.Parallel()
	const question = `{"id":"%s","question":[[{"role":"user","content":"Do."}]],"function":%s}`
	const fn = `[{"name":"f","parameters":{"type":"dict","properties":{},"required":[]}}]`
	data := fstest.MapFS{
		"BFCL_v4_simple_python.json":               {Data: []byte("{")},
		"BFCL_v4_parallel.json":                    {Data: fmt.Appendf(nil, question, "p", fn)},
		"BFCL_v4_multiple.json":                    {Data: fmt.Appendf(nil, question, "m", fn)},
		"BFCL_v4_live_simple.json":                 {Data: fmt.Appendf(nil, question, "l", "[]")},
		"BFCL_v4_web_search.json":                  {Data: fmt.Appendf(nil, question, "w", "[]")},
		"possible_answer/BFCL_v4_parallel.json":    {Data: []byte(`{"id":"p","ground_truth":[]}`)},
		"possible_answer/BFCL_v4_multiple.json":    {Data: []byte(`{"id":"m","ground_truth":[{"g":{}}]}`)},
		"possible_answer/BFCL_v4_live_simple.json": {Data: []byte(`{"id":"l","ground_truth":[{"f":{}}]}`)},
	}
	s := NewScorer(data)
	for _, test := range []struct{ category, id, output, want string }{
		{"simple_python", "x", "[]", "data"},
		{"simple_java", "x", "[]", "category"},
		{"parallel", "q", "[]", "id"},
		{"parallel", "p", "[", "model_output"},
		{"parallel", "p", "[]", "answer"},
		{"multiple", "m", `[{"f":{}}]`, "function"},
		{"live_simple", "l", `[{"f":{}}]`, "function"},
		{"web_search", "w", "[]", "unscored"},
	} {
		for range 2 { // read, and kept
			if got, want := s.Score(test.category, test.id, []byte(test.output)), verdictOf(InputError+test.want); got != want {
				t.Errorf("%s %s: got %+v, want %+v", test.category, test.output, got, want)
			}
		}
	}
}

func TestNumberOrText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]kind{
		"1": integer, "+1": integer, " -1 ": integer, "1_000": integer, "1.": float, ".5": float, "1e5": float,
		"Infinity": float, "-nan": float, "": text, "+-1": text, "1__0": text, "0x1p4": text, "_1": text, "1_": text, "e5": text,
	} {
		if got := numberOrText(in); got.kind != want {
			t.Errorf("%q: got kind %d, want %d", in, got.kind, want)
		}
	}
}

func TestToolNamesAreTheWires(t *testing.T) {
	t.Parallel()
	n := names{}
	long := "a.very.long.name.that.goes.on.and.on.until.it.is.longer.than.what.the.wire.takes"
	for _, test := range []struct{ function, want string }{
		{"math.add", "math_add"},
		{"math_add", "math_add_2"},
		{"math/add", "math_add_3"},
		{"größe", "gr__e"},
		{"", "_"},
		{long, "a_very_long_name_that_goes_on_and_on_until_it_is_longer_than_wha"},
		{long + "s", "a_very_long_name_that_goes_on_and_on_until_it_is_longer_than_w_2"},
	} {
		got := n.add(test.function)
		if got != test.want {
			t.Errorf("%q: got %q, want %q", test.function, got, test.want)
		}
		if back := n.of(got); back != test.function {
			t.Errorf("%q: came back as %q", test.function, back)
		}
	}
	if got := n.of("other"); got != "other" {
		t.Errorf("a name of no tool came back as %q", got)
	}
}

func FuzzScore(f *testing.F) {
	f.Add("a", `[{"f":{"a":1}}]`)
	f.Add("new HashMap<>() {{ put(\"k\", 1L); }}", `[{"f":{"a":"x"},"g":null}]`)
	f.Add("{k: [1, 'a'], l: {m: n}}", `{}`)
	f.Add("new Array([1_0, .5], [+1])", `[[]]`)
	f.Fuzz(func(t *testing.T, source, output string) {
		for typ := range java.kinds {
			fromJava(source, typ, "")
			fromJava(source, typ, "ArrayList")
		}
		for typ := range javaScript.kinds {
			fromScript(source, typ, "")
			fromScript(source, typ, "array")
		}
		for _, category := range []string{"simple_python", "parallel_multiple", "multiple", "irrelevance"} {
			c := Case{Category: category}
			for _, raw := range []string{`{"f":{"a":[1,"x",""]}}`, `{"f":{"a":[{"k":[[1]]}]}}`} {
				v, err := readValue([]byte(raw))
				if err != nil {
					t.Fatal(err)
				}
				c.answers = append(c.answers, v)
			}
			fn, err := readValue([]byte(`{"name":"f","parameters":{"properties":{"a":{"type":"array","items":{"type":"dict"}}}}}`))
			if err != nil {
				t.Fatal(err)
			}
			c.functions = []value{fn}
			if v := c.Score([]byte(output)); v.Valid != (v.ErrorType == "") {
				t.Errorf("%s: %+v", category, v)
			}
		}
	})
}
