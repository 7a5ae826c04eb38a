package rawjson

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/go-json-experiment/json/jsontext"
)

func TestAppendCanonical(t *testing.T) {
	t.Parallel()
	tests := []struct{ in, want string }{
		{` { "b" : 1 , "a" : [ ] , "" : { } } `, `{"":{},"a":[],"b":1}`},
		{`{"b":{"z":1,"y":[{"d":1,"c":2}]},"a":1}`, `{"a":1,"b":{"y":[{"c":2,"d":1}],"z":1}}`},
		{`{"\u0062":1,"a":2}`, `{"a":2,"b":1}`},
		{`{"aa":1,"a":2,"A":3,"a\u0000":4}`, `{"A":3,"a":2,"a\u0000":4,"aa":1}`},
		// UTF-16 puts U+1F600 (d83d) before U+E000 and U+FB33; bytes do not.
		{"{\"\ufb33\":1,\"😀\":2,\"\ue000\":3,\"\ud7ff\":4,\"z\":5}", "{\"z\":5,\"\ud7ff\":4,\"😀\":2,\"\ue000\":3,\"\ufb33\":1}"},
		{"{\"\\ufb33\":1,\"\\ud83d\\ude00\":2}", "{\"😀\":2,\"\ufb33\":1}"},
		{`"\u0041\/\u002f\u0008\u000C\u000a\u000d\u0009\u0022\u005c\u001F\u007f\u2028\u00e9\ud83d\ude80"`,
			"\"A//\\b\\f\\n\\r\\t\\\"\\\\\\u001f\x7f\u2028é🚀\""},
		{`"\b\f\n\r\t\"\\"`, `"\b\f\n\r\t\"\\"`},
		{` true `, `true`}, {`[null,false]`, `[null,false]`},
	}
	for _, tt := range tests {
		got, err := AppendCanonical([]byte("x"), []byte(tt.in))
		if err != nil || string(got) != "x"+tt.want {
			t.Errorf("AppendCanonical(%s) = %s, %v; want x%s", tt.in, got, err, tt.want)
		}
	}
	for in, kind := range map[string]string{
		`{"a":1,"a":2}`: KindDuplicate, `"\ud800"`: KindSurrogate, "\"\xff\"": KindUTF8, `[1,]`: KindCharacter,
		strings.Repeat("[", 65) + strings.Repeat("]", 65): KindDeep, ``: KindEmpty,
	} {
		got, err := AppendCanonical([]byte("x"), []byte(in))
		var se *SyntaxError
		if !errors.As(err, &se) || se.Kind != kind || string(got) != "x" {
			t.Errorf("AppendCanonical(%q) = %q, %v; want %s", in, got, err, kind)
		}
	}
}

func TestCanonicalNumbers(t *testing.T) {
	t.Parallel()
	tests := []struct{ in, want string }{
		{"0", "0"}, {"-0", "0"}, {"0.0", "0"}, {"-0.0e5", "0"}, {"0e99999999999999999999", "0"},
		{"1", "1"}, {"-1", "-1"}, {"1.0", "1"}, {"10e-1", "1"}, {"100", "100"}, {"1e2", "100"},
		{"0.1", "0.1"}, {"-0.50", "-0.5"}, {"12.340", "12.34"}, {"1234.5e-2", "12.345"},
		{"333333333.33333329", "333333333.3333333"}, {"1E30", "1e+30"}, {"4.50", "4.5"}, {"2e-3", "0.002"},
		{"0.000000000000000000000000001", "1e-27"},
		{"0.000001", "0.000001"}, {"0.0000001", "1e-7"}, {"1.5e-7", "1.5e-7"}, {"-1e-7", "-1e-7"},
		{"1e20", "100000000000000000000"}, {"1e21", "1e+21"}, {"-1.25e21", "-1.25e+21"}, {"123e19", "1.23e+21"},
		{"5e-324", "5e-324"}, {"1.7976931348623157e308", "1.7976931348623157e+308"},
		{"0.1000000000000000055511151231257827", "0.1"}, {"9007199254740991", "9007199254740991"},
		{"9007199254740992", "9007199254740992"}, {"9007199254740992.5", "9007199254740992"},
		{"999999999999999", "999999999999999"}, {"1000000000000000", "1000000000000000"}, {"-1000000000000000", "-1000000000000000"},
		// Numbers that the nearest double would make another number keep their digits.
		{"9007199254740993", "9007199254740993"}, {"-9007199254740993", "-9007199254740993"},
		{"9007199254740993.0", "9007199254740993"}, {"9.007199254740993e15", "9007199254740993"},
		{"1152921504606846976", "1152921504606846976"}, {"1152921504606847000", "1152921504606847000"},
		{"18446744073709551615", "18446744073709551615"}, {"12345678901234567890", "12345678901234567890"},
		{"1234567890123456789012", "1.234567890123456789012e+21"},
		{"1e400", "1e+400"}, {"-10e399", "-1e+400"}, {"1" + strings.Repeat("0", 400), "1e+400"},
		{"1.5e-400", "1.5e-400"}, {"1e999999999999999", "1e+999999999999999"},
		{"1E9999999999999999999", "1E9999999999999999999"},
	}
	for _, tt := range tests {
		got, err := AppendCanonical(nil, []byte(tt.in))
		if err != nil || string(got) != tt.want {
			t.Errorf("AppendCanonical(%.40s) = %s, %v; want %s", tt.in, got, err, tt.want)
		}
		again, err := AppendCanonical(nil, got)
		if err != nil || string(again) != string(got) {
			t.Errorf("AppendCanonical(%s) = %s, %v; want itself", got, again, err)
		}
	}
}

