package structure

import (
	"go/ast"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The phrases leave out who acts. Write the noun: caller, client, approver, operator, process.
var phrases = regexp.MustCompile(`(?i)\b(somebody|nobody|whoever|(?:is|are|was|were) told|go(?:es)? on with)\b`)

// maxPhrases is the number of these phrases that may be left in Go comments and documents. Lower it when some are removed,
// and never raise it; the aim is fewer than 20.
const maxPhrases = 7

// TestPhrasesNameTheActor counts the phrases in all Go comments and in all documents.
func TestPhrasesNameTheActor(t *testing.T) {
	inRoot(t)
	var found []string
	count := func(name, text string) {
		for _, phrase := range phrases.FindAllString(text, -1) {
			found = append(found, name+": "+phrase)
		}
	}
	for _, f := range goFiles(t) {
		if f.name != "internal/structure/phrases_test.go" {
			count(f.name, comments(f.file))
		}
	}
	for _, page := range documents(t) {
		count(page, documentText(t, page))
	}
	if len(found) > maxPhrases {
		t.Errorf("%d phrases without an actor, want %d at most:\n%s", len(found), maxPhrases, strings.Join(found, "\n"))
	}
	t.Logf("%d phrases, %d allowed", len(found), maxPhrases)
}

// comments returns the text of a Go file's comments. Line breaks within one comment are blanks.
func comments(file *ast.File) string {
	var text strings.Builder
	for _, group := range file.Comments {
		text.WriteString(strings.Join(strings.Fields(group.Text()), " ") + "\n")
	}
	return text.String()
}

// documents returns the Markdown files of the repository.
func documents(t *testing.T) (names []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && path != "."):
			return fs.SkipDir
		case filepath.Ext(path) == ".md":
			names = append(names, filepath.ToSlash(path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
