package rawjson

import (
	"fmt"
	"strings"
	"testing"
)

// trace describes what the methods of a Known return for a text, and for the parts of it.
func trace(k Known, text []byte) string {
	var out strings.Builder
	end, err := k.Scan(text, 0)
	fmt.Fprintf(&out, "%d %v\n", end, err)
	if err != nil {
		return out.String()
	}
	text = text[:end]
	for key, v := range k.Members(text) {
		got, ok := k.Get(text, Text(key))
		fmt.Fprintf(&out, "%s: %s; %s %v\n", key, v, got, ok)
		for el := range k.Elements(v) {
			fmt.Fprintf(&out, "- %s\n", el)
		}
	}
	for v := range k.Elements(text) {
		fmt.Fprintf(&out, "- %s\n", v)
	}
	return out.String()
}

var knownLiterals = []string{``, `""`, `"a"`, `","`, `"a\\"`, `"\""`, `"a \"b\" c"`, `":"`, `"\u0041\n"`, "\"\xff\""}

// What a Known tells is what the functions tell, also where its bytes stand in other strings or across several.
func TestKnownChangesNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`""`, `"a"`, `"a`, `"a\\"`, `"a\\\""`, `{"a":"a","b":["a","a \"b\" c","a \"b\" c d",{"a":"a"}],"a":",","c":"\"","d":["","",","]}`,
		`["x","y",":","\u0041\n","\u0041\n\n"]`, `{"a":"a"`, `["a" "a"]`, "{\"a\":\"\xff\",\"b\":\"\xff\xff\"}", `["a",]`, "[\"a\x01\"]", `{"a \"b\" c":"a \"b\" c"}x`} {
		want := trace(nil, []byte(text))
		for _, literal := range knownLiterals {
			if got := trace(Known(literal), []byte(text)); got != want {
				t.Errorf("%s with %s known:\n%s\nwant\n%s", text, literal, got, want)
			}
		}
	}
}

func FuzzKnown(f *testing.F) {
	for _, s := range fuzzTexts {
		f.Add([]byte(s), []byte(`a`))
	}
	f.Add([]byte(`{"a":"b\"c","d":["b\"c","b\"c\\"]}`), []byte(`b\"c`))
	f.Fuzz(func(t *testing.T, text, body []byte) {
		literal := append(append([]byte{'"'}, body...), '"')
		if end, err := Scan(literal, 0); err != nil || end != len(literal) {
			return
		}
		if got, want := trace(literal, text), trace(nil, text); got != want {
			t.Errorf("%q with %q known:\n%s\nwant\n%s", text, literal, got, want)
		}
	})
}
