package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
)

var update = flag.Bool("update", false, "write what documents have from the code")

// The page of dialects lists every one, with a call as it is written. -update writes the list.
func TestDialectsPageListsEveryDialect(t *testing.T) {
	t.Parallel()
	const begin, end = "<!-- dialects -->\n", "<!-- end of dialects -->\n"
	path := filepath.Join("..", "..", "docs", "dialects.md")
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), begin)
	_, after, whole := strings.Cut(rest, end)
	if !ok || !whole {
		t.Fatalf("%s has no list", path)
	}
	want := before + begin + dialectTable() + end + after
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(page) {
		t.Errorf("%s is out of date: go test ./cmd/lathe -run DialectsPage -update", path)
	}
}

func dialectTable() string {
	var b strings.Builder
	b.WriteString("| dialect | a call | models |\n|---|---|---|\n")
	code := strings.NewReplacer("\n", "↵", "|", `\|`)
	for _, name := range dialect.Names() {
		d, ok := dialect.Lookup(name)
		if !ok || name == "auto" {
			continue
		}
		call := d.AppendCall(nil, lathe.ToolCall{ID: "a1b2c3d4e", Name: "add", Arguments: `{"a":7}`})
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", name, code.Replace(string(call)), strings.Join(d.Models(), ", "))
	}
	return b.String()
}
