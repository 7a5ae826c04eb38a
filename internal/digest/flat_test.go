package digest

import (
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/rawjson"
)

var flatTexts = []string{
	`{}`, ` { } `, `{"a":1}`, `{"b":1,"a":2}`, "\t{ \"b\" : \"x\" ,\n\"a\" : true , \"c\":null,\"d\":false }\r",
	`{"n":0,"m":-5,"k":123456789012345678}`, `{"x":48.85,"y":-0.5,"z":1.0,"w":0.25,"v":10.0}`, `{"":""}`, `{"b":[],"a":[ ],"d":[1],"c":[ "x" ,true,null, -2.5 ]}`,
	`{"key":"exactly8","longer":"sixteen chars ok","k":"12345678901234567890"}`, `{"aa":1,"a":2,"aaa":3}`,
	`{"city":"Paris","days":3,"units":"metric","note":"sixty four bytes or so"}`,
}

// What is read here is written as rawjson writes it; the rest is left to rawjson.
func TestFlat(t *testing.T) {
	t.Parallel()
	for _, text := range flatTexts {
		want, err := rawjson.AppendPython(nil, []byte(text))
		got, ok := appendFlat([]byte("before"), []byte(text))
		if err != nil || !ok || string(got) != "before"+string(want) {
			t.Errorf("%s: got %s %v, want %s %v", text, got, ok, want, err)
		}
	}
	for _, text := range []string{
		``, ` `, `{`, `}`, `[]`, `1`, `{"a"}`, `{"a":}`, `{"a":1`, `{"a":1,}`, `{,}`, `{"a":1}x`, `{"a":1 2}`, `{"a":tru}`, `{"a":nul`, `{a:1}`, `{"a":1,"b"`,
		`{"a":1,"a":2}`, `{"b":1,"a":2,"b":3}`, `{"a":[1}`, `{"a":[1,]}`, `{"a":[`, `{"a":[1 2]}`, `{"a":[,1]}`, `{"a":[[1]]}`, `{"a":[{}]}`, `{"a":{"b":1}}`, `{"a":[1e5]}`, `{"a":"\n"}`, `{"a":"é"}`, "{\"a\":\"\x7f\"}", "{\"a\":\"\x01\"}", "{\"é\":1}", "{\"a\":\"\xff1234567\"}",
		`{"a":-0}`, `{"a":01}`, `{"a":-}`, `{"a":-01}`, `{"a":1e3}`, `{"a":1.5E3}`, `{"a":1.}`, `{"a":.5}`, `{"a":1.50}`, `{"a":0.05}`, `{"a":0.0}`, `{"a":1.00}`, `{"a":-0.0}`,
		`{"a":1234567890123456789}`, `{"a":1234567890.123456}`, `{"a":NaN}`, `{"a":"` + strings.Repeat("x", maxFlatBytes) + `"}`,
		`{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1,"k":1,"l":1,"m":1,"n":1,"o":1,"p":1,"q":1}`,
	} {
		if got, ok := appendFlat(nil, []byte(text)); ok {
			t.Errorf("%s: got %s", text, got)
		}
	}
}

func FuzzFlat(f *testing.F) {
	for _, text := range flatTexts {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, ok := appendFlat(nil, text)
		if !ok {
			return
		}
		if want, err := rawjson.AppendPython(nil, text); err != nil || string(got) != string(want) {
			t.Errorf("got %s, want %s, %v", got, want, err)
		}
		if err := rawjson.Check(text, rawjson.Limits{MaxDepth: FlatDepth, MaxKeys: FlatKeys}); err != nil {
			t.Errorf("%s is flat, and %v", text, err)
		}
	})
}

// Every byte, at every place of a word, ends a string or does not as rawjson says.
func TestFlatStrings(t *testing.T) {
	t.Parallel()
	for c := range 256 {
		for at := range 20 {
			text := []byte(`{"k":"aaaaaaaaaaaaaaaaaaaa"}`)
			text[6+at] = byte(c)
			want, err := rawjson.AppendPython(nil, text)
			if got, ok := appendFlat(nil, text); ok && (err != nil || string(got) != string(want)) || !ok && c >= ' ' && c <= '~' && c != '"' && c != '\\' {
				t.Fatalf("%q: got %s %v, want %s %v", text, got, ok, want, err)
			}
		}
	}
}
