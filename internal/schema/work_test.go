package schema

import (
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// counting is a regular expression that counts how often it is used.
type counting struct{ used *int }

func (c counting) String() string { return "" }

func (c counting) MatchString(string) bool { return true }

func (c counting) match(string) (bool, time.Duration) { *c.used++; return true, 0 }

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
