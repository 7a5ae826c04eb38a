package structure

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// Each page of docs/ is once in an index, docs/README.md or docs/internals/README.md, and has one line in llms.txt, and these name no
// other page.
func TestIndexesListEveryPage(t *testing.T) {
	inRoot(t)
	pages, err := docPages()
	if err != nil || len(pages) < 30 {
		t.Fatalf("docs has %d pages: %v", len(pages), err)
	}
	index := map[string]int{}
	for _, folder := range []string{"docs", "docs/internals"} {
		for _, m := range link.FindAllStringSubmatch(documentText(t, folder+"/README.md"), -1) {
			index[path.Join(folder, m[1])]++
		}
	}
	lines := map[string]string{}
	for line := range strings.Lines(documentText(t, "llms.txt")) {
		if m := link.FindStringSubmatch(line); m != nil {
			_, about, _ := strings.Cut(line, "): ")
			if lines[m[1]] != "" {
				t.Errorf("llms.txt has two lines for %s", m[1])
			}
			lines[m[1]] = strings.TrimSpace(about)
		}
	}
	for _, page := range pages {
		page = filepath.ToSlash(page)
		if page == "docs/README.md" {
			continue
		}
		if index[page] != 1 {
			t.Errorf("the indexes of docs have %d links to %s, want 1", index[page], page)
		}
		if lines[page] == "" {
			t.Errorf("llms.txt has no line for %s", page)
		}
	}
	for name := range lines {
		if _, err := os.Stat(filepath.FromSlash(name)); err != nil {
			t.Errorf("llms.txt names %s, which does not exist", name)
		}
	}
}

// docPages returns the pages of docs/, docs/go/ and docs/internals/.
func docPages() ([]string, error) {
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		return nil, err
	}
	for _, folder := range []string{"docs/go/*.md", "docs/internals/*.md"} {
		further, err := filepath.Glob(folder)
		if err != nil {
			return nil, err
		}
		pages = append(pages, further...)
	}
	return pages, nil
}

// The pages of docs/ link to files and headings that exist.
func TestPagesLinkToPlacesThatExist(t *testing.T) {
	inRoot(t)
	pages, err := docPages()
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, page := range append(pages, "README.md", "AGENTS.md") {
		text, _ := withoutCode(documentText(t, page))
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			target := filepath.Join(filepath.Dir(page), filepath.FromSlash(m[1]))
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, m[1])
				continue
			}
			if m[2] != "" && filepath.Ext(target) == ".md" && !slices.Contains(headings(documentText(t, target)), m[2]) {
				t.Errorf("%s links to %s%s, which has no such heading", page, m[1], m[2])
			}
			checked++
		}
		for _, m := range ownLink.FindAllStringSubmatch(text, -1) {
			if !slices.Contains(headings(documentText(t, page)), m[1]) {
				t.Errorf("%s links to its heading %s, which does not exist", page, m[1])
			}
			checked++
		}
	}
	if checked < 200 {
		t.Errorf("%d links: the search is broken", checked)
	}
}

// The pictures that pages show are small.
func TestPicturesAreSmall(t *testing.T) {
	inRoot(t)
	pictures, err := filepath.Glob("docs/images/*.png")
	if err != nil || len(pictures) < 4 {
		t.Fatalf("%d pictures: %v", len(pictures), err)
	}
	for _, name := range pictures {
		if info, err := os.Stat(name); err != nil || info.Size() > 150<<10 {
			t.Errorf("%s has %d bytes, want 150 KiB at most: %v", name, info.Size(), err)
		}
	}
}

var ownLink = regexp.MustCompile(`\]\((#[^)\s]+)\)`)

// withoutCode returns a page without its fenced blocks, and the blocks.
func withoutCode(text string) (prose, code string) {
	inside := false
	var p, c strings.Builder
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "```"):
			inside = !inside
		case inside:
			c.WriteString(line)
		default:
			p.WriteString(line)
		}
	}
	return p.String(), c.String()
}

// headings returns the anchors of a page's headings, as GitHub makes them.
func headings(text string) []string {
	prose, _ := withoutCode(text)
	var anchors []string
	for line := range strings.Lines(prose) {
		title := strings.TrimLeft(line, "#")
		if title == line || !strings.HasPrefix(title, " ") {
			continue
		}
		var b strings.Builder
		for _, r := range strings.ToLower(strings.TrimSpace(title)) {
			switch {
			case r == ' ':
				b.WriteByte('-')
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				b.WriteRune(r)
			}
		}
		anchors = append(anchors, "#"+b.String())
	}
	return anchors
}
