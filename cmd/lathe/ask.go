package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/egress"
	"github.com/lathe-run/lathe/internal/form"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/tool"
)

var _ tool.Asker = (*terminalApprover)(nil)

// maxTries is the largest number of attempts to enter one field of a form.
const maxTries = 5

// withAsker lets tools ask the approver questions, if it is a user at the terminal.
func withAsker(cmd *cobra.Command, approver lathe.Approver) {
	if a, ok := approver.(tool.Asker); ok {
		cmd.SetContext(tool.WithAsker(cmd.Context(), a))
	}
}

// Can reports whether the terminal can ask the question: only forms and links.
func (a *terminalApprover) Can(q tool.Question) bool { return q.Form != nil || q.Link != nil }

// Ask asks one question after the other. Each field of a form is one line of input.
func (a *terminalApprover) Ask(ctx context.Context, questions map[string]tool.Question) (map[string]tool.Answer, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := map[string]tool.Answer{}
	for name, q := range text.ByName(questions) {
		if !a.Can(q) {
			return nil, tool.ErrCannotAsk
		}
		if q.Link != nil {
			var err error
			if out[name], err = a.openLink(ctx, q.Link); err != nil {
				return nil, err
			}
			continue
		}
		f, err := form.Read(q.Form.Schema)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", tool.ErrCannotAsk, err)
		}
		if out[name], err = a.fillIn(ctx, q.Form.Message, f); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// openLink shows a URL with its host first, because the rest of a URL can imitate another host.
func (a *terminalApprover) openLink(ctx context.Context, link *tool.Link) (tool.Answer, error) {
	u, err := url.Parse(link.URL)
	if err == nil {
		if _, plain := egress.PlainHost(u.Hostname()); !plain {
			err = errors.New("its host is not in plain form")
		}
	}
	if err != nil {
		return tool.Answer{}, fmt.Errorf("%w: an address that cannot be read", tool.ErrCannotAsk)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s\n", a.screen.paint("bold", "a tool asks you to visit "+visible(u.Host)))
	quoteLines(&b, link.Message)
	fmt.Fprintf(&b, "  address: %s\n  nothing opens it for you: copy it into a browser if you know why %s asks\n", visible(link.URL), visible(u.Hostname()))
	yes := "I will"
	if link.Before {
		yes = "I have been there, go on"
	}
	fmt.Fprintf(&b, "[y] %s   [n] say no   [Enter] say nothing: ", yes)
	refused, err := a.refusal(ctx, b.String())
	return tool.Answer{Refused: refused}, err
}

// refusal asks whether the user wants to answer. It returns "" for yes, "decline" for no and "cancel" for anything else.
func (a *terminalApprover) refusal(ctx context.Context, question string) (string, error) {
	word, err := a.readFurtherLine(ctx, question)
	if err != nil {
		a.screen.ask("\n")
		return "", err
	}
	switch strings.ToLower(word) {
	case "y", "yes":
		return "", nil
	case "n", "no":
		return "decline", nil
	}
	return "cancel", nil
}

func (a *terminalApprover) fillIn(ctx context.Context, message string, f *form.Form) (tool.Answer, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s\n", a.screen.paint("bold", "a tool asks you something; do not answer with passwords"))
	quoteLines(&b, message)
	fmt.Fprintf(&b, "[y] answer, %s   [n] say no   [Enter] say nothing: ", count(len(f.Fields), "field"))
	refused, err := a.refusal(ctx, b.String())
	if err != nil || refused != "" {
		return tool.Answer{Refused: refused}, err
	}
	values := map[string]json.RawMessage{}
	for i := range f.Fields {
		v, ok, err := a.field(ctx, &f.Fields[i])
		if err != nil {
			return tool.Answer{}, err
		}
		if !ok {
			return tool.Answer{Refused: "cancel"}, nil
		}
		if v != nil {
			values[f.Fields[i].Name] = v
		}
	}
	content, err := json.Marshal(values)
	return tool.Answer{Form: content}, err
}

// field reads one field until its value is valid; ok is false after maxTries. An empty line means the default, or no value for an optional
// field.
func (a *terminalApprover) field(ctx context.Context, f *form.Field) (v json.RawMessage, ok bool, err error) {
	question := describe(f)
	for range maxTries {
		line, err := a.readFurtherLine(ctx, question)
		if err != nil {
			return nil, false, err
		}
		if line == "" && (f.Default != nil || !f.Required) {
			return f.Default, true, nil
		}
		if v, err = f.Parse(line); err == nil {
			return v, true, nil
		}
		question = fmt.Sprintf("  it %v; again: ", err)
	}
	return nil, false, nil
}

// describe returns the description of a field for the user. All of it except the parts in brackets comes from the server.
func describe(f *form.Field) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  | %s", printable(f.Name))
	for _, s := range []string{f.Title, f.Description} {
		if s != "" {
			fmt.Fprintf(&b, " · %s", printable(s))
		}
	}
	b.WriteByte('\n')
	for _, c := range f.Choices {
		fmt.Fprintf(&b, "  |   %s", printable(c.Value))
		if c.Title != "" {
			fmt.Fprintf(&b, " · %s", printable(c.Title))
		}
		b.WriteByte('\n')
	}
	kind := map[string]string{"boolean": "yes or no", "array": "several, with commas", "integer": "whole number", "number": "number", "string": "text"}[f.Type]
	if len(f.Choices) > 0 && f.Type == "string" {
		kind = "one of them"
	}
	if f.Format != "" {
		kind += ", " + printable(f.Format)
	}
	switch {
	case f.Default != nil:
		kind += "; Enter: " + printable(string(f.Default))
	case !f.Required:
		kind += "; Enter: leave it out"
	}
	fmt.Fprintf(&b, "  [%s] ", kind)
	return b.String()
}
