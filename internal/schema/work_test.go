package schema

import (
	"errors"
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

// Only a match for which a check would be refused is attempted again.
func TestOnlyRefusedMatchesAreRepeated(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		attempts []int // of two matches
		unused   int
		refused  bool
	}{
		{"slow but within the limit", []int{400, 500, 0}, 1, false},
		{"interrupted", []int{1000, 0, 0}, 0, false},
		{"interrupted within the limit", []int{900, 200, 0}, 0, false},
		{"slow", []int{900, 200, 200}, 0, true},
	} {
		re := &timed{tt.attempts}
		c := counter{workload: &workload{}, known: map[application]int{}}
		items := &jsonschema.Schema{Items2020: &jsonschema.Schema{Pattern: re}}
		if n := c.cost(items, newItem([]any{"a", "b"})); (n > maxWork) != tt.refused || len(re.attempts) != tt.unused {
			t.Errorf("%s: cost %d, %d attempts unused; want %d, refused %v", tt.name, n, len(re.attempts), tt.unused, tt.refused)
		}
	}
}
