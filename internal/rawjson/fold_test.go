package rawjson_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/rawjson"
)

func TestHasFoldedNames(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{}`:                                     false,
		`7`:                                      false,
		`"a"`:                                    false,
		`{"a":1,"b":2}`:                          false,
		`{"a":1,"A":2}`:                          true,
		` { "a" : 1 , "A" : 2 } `:                true,
		`{"path":1,"p\u0041th":2}`:               true,
		`{"key":1,"\u212aey":2}`:                 true, // the Kelvin sign folds to k
		`{"store":1,"ſtore":2}`:                  true,
		`{"ς":1,"Σ":2}`:                          true,
		`{"straße":1,"STRASSE":2}`:               false, // full folding only
		`{"a":{"A":1}}`:                          false,
		`[{"a":1},{"A":1}]`:                      false,
		`[[{"x":[{"b":{},"B":[]}]}]]`:            true,
		`{"a":[1,{"b":"}"}],"c":"\"","d":{}}`:    false,
		`{"a":[1,{"b":"}"}],"c":"\"","A":{}}`:    true,
		`{"a":{"b":1},"c":{"b":1},"B":{"a":[]}}`: false,
		`{"":1," ":2}`:                           false,
	} {
		if err := rawjson.Check([]byte(text), rawjson.Limits{}); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if got := rawjson.HasFoldedNames([]byte(text)); got != want {
			t.Errorf("HasFoldedNames(%s) = %t, want %t", text, got, want)
		}
	}
}

// An object with more names than are compared one by one, inside others that are open.
func TestHasFoldedNamesOfManyNames(t *testing.T) {
	t.Parallel()
	for _, n := range []int{31, 32, 33, 64, 65, 3000} {
		var b strings.Builder
		b.WriteString(`{"outer":{"other":{`)
		for i := range n {
			fmt.Fprintf(&b, `"name%d":{"name%d":1},`, i, i)
		}
		open := b.String()
		if text := open + `"last":1}}}`; rawjson.HasFoldedNames([]byte(text)) {
			t.Errorf("%d names: distinct names are said to fold together", n)
		}
		if text := open + `"NAME0":1}}}`; !rawjson.HasFoldedNames([]byte(text)) {
			t.Errorf("%d names: NAME0 is not found beside name0", n)
		}
		if text := open + `"last":1}},"OUTER":2}`; !rawjson.HasFoldedNames([]byte(text)) {
			t.Errorf("%d names: OUTER is not found beside outer", n)
		}
	}
}

func FuzzHasFoldedNames(f *testing.F) {
	for _, s := range []string{`{"a":1,"A":2}`, `[{"k":{"\u212a":1}},{"x":[]}]`, `{"a":{"b":1,"c":[{"B":1}]}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got := rawjson.HasFoldedNames(b) // must not panic, whatever b is
		if rawjson.Check(b, rawjson.Limits{}) != nil {
			return
		}
		var v any
		d := json.NewDecoder(bytes.NewReader(b))
		d.UseNumber()
		if d.Decode(&v) != nil {
			return
		}
		if want := foldsTogether(v); got != want {
			t.Errorf("HasFoldedNames(%q) = %t, want %t", b, got, want)
		}
	})
}

func foldsTogether(v any) bool {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if foldsTogether(e) {
				return true
			}
		}
	case map[string]any:
		var names []string
		for name, e := range v {
			for _, other := range names {
				if strings.EqualFold(name, other) {
					return true
				}
			}
			names = append(names, name)
			if foldsTogether(e) {
				return true
			}
		}
	}
	return false
}
