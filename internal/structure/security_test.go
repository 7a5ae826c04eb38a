package structure

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// threats is the number of threats that docs/internals/security.md lists.
const threats = 54

// Each threat stands in the table once, in order, with tests that exist or with the part that brings them.
func TestThreatsHaveTheirTests(t *testing.T) {
	inRoot(t)
	text, err := os.ReadFile("docs/internals/security.md")
	if err != nil {
		t.Fatal(err)
	}
	have := testNames(t)
	row := regexp.MustCompile(`(?m)^\| T(\d+) \| ([^|]+) \| ([^|]+) \|$`)
	name := regexp.MustCompile("`([^`]+)`")
	rows := row.FindAllStringSubmatch(string(text), -1)
	if len(rows) != threats {
		t.Errorf("%d threats, want %d", len(rows), threats)
	}
	for i, r := range rows {
		if r[1] != strconv.Itoa(i+1) {
			t.Errorf("row %d is of T%s", i+1, r[1])
		}
		named := name.FindAllStringSubmatch(r[3], -1)
		if len(named) == 0 && !strings.HasPrefix(r[3], "*pending: ") {
			t.Errorf("T%s has neither a test nor a part that brings one", r[1])
		}
		for _, n := range named {
			if !have[n[1]] {
				t.Errorf("T%s: there is no test %s", r[1], n[1])
			}
		}
	}
}
