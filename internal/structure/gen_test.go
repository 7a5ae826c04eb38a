package structure

import (
	"bytes"
	"os"
	"path"
	"strings"
	"testing"
)

// byHand are the packages whose files `make gen` must not write: what they expect is looked at before it is accepted, or
// needs a compiler of another language.
var byHand = map[string]string{
	"internal/app":       "who may do what in earlier versions is what later ones are compared with",
	"internal/structure": "the lists of what others depend on are those of the last release, and the budget is that of the code",
	"dialect":            "the expected deltas of a case are the specification of a parser",
	"provider":           "the expected requests are the wire",
	"loop":               "journals of earlier versions must stay readable as they are",
	"internal/rawjson":   "results of a third party's suite",
	"store/sqlite":       "databases of earlier versions must open as they are",
	"store/postgres":     "databases of earlier versions must open as they are",
	"tool/httptool":      "the expected definitions of documents",
	"tool/wasmtool":      "a module is built by Go for WebAssembly",
	"internal/wasmrt":    "what hostile modules do is looked at when their generator changes",
	"guest":              "modules are built by compilers for C and Rust",
}

func TestMakeGenWritesWhatIsGenerated(t *testing.T) {
	inRoot(t)
	b, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(b), "\ngen:")
	recipe, _, ended := strings.Cut(rest, "\n\n")
	if !ok || !ended {
		t.Fatal("the Makefile has no target gen")
	}
	found := map[string]bool{}
	for _, f := range goFiles(t) {
		if f.isTest && !f.apart && path.Base(f.name) != "gen_test.go" && bytes.Contains(f.src, []byte(`flag.Bool("update"`)) {
			found[f.dir] = true
		}
	}
	for dir := range found {
		if named := strings.Contains(recipe+" ", " ./"+dir+" "); named == (byHand[dir] != "") {
			t.Errorf("%s has tests with -update: name it in `make gen` of the Makefile, or in byHand of gen_test.go with the reason, and not in both", dir)
		}
	}
	for dir := range byHand {
		if !found[dir] {
			t.Errorf("gen_test.go names %q, which has no test with -update", dir)
		}
	}
	if len(found) < 10 {
		t.Errorf("%d packages have tests with -update: the search is broken", len(found))
	}
}
