package structure

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	answerRow = regexp.MustCompile(`^\| ([A-D])(\d+) \| (.*) \| (.*) \| (.*) \|$`)
	countRow  = regexp.MustCompile(`(?m)^\| (\d+) (?:requests|conventions|capabilities|wants) \| (\d+) \| (\d+) \| (\d+) \|$`)
)

// Each test and file that docs/internals/answers.md names as proof exists, each answer yes has a proof, and the counts are those of the rows.
func TestAnswersNameTheirProof(t *testing.T) {
	inRoot(t)
	tests := testNames(t)
	text := documentText(t, "docs/internals/answers.md")
	counts := map[string][4]int{}
	for line := range strings.Lines(text) {
		m := answerRow.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		c := counts[m[1]]
		if c[0]++; strconv.Itoa(c[0]) != m[2] {
			t.Errorf("the row %s%s is the %d.", m[1], m[2], c[0])
		}
		answer, missing, _ := strings.Cut(m[4], ": ")
		proof := inCode.FindAllStringSubmatch(m[5], -1)
		switch {
		case answer == "yes":
			c[1]++
		case answer == "partly" && missing != "":
			c[2]++
		case answer == "no":
			c[3]++
		default:
			t.Errorf("%s%s: the answer is %q, want yes, no, or partly with what is missing", m[1], m[2], m[4])
		}
		counts[m[1]] = c
		if answer == "yes" && len(proof) == 0 {
			t.Errorf("%s%s has no proof", m[1], m[2])
		}
		for _, p := range proof {
			switch name := p[1]; {
			case strings.HasPrefix(name, "lathe "): // package main of cmd/lathe checks it
			case strings.HasPrefix(name, "Test"):
				if !tests[name] {
					t.Errorf("%s%s names %s, which is no test", m[1], m[2], name)
				}
			default:
				if _, err := os.Stat(filepath.FromSlash(name)); err != nil {
					t.Errorf("%s%s names %s, which does not exist", m[1], m[2], name)
				}
			}
		}
	}
	stated := countRow.FindAllStringSubmatch(text, -1)
	if len(stated) != 4 {
		t.Fatalf("%d rows of counts", len(stated))
	}
	for i, part := range []string{"A", "B", "C", "D"} {
		var want [4]int
		for j := range want {
			want[j], _ = strconv.Atoi(stated[i][j+1]) // digits
		}
		if counts[part] != want {
			t.Errorf("%s: rows, yes, partly and no are %v, and the page says %v", part, counts[part], want)
		}
	}
	t.Logf("rows, yes, partly and no: %v", counts)
}
