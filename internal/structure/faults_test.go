package structure

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// faults is the number of faults that docs/internals/faults.md lists.
const faults = 21

// Each fault stands in the table once, in order, with tests that exist, of which one has its id in its name,
// or with the reason why there is none; and each test with an id stands in its row.
func TestFaultsHaveTheirTests(t *testing.T) {
	inRoot(t)
	text, err := os.ReadFile("docs/internals/faults.md")
	if err != nil {
		t.Fatal(err)
	}
	have := testNames(t)
	rows := regexp.MustCompile(`(?m)^\| F(\d+) \| ([^|]+) \| ([^|]+) \|$`).FindAllStringSubmatch(string(text), -1)
	if len(rows) != faults {
		t.Errorf("%d faults, want %d", len(rows), faults)
	}
	name, ids := regexp.MustCompile("`(Test[^`]+)`"), regexp.MustCompile(`F(\d+)_`)
	listed := map[string]bool{} // id and test
	for i, r := range rows {
		if r[1] != strconv.Itoa(i+1) {
			t.Errorf("row %d is of F%s", i+1, r[1])
		}
		own := strings.HasPrefix(r[3], "*not tested: ")
		for _, n := range name.FindAllStringSubmatch(r[3], -1) {
			if !have[n[1]] {
				t.Errorf("F%s: there is no test %s", r[1], n[1])
			}
			own = own || strings.Contains(n[1], "F"+r[1]+"_")
			listed[r[1]+" "+n[1]] = true
		}
		if !own {
			t.Errorf("no test has F%s in its name", r[1])
		}
	}
	for test := range have {
		for _, id := range ids.FindAllStringSubmatch(test, -1) {
			if !listed[id[1]+" "+test] {
				t.Errorf("%s does not stand in the row of F%s", test, id[1])
			}
		}
	}
}
