package structure

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
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

// TestPhrasesNameTheActor counts the phrases in all Go comments and in all documents but the changelog, which keeps what it said.
func TestPhrasesNameTheActor(t *testing.T) {
	t.Parallel()
	var found []string
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && path != "."):
			return fs.SkipDir
		case d.IsDir() || path == "CHANGELOG.md" || path == filepath.Join("internal", "structure", "phrases_test.go"):
			return nil
		}
		var text []byte
		switch filepath.Ext(path) {
		case ".md":
			text, err = os.ReadFile(path)
		case ".go":
			text, err = comments(path)
		}
		for _, phrase := range phrases.FindAll(text, -1) {
			found = append(found, path+": "+string(phrase))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) > maxPhrases {
		t.Errorf("%d phrases without an actor, want %d at most:\n%s", len(found), maxPhrases, strings.Join(found, "\n"))
	}
	t.Logf("%d phrases, %d allowed", len(found), maxPhrases)
}

// comments returns the text of a Go file's comments. Line breaks within one comment are blanks.
func comments(path string) ([]byte, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var text []byte
	for _, group := range file.Comments {
		text = append(text, strings.Join(strings.Fields(group.Text()), " ")...)
		text = append(text, '\n')
	}
	return text, nil
}
