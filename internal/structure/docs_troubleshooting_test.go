package structure

import (
	"regexp"
	"strings"
	"testing"
)

var onlyCode = regexp.MustCompile("^`([^`]+)`$")

// A message of docs/troubleshooting.md, a first cell that is one piece of code, is in a string of the program. Between … its parts
// are in one source file. Each row has a command.
func TestTroubleshootingNamesMessagesOfTheProgram(t *testing.T) {
	inRoot(t)
	var sources []string
	for _, f := range goFiles(t) {
		if !f.isTest && !strings.HasPrefix(f.name, "examples/") {
			sources = append(sources, string(f.src))
		}
	}
	rows, messages := 0, 0
	for line := range strings.Lines(documentText(t, "docs/troubleshooting.md")) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "| "), " | ")
		if !strings.HasPrefix(line, "| ") || cells[0] == "message or symptom" {
			continue
		}
		rows++
		if len(cells) != 4 || !strings.HasPrefix(cells[1], "`lathe ") {
			t.Errorf("want a message, a command, a cause and a next step: %s", line)
			continue
		}
		m := onlyCode.FindStringSubmatch(cells[0])
		if m == nil {
			continue
		}
		messages++
		found := false
		for _, text := range sources {
			has := true
			for part := range strings.SplitSeq(m[1], "…") {
				has = has && strings.Contains(text, strings.TrimRight(part, " "))
			}
			if found = found || has; found {
				break
			}
		}
		if !found {
			t.Errorf("no source has the message %q", m[1])
		}
	}
	if rows < 30 || messages < 30 {
		t.Errorf("%d rows with %d messages, want 30 at least", rows, messages)
	}
	t.Logf("%d rows, %d messages", rows, messages)
}

// Each name in the column Lathe of docs/internals/crosswalk.md that is code is in the sources or in the reference of settings.
func TestCrosswalkNamesWhatExists(t *testing.T) {
	inRoot(t)
	var all strings.Builder
	for _, f := range goFiles(t) {
		if !f.isTest {
			all.Write(f.src)
		}
	}
	all.WriteString(settingsText(t))
	text, column, names := all.String(), -1, 0
	for line := range strings.Lines(documentText(t, "docs/internals/crosswalk.md")) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i, cell := range cells {
			if strings.TrimSpace(cell) == "Lathe" {
				column = i
			}
		}
		if !strings.HasPrefix(line, "| ") || column < 0 || column >= len(cells) {
			continue
		}
		for _, m := range inCode.FindAllStringSubmatch(cells[column], -1) {
			for name := range strings.FieldsSeq(m[1]) {
				_, name, _ = strings.Cut("."+name, ".") // of a path of settings or a qualified name: each part
				for part := range strings.SplitSeq(name, ".") {
					if part = strings.Trim(part, "*…()-"); part == "" || part == "NAME" || part == "RUN" || part == "lathe" {
						continue
					}
					if names++; !strings.Contains(text, part) {
						t.Errorf("docs/internals/crosswalk.md: %q of `%s` is not in the sources", part, m[1])
					}
				}
			}
		}
	}
	if names < 60 {
		t.Errorf("%d names: the search is broken", names)
	}
}