func TestCanonicalIntegersNeverCollide(t *testing.T) {
	t.Parallel()
	seen := make(map[string]string)
	for _, base := range []uint64{1 << 53, 1 << 54, 1 << 60, 1 << 63, 1152921504606847000, 100000000000000000} {
		for d := range uint64(600) {
			in := fmt.Sprint(base - 300 + d)
			got, err := AppendCanonical(nil, []byte(in))
			if err != nil {
				t.Fatal(err)
			}
			if other, ok := seen[string(got)]; ok && other != in {
				t.Fatalf("%s and %s are both %s", in, other, got)
			}
			seen[string(got)] = in
		}
	}
}

func TestCompareUTF16IsTheOrderOfUnits(t *testing.T) {
	t.Parallel()
	sample := []rune{0, 'a', 'b', 0x7f, 0x80, 0x7ff, 0x800, 0xd7ff, 0xe000, 0xfb33, 0xffff, 0x10000, 0x1f600, 0x10ffff}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		word := func() string {
			var w []rune
			for range rng.IntN(4) {
				w = append(w, sample[rng.IntN(len(sample))])
			}
			return string(w)
		}
		x, y := word(), word()
		want := slices.Compare(utf16.Encode([]rune(x)), utf16.Encode([]rune(y)))
		got := compareUTF16([]byte(x), []byte(y))
		if min(max(got, -1), 1) != want {
			t.Fatalf("compareUTF16(%+q, %+q) = %d, want %d", x, y, got, want)
		}
	}
}

func TestAppendPython(t *testing.T) {
	t.Parallel()
	// The wanted forms are what CPython 3.11 prints.
	tests := []struct{ in, want string }{
		{`{}`, `{}`}, {` [ ] `, `[]`}, {`""`, `""`}, {`true`, `true`}, {`null`, `null`},
		{`{"q":"weather"}`, `{"q": "weather"}`},
		{`{"b":1,"a":2}`, `{"a": 2, "b": 1}`},
		{`{"city":"Köln"}`, `{"city": "K\u00f6ln"}`},
		{`{"n":1.0,"m":1e16,"t":true,"z":null,"l":[1,"a"]}`, `{"l": [1, "a"], "m": 1e+16, "n": 1.0, "t": true, "z": null}`},
		{"{\"lone\":\"<&>\u2028\"}", `{"lone": "<&>\u2028"}`},
		{`{"a":[{"c":1,"b":[]},2],"B":{}}`, `{"B": {}, "a": [{"b": [], "c": 1}, 2]}`},
		{`"\/\u002F\u0041\u0022\u005C\b\f\n\r\t\u0008\u001f\u007F\u0080é🚀"`, `"//A\"\\\b\f\n\r\t\b\u001f\u007f\u0080\u00e9\ud83d\ude80"`},
		{"\"\x7f\"", `"\u007f"`},
		{`{"a":1,"b":2,"\u0061":3,"a":4}`, `{"a": 4, "b": 2}`},
		{`{"b":{"x":1},"b":{"y":2},"a":0}`, `{"a": 0, "b": {"y": 2}}`},
		{`"\ud800"`, `"\ud800"`}, {`{"\ud800":1,"\ue000":2,"😀":3,"\udfff":4,"é":5}`, `{"\u00e9": 5, "\ud800": 1, "\udfff": 4, "\ue000": 2, "\ud83d\ude00": 3}`},
		// Code points, not UTF-16 units.
		{"{\"😀\":1,\"\ufb33\":2}", `{"\ufb33": 2, "\ud83d\ude00": 1}`},
	}
	for _, tt := range tests {
		got, err := AppendPython([]byte("x"), []byte(tt.in))
		if err != nil || string(got) != "x"+tt.want {
			t.Errorf("AppendPython(%s) = %s, %v; want x%s", tt.in, got, err, tt.want)
		}
	}
	for _, in := range []string{``, `{`, `[1,]`, `NaN`, "\"\xff\"", "\"\n\"", strings.Repeat("[", 65) + strings.Repeat("]", 65)} {
		if got, err := AppendPython([]byte("x"), []byte(in)); err == nil || string(got) != "x" {
			t.Errorf("AppendPython(%.20q) = %q, %v; want an error", in, got, err)
		}
	}
}

