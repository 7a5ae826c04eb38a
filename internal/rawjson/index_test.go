package rawjson

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/testdata"
)

// longTexts are texts that have an Index.
func longTexts() map[string][]byte {
	long := strings.Repeat(`All \"work\" and no \\ play.\n`, 10)
	message := `{"role":"user","content":"` + long + `","n":[1,2,{"a":` + strings.Repeat(" ", 100) + `{}}],"é\"":null}`
	return map[string][]byte{
		"messages": []byte(` {"model":"m","messages":[` + strings.Repeat(message+" , ", 60) + `"x"],"stream":true}`),
		"deep":     []byte(strings.Repeat(`[`, 60) + strings.Repeat(`"`+long+`",`, 200) + `1` + strings.Repeat(`]`, 60)),
		"numbers":  []byte(`[` + strings.Repeat("1,", 10_000) + `1]`),
		"columns":  []byte(`[` + strings.Repeat(`[[[["`+strings.Repeat("x", 70)+`"]]]],`, 1000) + `1]`),
	}
}

// walked returns what the walk of a value with the index finds: all members and elements, at every level.
func walked(x *Index, v []byte) (out []string) {
	for key, value := range x.Members(v) {
		out = append(append(out, string(key)+"="+string(value)), walked(x, value)...)
		if got, ok := x.Get(v, Text(key)); !ok || string(got) != string(value) {
			out = append(out, "Get differs")
		}
	}
	for value := range x.Elements(v) {
		out = append(append(out, string(value)), walked(x, value)...)
	}
	return out
}

func TestIndexFindsWhatTheWalkWithoutItFinds(t *testing.T) {
	for name, text := range longTexts() {
		x, err := CheckIndexed(text, Limits{})
		if err != nil || x == nil || len(x.ends) == 0 {
			t.Fatalf("%s: %v, %v", name, x, err)
		}
		if got, want := walked(x, text), walked(nil, text); !slices.Equal(got, want) {
			t.Errorf("%s: %d values with the index, %d without", name, len(got), len(want))
		}
		// A part of another text with the same bytes is walked too, and a text that is not whole never panics.
		if got, want := walked(x, bytes.Clone(text)), walked(nil, text); !slices.Equal(got, want) {
			t.Errorf("%s: %d values of a copy, %d without the index", name, len(got), len(want))
		}
		for range 50 {
			from := rand.IntN(len(text))
			to := from + rand.IntN(len(text)-from)
			for range x.Members(text[from:to]) {
			}
			for range x.Elements(text[from:to]) {
			}
		}
	}
}

// The index of a text takes no more memory than the text, whatever the text.
func TestIndexIsBounded(t *testing.T) {
	for name, text := range longTexts() {
		x, _ := CheckIndexed(text, Limits{})
		if size := 4*len(x.heads) + 12*len(x.ends); size > len(text) {
			t.Errorf("%s: the index of %d bytes takes %d", name, len(text), size)
		}
	}
	if x, err := CheckIndexed([]byte(`{}`), Limits{}); x != nil || err != nil {
		t.Errorf("a short text: %v, %v", x, err)
	}
	if x, err := CheckIndexed(make([]byte, minIndexed), Limits{}); x != nil || err == nil {
		t.Errorf("a text that is not valid: %v, %v", x, err)
	}
}

// Walking the members of an object takes no time for the bytes of their values: no allocation, and the same number of steps
// whether the values are long or short.
func TestIndexAllocatesNothingWhenWalked(t *testing.T) {
	testdata.CountsAllocations(t)
	text := longTexts()["messages"]
	x, _ := CheckIndexed(text, Limits{})
	if n := testing.AllocsPerRun(100, func() {
		messages, _ := x.Get(text, "messages")
		for m := range x.Elements(messages) {
			for range x.Members(m) {
			}
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzIndex(f *testing.F) {
	for _, s := range fuzzTexts {
		f.Add([]byte(s), uint16(300))
	}
	f.Fuzz(func(t *testing.T, text []byte, n uint16) {
		if Check(text, Limits{}) != nil || len(text) > 1000 {
			return
		}
		long := []byte(`{"a":[` + strings.Repeat(string(text)+",", int(n)%300+minIndexed/(len(text)+1)) + `1]}`)
		x, err := CheckIndexed(long, Limits{})
		if want := Check(long, Limits{}); (err == nil) != (want == nil) || err != nil && *err.(*SyntaxError) != *want.(*SyntaxError) {
			t.Fatalf("CheckIndexed: %v, Check: %v", err, want)
		}
		if err == nil && !slices.Equal(walked(x, long), walked(nil, long)) {
			t.Errorf("the walk with the index differs for %d times %q", n, text)
		}
	})
}
