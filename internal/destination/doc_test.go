package destination

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of docs/internals/destinations.md again")

const docFile = "../../docs/internals/destinations.md"

// The table of the document is that of the code, and the document explains each rule.
func TestDocument(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(docFile)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- rules -->\n", "<!-- end -->"
	before, rest, ok := strings.Cut(string(b), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatal("the document has no place for the table")
	}
	for _, column := range columns() {
		if !strings.Contains(before, "| `"+column+"` |") {
			t.Errorf("the document does not explain %s", column)
		}
	}
	want := before + begin + ruleTable() + end + after
	if want == string(b) {
		return
	}
	if !*update {
		t.Fatal("docs/internals/destinations.md is old: run go test ./internal/destination -update")
	}
	if err := os.WriteFile(docFile, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

func ruleTable() string {
	var b strings.Builder
	b.WriteString("| server | wire | models | rules | source | read |\n|---|---|---|---|---|---|\n")
	for i := range Rules() {
		r := &Rules()[i]
		var set []string
		v := reflect.ValueOf(r.Row)
		for j := range v.NumField() {
			if !v.Field(j).IsZero() {
				set = append(set, fmt.Sprintf("`%s: %v`", columns()[j], v.Field(j)))
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", orAll(r.Server), orAll(strings.TrimSuffix(string(r.Wire), "_chat")), models(r), strings.Join(set, "; "), r.Source, r.Read)
	}
	return b.String()
}

func orAll(s string) string {
	if s == "" {
		return "all"
	}
	return s
}

func models(r *Rule) string {
	number := func(n int) string { return fmt.Sprintf("%d.%d", n/100, n%100) }
	name := orAll(r.Family)
	if r.From > 0 {
		name += " from " + number(r.From)
	}
	if r.To > 0 {
		name += " to " + number(r.To)
	}
	return name
}
