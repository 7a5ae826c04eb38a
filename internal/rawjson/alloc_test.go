package rawjson

import (
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/testdata"
)

// No t.Parallel: AllocsPerRun counts for the whole process.
func TestAllocations(t *testing.T) {
	testdata.CountsAllocations(t)
	small := []byte(smallObject)
	keys32 := manyKeys(32)
	nest := []byte(`{"a":{"b":{"c":{"d":[{"e":1},{"e":2}]}}}}`)
	text := []byte(`{"content":"` + strings.Repeat("Привет and more. ", 1000) + `"}`)
	escaped := []byte(`"a\n\u00e9\ud83d\ude80 and more"`)
	str := strings.Clone(string(text))
	buf := make([]byte, 0, 64<<10)
	tests := []struct {
		name string
		max  float64
		fn   func()
	}{
		{"Check small", 0, func() { Check(small, Limits{}) }},
		{"Check 32 keys", 0, func() { Check(keys32, Limits{}) }},
		{"Check nested", 0, func() { Check(nest, Limits{}) }},
		{"Check text", 0, func() { Check(text, Limits{}) }},
		{"Check of a string", 1, func() { Check([]byte(str), Limits{}) }},
		{"Check failing", 1, func() { Check(small[:100], Limits{}) }},
		{"Scan", 0, func() { Scan(small, 0) }},
		{"Members", 0, func() {
			for range Members(small) {
			}
		}},
		{"Get", 0, func() { Get(small, "note") }},
		{"AppendCompact", 0, func() { AppendCompact(buf, small) }},
		{"AppendQuote", 0, func() { AppendQuote(buf, "a\n\"é\u2028\xff and more") }},
		{"AppendUnquote", 0, func() { AppendUnquote(buf, escaped) }},
		{"AppendUnquoteLossy", 0, func() { AppendUnquoteLossy(buf, escaped) }},
		{"AppendCanonical", 5, func() { AppendCanonical(buf, small) }},
		{"AppendPython", 5, func() { AppendPython(buf, small) }},
	}
	for _, tt := range tests {
		if got := testing.AllocsPerRun(100, tt.fn); got > tt.max {
			t.Errorf("%s makes %v allocations, want at most %v", tt.name, got, tt.max)
		}
	}
}
