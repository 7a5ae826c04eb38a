package structure

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func documentText(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var inCode = regexp.MustCompile("`([^`\n]+)`")

// The table "Packages" of ARCHITECTURE.md has each package once, and no other.
func TestArchitectureListsEveryPackage(t *testing.T) {
	inRoot(t)
	text := documentText(t, "ARCHITECTURE.md")
	_, rest, ok := strings.Cut(text, "\n## Packages\n")
	section, _, ended := strings.Cut(rest, "\n## ")
	if !ok || !ended {
		t.Fatal("ARCHITECTURE.md has no section Packages")
	}
	rows := map[string]int{}
	for line := range strings.Lines(section) {
		if first, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " |"); strings.HasPrefix(line, "| `") {
			for _, m := range inCode.FindAllStringSubmatch(first, -1) {
				rows[m[1]]++
			}
		}
	}
	found := packages(t)
	for dir := range found {
		if dir == "" {
			dir = "lathe"
		}
		if strings.HasPrefix(dir, "examples/") {
			continue // programs, not parts
		}
		if rows[dir] != 1 {
			t.Errorf("ARCHITECTURE.md has %d rows for the package %s, want 1", rows[dir], dir)
		}
	}
	for dir := range rows {
		if _, ok := found[dir]; !ok && dir != "lathe" && dir != "examples" {
			t.Errorf("ARCHITECTURE.md has a row for %s, which is no package", dir)
		}
	}
	if n := strings.Count(text, "\n"); n > 200 {
		t.Errorf("ARCHITECTURE.md has %d lines, want at most 200", n)
	}
}

var fileName = regexp.MustCompile(`^[\w./-]+\.(go|md|txt|yaml|svg)$`)

// The files that the documents for developers name are there. NAME stands for a file that a reader makes.
func TestDeveloperDocsNameFilesThatExist(t *testing.T) {
	inRoot(t)
	for _, doc := range []string{"AGENTS.md", "ARCHITECTURE.md", "CONTRIBUTING.md"} {
		n := 0
		for _, m := range inCode.FindAllStringSubmatch(documentText(t, doc), -1) {
			if name := m[1]; fileName.MatchString(name) && !strings.Contains(name, "NAME") {
				n++
				_, err := os.Stat(filepath.FromSlash(name))
				if err != nil && !strings.Contains(name, "/") {
					_, err = os.Stat(filepath.Join("internal", "structure", name))
				}
				if err != nil {
					t.Errorf("%s names %s, which does not exist", doc, name)
				}
			}
		}
		if n < 8 {
			t.Errorf("%s names %d files: the search is broken", doc, n)
		}
	}
}

var link = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)\s]*)?\)`)

// Relative links of these documents lead to files.
func TestDeveloperDocsLinkToFilesThatExist(t *testing.T) {
	inRoot(t)
	for _, doc := range []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "RATIONALE.md", "SECURITY.md"} {
		for _, m := range link.FindAllStringSubmatch(documentText(t, doc), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.FromSlash(m[1])); err != nil {
				t.Errorf("%s links to %s, which does not exist", doc, m[1])
			}
		}
	}
}

// The changelog says what users of the last release need to know, and docs/ the rest.
func TestChangelogEntriesAreShort(t *testing.T) {
	inRoot(t)
	entries := 0
	for line := range strings.Lines(documentText(t, "CHANGELOG.md")) {
		if !strings.HasPrefix(line, "- ") {
			continue
		}
		if entries++; len(line) > 300 {
			t.Errorf("CHANGELOG.md: an entry of %d bytes, want at most 300: one line of what users notice, and docs/ has the rest: %s", len(line), line)
		}
	}
	if entries < 20 {
		t.Errorf("CHANGELOG.md has %d entries: the search is broken", entries)
	}
}
