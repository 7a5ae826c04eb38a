package rawjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestCheckReportsWhereAndWhy(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text   string
		kind   string
		offset int
	}{
		{"", KindEmpty, 0},
		{" \t\r\n", KindEmpty, 4},
		{"\v1", KindCharacter, 0},
		{"\u00a01", KindCharacter, 0},
		{"\ufeff{}", KindCharacter, 0},
		{"[", KindEnd, 1},
		{"[1", KindEnd, 2},
		{"[1,", KindEnd, 3},
		{"[1,]", KindCharacter, 3},
		{"[,1]", KindCharacter, 1},
		{"[1 2]", KindCharacter, 3},
		{"[1}", KindCharacter, 2},
		{"]", KindCharacter, 0},
		{"{", KindEnd, 1},
		{`{"a"`, KindEnd, 4},
		{`{"a":`, KindEnd, 5},
		{`{"a":1`, KindEnd, 6},
		{`{"a":1,`, KindEnd, 7},
		{`{"a":1,}`, KindCharacter, 7},
		{`{a:1}`, KindCharacter, 1},
		{`{'a':1}`, KindCharacter, 1},
		{`{"a" 1}`, KindCharacter, 5},
		{`{"a":1]`, KindCharacter, 6},
		{`{1:1}`, KindCharacter, 1},
		{`// no`, KindCharacter, 0},
		{`{} {}`, KindTrailing, 3},
		{`1 x`, KindTrailing, 2},
		{"1\x00", KindTrailing, 1},
		{"tru", KindEnd, 3},
		{"trux", KindLiteral, 0},
		{"tx", KindLiteral, 0},
		{"nul", KindEnd, 3},
		{"[nulll]", KindCharacter, 5},
		{"False", KindCharacter, 0},
		{"NaN", KindCharacter, 0},
		{"-Infinity", KindNumber, 0},
		{"-", KindEnd, 1},
		{"-x", KindNumber, 0},
		{"+1", KindCharacter, 0},
		{".5", KindCharacter, 0},
		{"01", KindNumber, 0},
		{"-01", KindNumber, 0},
		{"[1.]", KindNumber, 1},
		{"1.", KindEnd, 2},
		{"[1e]", KindNumber, 1},
		{"1e", KindEnd, 2},
		{"1e+", KindEnd, 3},
		{"1.5.5", KindTrailing, 3},
		{"0x1", KindTrailing, 1},
		{`"`, KindEnd, 1},
		{`"a`, KindEnd, 2},
		{`"a\`, KindEnd, 3},
		{`"a\"`, KindEnd, 4},
		{"\"a\nb\"", KindControl, 2},
		{"\"a\x00b\"", KindControl, 2},
		{"\"eight bytes\x1f and on\"", KindControl, 12},
		{`"\x41"`, KindEscape, 1},
		{`"\'"`, KindEscape, 1},
		{`"\u12g4"`, KindEscape, 1},
		{`"\u123`, KindEnd, 6},
		{`"\U0041"`, KindEscape, 1},
		{"\"a\xff\"", KindUTF8, 2},
		{"\"\xc3\"", KindUTF8, 1},
		{"\"\xed\xa0\x80\"", KindUTF8, 1},
		{"\"\xf4\x90\x80\x80\"", KindUTF8, 1},
		{"\"\xc0\xaf\"", KindUTF8, 1},
		{"\"é\\n\xe2\x82\"", KindUTF8, 5},
		{`"\ud800"`, KindSurrogate, 1},
		{`"\udc00"`, KindSurrogate, 1},
		{`"\ud800\ud800"`, KindSurrogate, 1},
		{`"\ud800\n"`, KindSurrogate, 1},
		{`"\ud800 \udc00"`, KindSurrogate, 1},
		{`"\udc00\ud800"`, KindSurrogate, 1},
		{`"\ud83d\ude8x"`, KindEscape, 7},
		{`{"a":1,"a":2}`, KindDuplicate, 7},
		{`{"a":1,"\u0061":2}`, KindDuplicate, 7},
		{`{"\u0061":1,"a":2}`, KindDuplicate, 12},
		{`{"\u0061":1,"\u0061":2}`, KindDuplicate, 12},
		{`{"":1,"":2}`, KindDuplicate, 6},
		{`{"\/":1,"/":2}`, KindDuplicate, 8},
		{`{"é":1,"\u00e9":2}`, KindDuplicate, 8},
		{`{"🚀":1,"\ud83d\ude80":2}`, KindDuplicate, 10},
		{`{"a":{"b":1,"c":2,"b":3}}`, KindDuplicate, 18},
		{`{"a":{"x":1},"b":{"x":1},"a":0}`, KindDuplicate, 25},
		{`[{"a":1},{"a":1,"a":1}]`, KindDuplicate, 16},
		{`{"\ud800":1}`, KindSurrogate, 2},
	}
	for _, tt := range tests {
		err := Check([]byte(tt.text), Limits{})
		var se *SyntaxError
		if !errors.As(err, &se) {
			t.Errorf("Check(%q) = %v, want %s", tt.text, err, tt.kind)
			continue
		}
		if se.Kind != tt.kind || se.Offset != tt.offset {
			t.Errorf("Check(%q) says %s at %d, want %s at %d", tt.text, se.Kind, se.Offset, tt.kind, tt.offset)
		}
	}
}

