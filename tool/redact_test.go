package tool

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestProjection(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, show string // paths, with a blank between them
		in, want   string // want "" where nothing may be shown
	}{
		{"everything", "*", `{"a":[1,{"b":null}]}`, `{"a":[1,{"b":null}]}`},
		{"everything, scalar", "*", `"x"`, `"x"`},
		{"fields", "a c", `{"a":1,"b":2,"c":[3]}`, `{"a":1,"c":[3]}`},
		{"white space goes with what is left out", "a", `{ "b" : 2 , "a" : { "x" : 1 } }`, `{"a":{ "x" : 1 }}`},
		{"nothing matches", "x", `{"a":1}`, ""},
		{"scalar", "a", `"x"`, ""},
		{"number", "a", `1`, ""},
		{"null holds nothing", "a", `null`, `null`},
		{"empty object", "a", `{}`, `{}`},
		{"empty array", "a", ` [ ] `, `[ ]`},
		{"a path", "a.b", `{"a":{"b":1,"c":2},"b":3}`, `{"a":{"b":1}}`},
		{"a path that ends early shows all below", "a", `{"a":{"b":{"c":2}}}`, `{"a":{"b":{"c":2}}}`},
		{"a path into a scalar", "a.b", `{"a":"secret","c":1}`, ""},
		{"a path into null", "a.b", `{"a":null}`, `{"a":null}`},
		{"a member that shows nothing is left out", "a.b c", `{"a":{"x":1},"c":1}`, `{"c":1}`},
		{"star, one level", "a.*.id", `{"a":{"x":{"id":1,"s":2},"y":{"id":3},"z":4}}`, `{"a":{"x":{"id":1},"y":{"id":3}}}`},
		{"star at the end", "a.*", `{"a":{"x":1,"y":{"z":2}}}`, `{"a":{"x":1,"y":{"z":2}}}`},
		{"star first", "*.id", `{"x":{"id":1,"s":2},"id":{"s":3}}`, `{"x":{"id":1}}`},
		{"star and name meet", "*.id a.s", `{"a":{"id":1,"s":2,"t":3},"b":{"id":4,"s":5}}`, `{"a":{"id":1,"s":2},"b":{"id":4}}`},
		{"array with star", "a.*.id", `{"a":[{"id":1,"s":2},{"id":3}]}`, `{"a":[{"id":1},{"id":3}]}`},
		{"array without star", "a.id", `{"a":[{"id":1,"s":2},{"id":3}]}`, `{"a":[{"id":1},{"id":3}]}`},
		{"array at the top", "id", `[{"id":1,"s":2}]`, `[{"id":1}]`},
		{"array at the top with star", "*.id", `[{"id":1,"s":2}]`, `[{"id":1}]`},
		{"a star at an array is for its elements alone", "*.id", `[{"id":1,"x":{"id":2}}]`, `[{"id":1}]`},
		{"a star is used up by the array", "a.*", `{"a":[{"s":1},2]}`, `{"a":[{"s":1},2]}`},
		{"elements that show nothing are left out", "a.id", `{"a":[{"id":1},{"s":2},"x",3]}`, `{"a":[{"id":1}]}`},
		{"array in array", "a.*.*.id", `{"a":[[{"id":1,"s":2}]]}`, `{"a":[[{"id":1}]]}`},
		{"array in array without stars", "a.id", `{"a":[[{"id":1,"s":2}]]}`, `{"a":[[{"id":1}]]}`},
		{"scalars of an array", "a.*", `{"a":[1,"x"]}`, `{"a":[1,"x"]}`},
		{"scalars of an array need their star", "a.b", `{"a":[1,"x"]}`, ""},
		{"empty list of results", "items.*.id", `{"items":[],"secret":1}`, `{"items":[]}`},
		{"case matters", "a", `{"A":1}`, ""},
		{"escaped keys", "a/b é", `{"a\/b":1,"\u00e9":2,"b":3}`, `{"a\/b":1,"\u00e9":2}`},
		{"a key that is a star", "a.b", `{"*":{"b":1},"a":{"b":2}}`, `{"a":{"b":2}}`},
		{"numbers keep their digits", "a", `{"a":1.10e+05}`, `{"a":1.10e+05}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, err := newProjection(strings.Fields(tt.show))
			if err != nil {
				t.Fatal(err)
			}
			got, ok := p.apply([]byte(strings.TrimSpace(tt.in)))
			if string(got) != tt.want || ok != (tt.want != "") {
				t.Errorf("%s shows %q %v of %s, want %q", tt.show, got, ok, tt.in, tt.want)
			}
		})
	}
}

// FuzzProjection: what is shown is JSON, nothing in it was not in the value, and projecting twice
// changes nothing.
func FuzzProjection(f *testing.F) {
	f.Add("a.b *.c", `{"a":{"b":1,"c":[{"c":2}]}}`)
	f.Add("a.*.*", `[{"a":[[1]]}]`)
	f.Add("*.*", `{"a":1}`)
	f.Fuzz(func(t *testing.T, show, in string) {
		p, err := newProjection(strings.Fields(show))
		if err != nil || !json.Valid([]byte(in)) {
			t.Skip()
		}
		in = strings.Trim(in, " \t\r\n")
		got, ok := p.apply([]byte(in))
		if !ok {
			if len(got) != 0 {
				t.Fatalf("%q shown of %s by %q, which shows nothing", got, in, show)
			}
			return
		}
		if !json.Valid(got) || len(got) > len(in) {
			t.Fatalf("%q of %s by %q", got, in, show)
		}
		again, ok := p.apply([]byte(string(got)))
		if !ok || string(again) != string(got) {
			t.Fatalf("%q, then %q of %s by %q", got, again, in, show)
		}
	})
}
