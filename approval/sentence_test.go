package approval_test

import (
	"strings"
	"testing"

	"github.com/lathe-run/lathe/approval"
)

// What is rendered is recognised at the end of a text, whatever stands before it and however clients trim it.
func TestSentenceIsRecognised(t *testing.T) {
	t.Parallel()
	for _, template := range []string{"", "{run}", "Run {run} waits (a+b)*?[x] for {tool}: {command}", "One.\nTwo {run}\nThree {tool}"} {
		s, err := approval.NewSentence(template)
		if err != nil {
			t.Fatal(err)
		}
		text := s.Render("run_01ABC", []string{"b", "a", "b"}, "lathe runs approve run_01ABC --server http://127.0.0.1:1")
		if strings.Contains(template, "{tool}") && !strings.Contains(text, "a, b") {
			t.Errorf("%q: %s", template, text)
		}
		for before, want := range map[string]string{"": "", "Let me see.\n\n": "Let me see.", "run_01ZZZ\n": "run_01ZZZ", text + "\n\n": text} {
			for _, after := range []string{"", "\n", "  \r\n"} {
				rest, run, ok := s.Split(before + text + after)
				if !ok || rest != want || run != "run_01ABC" {
					t.Errorf("%q: of %q: %q, %q, %v", template, before+text+after, rest, run, ok)
				}
			}
		}
		for _, other := range []string{"", "run_01ABC was made.", text + " And more.", "x" + text} {
			if template == "{run}" && other == "run_01ABC was made." {
				continue
			}
			if rest, run, ok := s.Split(other); ok || rest != other || run != "" {
				t.Errorf("%q is taken for the sentence %q", other, template)
			}
		}
	}
}

func TestSentenceThatIsNoTemplate(t *testing.T) {
	t.Parallel()
	for template, want := range map[string]string{
		"It waits.": "must have {run} once", "{run} {run}": "must have {run} once", "{run} {toll}": "{toll} is not one of", " {run}": "white space",
		"{run}" + strings.Repeat("x", 2000): "longer than",
	} {
		if _, err := approval.NewSentence(template); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", template, err)
		}
	}
}