func TestCheckAccepts(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`0`, `-0`, `-0.0e-0`, `1E400`, `1e-99999999999999999999`, strings.Repeat("9", 5000), ` null `, "\r\n\t [ ]",
		`""`, `"\"\\\/\b\f\n\r\t\u0000"`, "\"\x7f\"", `"\ud83d\ude80\uFFFF"`, "\"\u2028\"",
		`{"":0," ":0}`, `{"a":1,"A":2}`, `{"a":{"a":{"a":1}}}`, `{"a":[{"a":1},{"a":1}],"b":{"a":1}}`,
		"{\"\u00e9\":1,\"e\u0301\":2}", // composed and decomposed are two keys
		`{"__proto__":{"x":1},"constructor":1}`,
		`{"a\u0000":1,"a":2}`,
	} {
		if err := Check([]byte(text), Limits{}); err != nil {
			t.Errorf("Check(%.60q): %v", text, err)
		}
	}
}

func TestSyntaxErrorShowsNothingOfTheText(t *testing.T) {
	t.Parallel()
	err := Check([]byte(`{"password":"hunter2","password":"x"}`), Limits{})
	if got, want := err.Error(), "invalid JSON at byte 22: duplicate_key"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func nested(open, inner, end string, n int) []byte {
	return []byte(strings.Repeat(open, n) + inner + strings.Repeat(end, n))
}

func TestCheckLimits(t *testing.T) {
	t.Parallel()
	for _, lim := range []int{1, 2, DefaultMaxDepth, 1000} {
		for _, d := range []struct{ open, inner, end string }{
			{"[", "", "]"}, {"[", "0", "]"}, {`{"a":`, "{}", "}"}, {`{"a":`, `""`, "}"}, {`[{"k":0,"l":`, "1", "}]"},
		} {
			for n := 1; n <= lim+1; n++ {
				text := nested(d.open, d.inner, d.end, n)
				depth := strings.Count(d.open+d.inner, "[") + strings.Count(d.open+d.inner, "{")
				if d.inner == "{}" {
					depth = n + 1
				} else {
					depth *= n
				}
				if depth < lim-1 || depth > lim+2 {
					continue
				}
				want := "accept"
				if depth > lim {
					want = KindDeep
				}
				if got := verdict(Check(text, Limits{MaxDepth: lim})); got != want {
					t.Errorf("MaxDepth %d, depth %d of %s: %s, want %s", lim, depth, d.open, got, want)
				}
			}
		}
	}
	for _, lim := range []int{1, 2, fewKeys - 1, fewKeys, fewKeys + 1, 64, DefaultMaxKeys} {
		for n := max(lim-1, 1); n <= lim+1; n++ {
			want := "accept"
			if n > lim {
				want = KindKeys
			}
			if got := verdict(Check(manyKeys(n), Limits{MaxKeys: lim})); got != want {
				t.Errorf("MaxKeys %d, %d keys: %s, want %s", lim, n, got, want)
			}
		}
	}
	for _, lim := range []Limits{{}, {MaxDepth: -1, MaxKeys: -1}} {
		for n, want := range map[int]string{63: "accept", 64: "accept", 65: KindDeep} {
			if got := verdict(Check(nested("[", "", "]", n), lim)); got != want {
				t.Errorf("default depth, %d: %s, want %s", n, got, want)
			}
		}
		for n, want := range map[int]string{9_999: "accept", 10_000: "accept", 10_001: KindKeys} {
			if got := verdict(Check(manyKeys(n), lim)); got != want {
				t.Errorf("default keys, %d: %s, want %s", n, got, want)
			}
		}
	}
}

// Objects of every size around the change from comparing to a map, with the duplicate at either end.
func TestCheckFindsDuplicatesAtEverySize(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 31, 32, 33, 34, 63, 64, 65, 66, 100, 1000} {
		for _, of := range []int{0, n / 2, n - 1} {
			for _, form := range []string{`"key%d"`, `"\u006bey%d"`} {
				text := slices.Concat(manyKeys(n)[:len(manyKeys(n))-1], []byte(","))
				at := len(text)
				text = append(text, fmt.Sprintf(form+":0}", of)...)
				var se *SyntaxError
				if err := Check(text, Limits{}); !errors.As(err, &se) || se.Kind != KindDuplicate || se.Offset != at {
					t.Errorf("%d keys, again key %d as %s: %v, want duplicate_key at %d", n, of, form, err, at)
				}
			}
		}
	}
}

