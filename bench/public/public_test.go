package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "-serve") { // the test is its own model server
		main()
		return
	}
	os.Exit(m.Run())
}

// Each gateway of this repository answers each request of each variant that it serves.
func TestEveryVariantIsAnswered(t *testing.T) {
	if testing.Short() {
		t.Skip("does not run with -short: builds lathe")
	}
	var out bytes.Buffer
	if err := measure(&out, "", "", "", 20, 1, 10*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(out.String()) {
		if cells := strings.Split(line, " | "); len(cells) == 8 && strings.HasPrefix(line, "| ") && cells[7] != "failed |\n" {
			if rows++; cells[7] != "0 |\n" || strings.Contains(line, "–") {
				t.Error(line)
			}
		}
	}
	if want := 6*2 + 4 + 1; rows != want {
		t.Errorf("%d rows, want %d:\n%s", rows, want, &out)
	}
}
