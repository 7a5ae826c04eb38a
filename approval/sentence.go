package approval

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// maxSentence is the maximum length of a template, in bytes.
const maxSentence = 2000

// DefaultSentence is the default template of a [Sentence].
const DefaultSentence = "This waits for an approval: {tool} has not been called (run {run}). Approve or deny it with `{command}` or in the console, then go on with this conversation."

// A Sentence is the text that a gateway adds to an answer whose run waits for an approval. Split finds it again in a later request of the
// client. Its methods may be called from several goroutines at once.
type Sentence struct {
	template string
	form     *regexp.Regexp // matches the sentence at the end of a text; the first group is the run id
	tail     string         // the text of the template behind its last placeholder
}

func checkSentence(template string) error {
	runs := 0
	for _, name := range regexp.MustCompile(`\{[a-z_]*\}`).FindAllString(template, -1) {
		switch name {
		case "{run}":
			runs++
		case "{tool}", "{command}":
		default:
			return fmt.Errorf("%s is not one of {tool}, {run} and {command}", name)
		}
	}
	switch {
	case runs != 1:
		return errors.New("the text must have {run} once: by it the text is recognised when the client sends it again")
	case len(template) > maxSentence:
		return fmt.Errorf("the text is longer than %d bytes", maxSentence)
	case strings.TrimSpace(template) != template:
		return errors.New("the text must not begin or end with white space")
	}
	return nil
}

// NewSentence returns a sentence with this template; "" is [DefaultSentence]. The template must contain {run}, the run id, exactly once, and may
// contain {tool}, the names of the tools whose calls wait, and {command}, the command that answers. It has at most 2,000 bytes, no other word
// in braces, and no white space at its beginning and end. The error says why a template is not valid; it has no code.
func NewSentence(template string) (*Sentence, error) {
	if template == "" {
		template = DefaultSentence
	}
	if err := checkSentence(template); err != nil {
		return nil, err
	}
	form := regexp.QuoteMeta(template)
	for name, group := range map[string]string{
		"{run}":     `(run_[0-9A-Za-z]{1,64})`,
		"{tool}":    `[\w.:/-]+(?:, [\w.:/-]+)*`,
		"{command}": `lathe runs [a-z]+ run_\w+(?: --server [^\s` + "`" + `]+)?`,
	} {
		form = strings.ReplaceAll(form, regexp.QuoteMeta(name), group)
	}
	re, err := regexp.Compile(`(?:^|\n)[ \t]*` + form + `\s*$`)
	if err != nil {
		return nil, err
	}
	return &Sentence{template: template, form: re, tail: template[strings.LastIndexByte(template, '}')+1:]}, nil
}

// Render returns the sentence with the placeholders replaced. It lists each tool once, sorted.
func (t *Sentence) Render(runID string, tools []string, command string) string {
	tools = slices.Compact(slices.Sorted(slices.Values(tools)))
	return strings.NewReplacer("{run}", runID, "{tool}", strings.Join(tools, ", "), "{command}", command).Replace(t.template)
}

// Split returns text without the sentence at its end and the white space around it, and the run id in that sentence. If text does not end
// with the sentence, it returns text unchanged, "" and false.
func (t *Sentence) Split(text string) (rest, runID string, ok bool) {
	if !strings.HasSuffix(strings.TrimRight(text, " \t\r\n\f"), t.tail) || !strings.Contains(text, "run_") { // a fast check, which most texts fail
		return text, "", false
	}
	m := t.form.FindStringSubmatchIndex(text)
	if m == nil {
		return text, "", false
	}
	return strings.TrimRight(text[:m[0]], " \t\r\n"), text[m[2]:m[3]], true
}
