package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/form"
)

var _ lathe.Asker = (*terminalApprover)(nil)

// maxTries is how often one field of a form is asked for again.
const maxTries = 5

// withAsker has tools ask the person who approves, where that is one at the terminal.
func withAsker(cmd *cobra.Command, approver lathe.Approver) {
	if a, ok := approver.(lathe.Asker); ok {
		cmd.SetContext(lathe.WithAsker(cmd.Context(), a))
	}
}

// Can reports whether the question is a form: a terminal has neither a model nor folders.
func (a *terminalApprover) Can(q lathe.Question) bool { return q.Form != nil }

// Ask shows one form after the other and reads what is typed, a line for each field.
func (a *terminalApprover) Ask(ctx context.Context, questions map[string]lathe.Question) (map[string]lathe.Answer, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := map[string]lathe.Answer{}
	for _, name := range slices.Sorted(maps.Keys(questions)) {
		if !a.Can(questions[name]) {
			return nil, lathe.ErrCannotAsk
		}
		f, err := form.Read(questions[name].Form.Schema)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", lathe.ErrCannotAsk, err)
		}
		if out[name], err = a.fillIn(ctx, questions[name].Form.Message, f); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (a *terminalApprover) fillIn(ctx context.Context, message string, f *form.Form) (lathe.Answer, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s\n", a.screen.paint("bold", "a tool asks you something; do not answer with passwords"))
	for line := range strings.SplitSeq(printable(message), "\n") {
		fmt.Fprintf(&b, "  | %s\n", line)
	}
	fmt.Fprintf(&b, "[y] answer, %s   [n] say no   [Enter] say nothing: ", count(len(f.Fields), "field"))
	word, err := a.second(ctx, b.String())
	if err != nil {
		a.screen.ask("\n")
		return lathe.Answer{}, err
	}
	switch strings.ToLower(word) {
	case "y", "yes":
	case "n", "no":
		return lathe.Answer{Refused: "decline"}, nil
	default:
		return lathe.Answer{Refused: "cancel"}, nil
	}
	values := map[string]json.RawMessage{}
	for i := range f.Fields {
		v, ok, err := a.field(ctx, &f.Fields[i])
		if err != nil {
			return lathe.Answer{}, err
		}
		if !ok {
			return lathe.Answer{Refused: "cancel"}, nil
		}
		if v != nil {
			values[f.Fields[i].Name] = v
		}
	}
	content, err := json.Marshal(values)
	return lathe.Answer{Form: content}, err
}

// field reads one field until its value fits; ok is false where it never does. An empty line is the
// default, or leaves out what need not be there.
func (a *terminalApprover) field(ctx context.Context, f *form.Field) (v json.RawMessage, ok bool, err error) {
	question := describe(f)
	for range maxTries {
		line, err := a.second(ctx, question)
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

// describe is what a person sees of a field. All of it but the hints in brackets is the server's.
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
