package schema

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// counting is a regular expression that counts how often it is used.
type counting struct{ used *int }

func (c counting) String() string { return "" }

func (c counting) MatchString(string) bool { return true }

func (c counting) match(string) (bool, time.Duration, error) { *c.used++; return true, 0, nil }

// The names of a value are not matched with patterns once it is known to cost too much.
func TestCostIsCountedWithoutPatterns(t *testing.T) {
	t.Parallel()
	used := 0
	root := &jsonschema.Schema{PatternProperties: map[jsonschema.Regexp]*jsonschema.Schema{counting{&used}: {}}}
	for fixed, want := range map[int]int{0: 2, maxWork: 0} {
		used = 0
		w := &workload{fixed: map[*jsonschema.Schema]int{root: fixed}}
		c := counter{workload: w, known: map[application]int{}}
		if n := c.cost(root, newItem(map[string]any{"a": nil, "b": nil})); (n > maxWork) != (want == 0) || used != want {
			t.Errorf("fixed cost %d: cost %d, %d matches, want %d", fixed, n, used, want)
		}
	}
}

// A timed is a regular expression whose attempts take the given times, in milliseconds.
type timed struct{ attempts []int }

func (p *timed) String() string { return "" }

func (p *timed) MatchString(string) bool { return true }

func (p *timed) match(string) (bool, time.Duration, error) {
	took := time.Duration(p.attempts[0]) * time.Millisecond
	p.attempts = p.attempts[1:]
	if took >= MaxPatternTime {
		return false, took, errors.New("timeout")
	}
	return true, took, nil
}

// A match that takes a tenth of the remaining time or more is attempted again, and the faster attempt counts: a busy machine does not make
// a check fail.
func TestSlowMatchesAreRepeated(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		attempts []int // of all matches
		matches  int
		unused   int
		refused  bool
	}{
		{"fast", []int{50, 60, 70, 0}, 3, 1, false},
		{"slow within the limit", []int{400, 500, 300, 200}, 2, 0, false},
		{"interrupted", []int{1000, 0, 0}, 2, 0, false},
		{"interrupted the second time", []int{400, 1000, 0}, 2, 0, false},
		{"each interrupted", []int{300, 0, 300, 0, 300, 0, 300, 0}, 4, 0, false},
		{"interrupted near the limit", []int{900, 900, 50, 0, 0}, 3, 0, false},
		{"slow", []int{900, 900, 200, 200, 0}, 3, 1, true},
	} {
		re := &timed{tt.attempts}
		c := counter{workload: &workload{}, known: map[application]int{}}
		items := &jsonschema.Schema{Items2020: &jsonschema.Schema{Pattern: re}}
		if n := c.cost(items, newItem(slices.Repeat([]any{"a"}, tt.matches))); (n > maxWork) != tt.refused || len(re.attempts) != tt.unused {
			t.Errorf("%s: cost %d, %d attempts unused; want %d, refused %v", tt.name, n, len(re.attempts), tt.unused, tt.refused)
		}
	}
}

// When a check has no work left, no further pattern is matched.
func TestNothingIsMatchedWithoutWork(t *testing.T) {
	t.Parallel()
	re := &timed{[]int{100, 100, 100, 100}}
	again := *re
	f := folding{workload: &workload{}, left: 100}
	f.value(map[string]any{"a": nil, "b": nil}, []*jsonschema.Schema{{PatternProperties: map[jsonschema.Regexp]*jsonschema.Schema{re: {}, &again: {}}}}, nil)
	if n := len(re.attempts) + len(again.attempts); f.left > 0 || n != 6 {
		t.Errorf("work left: %d, attempts unused: %d, want 6 of 8", f.left, n)
	}
}
