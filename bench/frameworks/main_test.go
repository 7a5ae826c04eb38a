package main

import (
	"os"
	"strings"
	"testing"
)

// The programs do what the table of the page says. The size of the binaries depends on the machine and is not compared.
func TestPageHasTheTable(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds five programs")
	}
	page, err := os.ReadFile("../../docs/go/compare.md")
	if err != nil {
		t.Fatal(err)
	}
	reports, err := compare(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	printTable(&table, reports)
	for line := range strings.Lines(table.String()) {
		if !strings.HasPrefix(line, "| binary") && !strings.Contains(string(page), line) {
			t.Errorf("the page does not have the row\n%s", line)
		}
	}
	for _, o := range reports[0].Trials {
		if len(o.Refunds) > 1 || o.Answer == "" || strings.Contains(o.Answer, errorMark) {
			t.Errorf("Lathe: %+v", o)
		}
	}
	if t.Failed() {
		printAnswers(t.Output(), reports)
	}
}

func TestLinesAreThoseWithCode(t *testing.T) {
	source := "// a comment\npackage main\n\n/* another\none */\nvar text = `two\nlines` // end\n\nfunc main() {\n}\n"
	if n := lines([]byte(source)); n != 5 {
		t.Errorf("%d lines, want 5", n)
	}
}