// An object inside a big one must neither see its keys nor lose them.
func TestCheckKeepsOuterKeys(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 20, 31, 32, 33, 70} {
		inner := string(manyKeys(n))
		for outer := range 5 {
			text := `{"key0":0,"\u0078":` + strings.Repeat(`{"key0":0,"\u0078":`, outer) + inner + strings.Repeat(`,"y":1}`, outer)
			if err := Check([]byte(text+`,"y":1}`), Limits{}); err != nil {
				t.Errorf("%d keys %d deep: %v", n, outer, err)
			}
			for _, again := range []string{"key0", "x"} {
				if got := verdict(Check([]byte(text+`,"`+again+`":1}`), Limits{})); got != KindDuplicate {
					t.Errorf("%d keys %d deep, %s again: %s", n, outer, again, got)
				}
			}
		}
	}
}

// Not parallel: it measures what the process allocates.
func TestScanOfDeepNestingTakesLittleMemory(t *testing.T) {
	deep := nested("[", "", "]", 1_000_000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _ = Scan(deep, 0)
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 16<<20 {
		t.Errorf("Scan of a million arrays takes %d bytes", got)
	}
}

// With a quadratic search these would take minutes.
func TestCheckIsLinear(t *testing.T) {
	t.Parallel()
	text := manyKeys(300_000)
	if err := Check(text, Limits{MaxKeys: 300_000}); err != nil {
		t.Error(err)
	}
	var same bytes.Buffer // keys that agree in length, first, middle and last byte
	for i := range 100_000 {
		fmt.Fprintf(&same, `,"k%06dxxxx%06dk":0`, i, 999_999-i)
	}
	text = append([]byte(`{"":0`), same.Bytes()...)
	if err := Check(append(text, '}'), Limits{MaxKeys: 200_000}); err != nil {
		t.Error(err)
	}
	if end, err := Scan(nested("[", "", "]", 1_000_000), 0); err != nil || end != 2_000_000 {
		t.Errorf("Scan of a million arrays = %d, %v", end, err)
	}
}

func TestHostileVectors(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/hostile.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Literal   []struct{ Name, JSON, Expect string }
		Generated []struct{ Name string }
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	literal := map[string]string{
		"case-folded duplicate": "accept", // two keys; readers match by exact case only
		"escaped duplicate":     KindDuplicate,
		"lone surrogate":        KindSurrogate,
		"huge exponent":         "accept", // kept as text
		"trailing garbage":      KindTrailing,
		"empty arguments":       KindEmpty, // whether that means {} is the caller's to say
		"double-encoded":        "accept",  // a string, no object
		"proto keys":            "accept",
		"NaN":                   KindCharacter,
		"raw control char":      KindControl,
	}
	for _, c := range file.Literal {
		got := verdict(Check([]byte(c.JSON), Limits{}))
		want, ok := literal[c.Name]
		if !ok && strings.HasPrefix(c.Expect, "reject") && !strings.Contains(c.Expect, " or ") && got == "accept" {
			t.Errorf("%s: accept, and the case says %q", c.Name, c.Expect)
		}
		if ok && got != want {
			t.Errorf("%s: %s, want %s", c.Name, got, want)
		}
	}
	generated := map[string]func() string{
		"deep arrays": func() string { return verdict(Check(bytes.Repeat([]byte("["), 100_000), Limits{})) },
		"many keys":   func() string { return verdict(Check(manyKeys(1_000_000), Limits{})) },
		"long string": func() string {
			return verdict(Check(slices.Concat([]byte(`"`), bytes.Repeat([]byte("x"), 64<<20), []byte(`"`)), Limits{}))
		},
	}
	want := map[string]string{"deep arrays": KindDeep, "many keys": KindKeys, "long string": "accept"}
	// The other generated cases are about assembly and schemas, which this package does not have.
	for _, c := range file.Generated {
		check, ok := generated[c.Name]
		if !ok {
			continue
		}
		delete(generated, c.Name)
		if got := check(); got != want[c.Name] {
			t.Errorf("%s: %s, want %s", c.Name, got, want[c.Name])
		}
	}
	if len(generated) > 0 {
		t.Errorf("%d generated cases are gone from the vectors", len(generated))
	}
}
