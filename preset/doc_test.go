package preset

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/price"
	"github.com/lathe-run/lathe/transform"
)

var update = flag.Bool("update", false, "write the tables of docs/presets.md and docs/internals/presets.md again")

// A table is a part of a page that is made from the code.
type table struct{ name, text string }

// The tables of the documents are those of the code.
func TestDocument(t *testing.T) {
	t.Parallel()
	hasTables(t, "../docs/presets.md", table{"profiles", tableOf(known().Profiles, Profile, "profile", own("default_tool_calling").Entries())}, table{"models", modelTable(t)},
		table{"presets", tableOf(known().Presets, Named, "preset", nil)})
	hasTables(t, "../docs/internals/presets.md", table{"prices", priceTable()}, table{"transforms", transformTable()})
}

func hasTables(t *testing.T, docFile string, tables ...table) {
	t.Helper()
	b, err := os.ReadFile(docFile)
	if err != nil {
		t.Fatal(err)
	}
	want := string(b)
	for _, table := range tables {
		begin := "<!-- " + table.name + " -->\n"
		before, rest, ok := strings.Cut(want, begin)
		_, after, closed := strings.Cut(rest, "<!-- end -->")
		if !ok || !closed {
			t.Fatalf("the document has no place for the table of %s", table.name)
		}
		want = before + begin + table.text + "<!-- end -->" + after
	}
	if want == string(b) {
		return
	}
	if !*update {
		t.Fatalf("%s is old: run go test ./preset -update", docFile)
	}
	if err := os.WriteFile(docFile, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// tableOf returns a table of what each of rows sets beside the entries of included.
func tableOf(rows []row, find func(string) (*Patch, error), what string, included []Entry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s | for | sets |\n|---|---|---|\n", what)
	for _, info := range rows {
		p, err := find(info.Name)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", info.Name, info.Purpose, sets(p, included))
	}
	return b.String()
}

func sets(p *Patch, included []Entry) string {
	var items []string
	for _, e := range p.Entries() {
		if e.Key == "label" || slices.Contains(included, e) { // label: the name of the profile
			continue
		}
		value := strings.ReplaceAll(e.Value, ",", "`, `")
		items = append(items, "`"+e.Key+"`: `"+value+"`")
	}
	return strings.Join(items, "; ")
}

func modelTable(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| name | sets |\n|---|---|\n")
	for _, row := range [][2]string{{"is `minimax/minimax-m2-her`", "minimax/minimax-m2-her"}, {"has `reasoner` in it, or begins with `deepseek/`", "deepseek/x"},
		{"begins with `google/gemini-`", "google/gemini-x"}} {
		p := modelDefaults(row[1])
		if len(p.Entries()) == 0 {
			t.Errorf("a model whose name %s sets nothing", row[0])
		}
		fmt.Fprintf(&b, "| %s | %s |\n", row[0], sets(p, nil))
	}
	return b.String()
}

func transformTable() string {
	var b strings.Builder
	b.WriteString("| kind | name | effect | for |\n|---|---|---|---|\n")
	for _, info := range transform.All() {
		effect := info.Effect
		if info.Always {
			effect = "*Always.* " + effect
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s |\n", info.Kind, info.Name, effect, info.For)
	}
	return b.String()
}

func priceTable() string {
	var b strings.Builder
	b.WriteString("| server | model | input | cached input | cache write | output | longest answer | sources | copy read on |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, p := range price.ListPrices() {
		longest := ""
		if p.MaxOutput > 0 {
			longest = fmt.Sprint(p.MaxOutput)
		}
		sources := sourceLink(p.Source)
		if p.LimitSource != p.Source {
			sources += ", longest answer: " + sourceLink(p.LimitSource)
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s | %s | %s | %s | %s | %s |\n", p.Host, p.Model, p.Price.Input, p.Price.CachedInput, p.Price.CacheWrite, p.Price.Output,
			longest, sources, p.Read)
	}
	return b.String()
}

// sourceLink returns a link that names who states it.
func sourceLink(address string) string {
	name := "vendor"
	switch {
	case strings.Contains(address, "/BerriAI/litellm/"):
		name = "LiteLLM"
	case strings.Contains(address, "/anomalyco/models.dev/"):
		name = "models.dev"
	}
	return fmt.Sprintf("[%s](%s)", name, address)
}