func TestPythonNumbers(t *testing.T) {
	t.Parallel()
	tests := []struct{ in, want string }{
		{"0", "0"}, {"-0", "0"}, {"-1", "-1"}, {"9007199254740993", "9007199254740993"},
		{"123456789012345678901234567890", "123456789012345678901234567890"},
		{"0.0", "0.0"}, {"-0.0", "-0.0"}, {"-0e0", "-0.0"}, {"1.0", "1.0"}, {"1.50", "1.5"}, {"1e2", "100.0"}, {"1E+2", "100.0"},
		{"1e15", "1000000000000000.0"}, {"1e16", "1e+16"}, {"9999999999999998.0", "9999999999999998.0"},
		{"12345678901234567.0", "1.2345678901234568e+16"}, {"1e22", "1e+22"}, {"1e100", "1e+100"}, {"1.5e300", "1.5e+300"},
		{"0.0001", "0.0001"}, {"0.00001", "1e-05"}, {"0.00012", "0.00012"}, {"1e-5", "1e-05"}, {"1.25e-7", "1.25e-07"},
		{"-1e-5", "-1e-05"}, {"5e-324", "5e-324"}, {"1e-400", "0.0"}, {"-1e-400", "-0.0"},
		{"0.1", "0.1"}, {"0.30000000000000004", "0.30000000000000004"}, {"3.141592653589793238", "3.141592653589793"},
		{"1e999", "Infinity"}, {"-1e999", "-Infinity"}, {"1e999999999999", "Infinity"},
	}
	for _, tt := range tests {
		got, err := AppendPython(nil, []byte(tt.in))
		if err != nil || string(got) != tt.want {
			t.Errorf("AppendPython(%s) = %s, %v; want %s", tt.in, got, err, tt.want)
		}
	}
}

// Values are equal, or not, by their exact numbers.
func TestEqual(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{`{"a":1,"b":[null,true]}`, `{ "b":[null,true], "a":1 }`, true}, {`9007199254740993`, `9007199254740992`, false}, {`1.0`, `1`, true},
		{`0.30000000000000004`, `0.3`, false}, {`"\u0061"`, `"a"`, true}, {`"1"`, `1`, false}, {`[1]`, `[1,2]`, false}, {`{}`, `[]`, false},
		{`{"a":1}`, `{"b":1}`, false}, {`1e400000000`, `1e400000001`, false}, {`x`, `x`, false}, {`true`, `true`, true},
	} {
		if Equal([]byte(c.a), []byte(c.b)) != c.same {
			t.Errorf("%s and %s: same %v", c.a, c.b, !c.same)
		}
	}
}

// Both forms of an object do not depend on the order in which its keys came, at any size.
func TestFormsDoNotDependOnOrder(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{1, 2, 15, 16, 17, 40, 300} {
		var parts []string
		for i := range n {
			key := fmt.Sprintf("k%d", i)
			if i%3 == 0 {
				key = fmt.Sprintf(`\u006b%d\n`, i)
			}
			parts = append(parts, fmt.Sprintf(`"%s":{"b":%d,"a":["%s"]}`, key, i, key))
		}
		var canonical, python []byte
		for range 5 {
			rng.Shuffle(n, func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
			text := []byte("{" + strings.Join(parts, ",") + "}")
			c, err := AppendCanonical(nil, text)
			if err != nil {
				t.Fatal(err)
			}
			p, err := AppendPython(nil, text)
			if err != nil {
				t.Fatal(err)
			}
			if canonical != nil && !bytes.Equal(c, canonical) {
				t.Errorf("%d keys: canonical form %.80s, then %.80s", n, canonical, c)
			}
			if python != nil && !bytes.Equal(p, python) {
				t.Errorf("%d keys: python form %.80s, then %.80s", n, python, p)
			}
			canonical, python = c, p
		}
	}
}

// Numbers that doubles hold are written as other writers of RFC 8785 write them.
func TestCanonicalNumbersAgreeWithJSONText(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 6))
	for range 50_000 {
		f := math.Float64frombits(rng.Uint64())
		if rng.IntN(2) == 0 {
			f = math.Ldexp(float64(rng.Int64N(1<<53)), -rng.IntN(80))
		}
		if math.IsNaN(f) || math.IsInf(f, 0) {
			continue
		}
		text := strconv.AppendFloat(nil, f, "efg"[rng.IntN(3)], -1, 64)
		want := jsontext.Value(bytes.Clone(text))
		if err := want.Canonicalize(); err != nil {
			t.Fatal(err)
		}
		if got, err := AppendCanonical(nil, text); err != nil || string(got) != string(want) {
			t.Errorf("AppendCanonical(%s) = %s, %v; jsontext has %s", text, got, err, want)
		}
	}
}
