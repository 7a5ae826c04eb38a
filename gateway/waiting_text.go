package gateway

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
)

// A completion whose run waits for a person ends with a sentence that says so. When the client sends the
// conversation again the sentence is recognised by its form: the model does not see it.

// maxWaitingText bounds the template of the sentence, in bytes.
const maxWaitingText = 2000

// A waitingText is the sentence in which a completion says that its run waits for an approval.
type waitingText struct {
	template string
	form     *regexp.Regexp // the sentence at the end of a text; its first group is the id of the run
}

var placeholder = regexp.MustCompile(`\{[a-z_]*\}`)

// CheckWaitingText returns what is wrong with a template of the sentence: it names the run, once, by {run}, and may
// have {tool} and {command}.
func CheckWaitingText(template string) error {
	runs := 0
	for _, name := range placeholder.FindAllString(template, -1) {
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
	case len(template) > maxWaitingText:
		return fmt.Errorf("the text is longer than %d bytes", maxWaitingText)
	case strings.TrimSpace(template) != template:
		return errors.New("the text must not begin or end with white space")
	}
	return nil
}

func newWaitingText(template string) (*waitingText, error) {
	if template == "" {
		template = lathe.DefaultWaitingText
	}
	if err := CheckWaitingText(template); err != nil {
		return nil, err
	}
	form := regexp.QuoteMeta(template)
	for name, group := range map[string]string{"{tool}": `[^\n]+?`, "{run}": `(run_[0-9A-Za-z]{1,64})`, "{command}": `[^\n]+?`} {
		form = strings.ReplaceAll(form, regexp.QuoteMeta(name), group)
	}
	re, err := regexp.Compile(`(?:^|\n)[ \t]*` + form + `\s*$`)
	if err != nil {
		return nil, err
	}
	return &waitingText{template: template, form: re}, nil
}

// render returns the sentence for a run and the names of the tools whose calls wait.
func (t *waitingText) render(runID string, tools []string, command string) string {
	tools = slices.Compact(slices.Sorted(slices.Values(tools)))
	return strings.NewReplacer("{run}", runID, "{tool}", strings.Join(tools, ", "), "{command}", command).Replace(t.template)
}

// split returns the text without the sentence that it ends with, and the run that the sentence names. ok is false
// where the text does not end with one.
func (t *waitingText) split(text string) (rest, runID string, ok bool) {
	if !strings.Contains(text, "run_") {
		return text, "", false
	}
	m := t.form.FindStringSubmatchIndex(text)
	if m == nil {
		return text, "", false
	}
	return strings.TrimRight(text[:m[0]], " \t\r\n"), text[m[2]:m[3]], true
}

// waitingFor returns the sentence for a run that waits for a person; "" where it waits for the client, too, which
// comes back by itself.
func (a *chat) waitingFor(res *lathe.Result) string {
	if res.Reason != lathe.ReasonAwaitingApproval || len(a.theirs(res.Pending)) > 0 {
		return ""
	}
	var tools []string
	for _, call := range res.Pending {
		tools = append(tools, call.Name)
	}
	command := "lathe runs approve "
	if len(res.Pending) != 1 {
		command = "lathe runs show "
	}
	return a.caller.setup.waiting.render(a.caller.runID, tools, command+a.caller.runID+a.server)
}

// defaultAddr is where the command line looks for a daemon by itself.
const defaultAddr = "127.0.0.1:8700"

// serverFlag returns the flag by which the command line reaches the address that the request came to; "" where it
// looks there by itself.
func serverFlag(r *http.Request) string {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil || local.String() == defaultAddr {
		return ""
	}
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	return " --server " + scheme + local.String()
}
