package doctor

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of docs/internals/doctor-findings.md again")

const docFile = "../../docs/internals/doctor-findings.md"

// The tables of the document are those of the code.
func TestDocument(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(docFile)
	if err != nil {
		t.Fatal(err)
	}
	var asked, found strings.Builder
	asked.WriteString("| probe | request |\n|---|---|\n")
	for _, p := range probes {
		fmt.Fprintf(&asked, "| `%s` | %s |\n", p.name, p.asks)
	}
	found.WriteString("| finding | | seen | then |\n|---|---|---|---|\n")
	for _, f := range Catalogue() {
		fmt.Fprintf(&found, "| `%s` | %s | %s | %s |\n", f.ID, f.Severity, f.Seen, f.Then)
	}
	want := string(b)
	for _, table := range []struct{ name, text string }{{"probes", asked.String()}, {"findings", found.String()}} {
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
		t.Fatal("docs/internals/doctor-findings.md is old: run go test ./lab/doctor -update")
	}
	if err := os.WriteFile(docFile, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// What a finding advises is there: the settings with their values, the transforms, codes and reasons that it names are on the pages that
// other tests compare with the code, and its flags are some of the command.
func TestAdviceNamesWhatThereIs(t *testing.T) {
	t.Parallel()
	var pages strings.Builder
	files, err := filepath.Glob("../../cmd/lathe/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"config", "internals/config", "presets", "internals/presets", "internals/destinations", "errors", "events", "internals/events", "internals/guest-abi"} {
		files = append(files, "../../docs/"+name+".md")
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Ext(file) == ".go" { // nothing but names of flags
			b = []byte(strings.Join(regexp.MustCompile(`VarP?\([^,]+, "[a-z-]+"|flag:"[a-z-]+`).FindAllString(string(b), -1), "\n"))
		}
		pages.Write(b)
	}
	named := regexp.MustCompile(`--[a-z-]+|[a-z_]+(?:\.[a-z_]+)*: [a-z_]+|[a-z]+(?:[._][a-z0-9]+)+`)
	n := 0
	for _, f := range Catalogue() {
		for _, word := range named.FindAllString(f.Then, -1) {
			word = strings.TrimPrefix(word, "--")
			if strings.HasSuffix(word, ".yaml") || strings.HasSuffix(word, ".md") {
				continue
			}
			for _, name := range regexp.MustCompile(`: |\.`).Split(word, -1) {
				if n++; !regexp.MustCompile("(?:^|[^a-z_-])" + name + "(?:$|[^a-z_-])").MatchString(pages.String()) {
					t.Errorf("%s: nothing is called %q: %s", f.ID, name, f.Then)
				}
			}
		}
	}
	if n < 50 {
		t.Errorf("only %d names were found", n)
	}
}

// Every finding that the code names is in the catalogue, and the other way round.
func TestCatalogueHasWhatTheCodeFinds(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, e := range entries {
		if name := e.Name(); strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && name != "catalogue.go" {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			code.Write(b)
		}
	}
	built := func(id string) bool { // names that the code puts together
		return strings.HasPrefix(id, "status-") || strings.HasPrefix(id, "choice-") || id == "reasoning-content"
	}
	for _, f := range Catalogue() {
		if !strings.Contains(code.String(), `"`+f.ID+`"`) && !built(f.ID) {
			t.Errorf("nothing finds %s", f.ID)
		}
	}
	for _, status := range []int{408, 429, 500, 502, 503, 599} {
		newFinding(statusID(status, ""))
		newFinding(statusID(status, "-always"))
	}
	for _, id := range []string{"choice-required", "choice-named", "choice-none"} {
		newFinding(id + "-refused")
		newFinding(id + "-ignored")
	}
}
