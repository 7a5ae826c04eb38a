package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// groupKey is the annotation with the heading under which the help text lists a flag.
const groupKey = "lathe_group"

// group adds the flags that add defines to a command, under their own heading.
func group(cmd *cobra.Command, heading string, add func(*pflag.FlagSet)) {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	add(fs)
	fs.VisitAll(func(f *pflag.Flag) {
		f.Annotations = map[string][]string{groupKey: {heading}}
	})
	fs.SortFlags = false
	cmd.Flags().AddFlagSet(fs)
}

// printUsage writes the part of the help text after the description: usage, examples, subcommands, and flags by group in the order of
// definition.
func printUsage(cmd *cobra.Command) error {
	w := cmd.OutOrStdout()
	use := cmd.UseLine()
	if cmd.HasAvailableSubCommands() {
		placeholder := cmd.CommandPath() + " COMMAND"
		if worksItself(cmd) {
			placeholder = use + "\n  " + placeholder
		}
		use = placeholder
	}
	fmt.Fprintf(w, "Usage:\n  %s\n", use)
	if cmd.HasExample() {
		fmt.Fprintf(w, "\nExamples:\n%s\n", cmd.Example)
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprint(w, "\nCommands:\n")
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				fmt.Fprintf(w, "  %-*s  %s\n", cmd.NamePadding(), c.Name(), c.Short)
			}
		}
	}
	headings, byHeading := flagsByHeading(cmd)
	for _, h := range headings {
		fmt.Fprintf(w, "\n%s\n", h)
		printFlags(w, byHeading[h])
	}
	return nil
}

// flagsHeading is the heading of flags without a group.
const flagsHeading = "Flags:"

// flagsByHeading returns the flags of a command, its own first, by heading.
func flagsByHeading(cmd *cobra.Command) (headings []string, byHeading map[string][]*pflag.Flag) {
	byHeading = map[string][]*pflag.Flag{}
	list := func(f *pflag.Flag) {
		h := flagsHeading
		if g := f.Annotations[groupKey]; len(g) > 0 {
			h = g[0]
		}
		if f.Hidden {
			return
		}
		if byHeading[h] == nil {
			headings = append(headings, h)
		}
		byHeading[h] = append(byHeading[h], f)
	}
	local := cmd.LocalFlags()
	local.SortFlags = false
	local.VisitAll(list)
	cmd.InheritedFlags().VisitAll(list)
	return headings, byHeading
}

// flagForm returns a flag as it is typed, with the name of its value.
func flagForm(f *pflag.Flag) string {
	name, _ := pflag.UnquoteUsage(f)
	form := "    --" + f.Name
	if f.Shorthand != "" {
		form = "-" + f.Shorthand + ", --" + f.Name
	}
	switch s, isSetting := f.Value.(*settingValue); {
	case isSetting && s.switches():
		form += "=" + s.shown()
	case isSetting:
		form += " " + s.shown()
	case name != "":
		form += " " + name
	}
	return form
}

// helpWidth is the width in characters at which the texts of flags are wrapped. A flag longer than maxFlagWidth has its own line.
const (
	helpWidth    = 110
	maxFlagWidth = 44
)

func printFlags(w io.Writer, flags []*pflag.Flag) {
	left := make([]string, len(flags))
	width := 0
	for i, f := range flags {
		left[i] = flagForm(f)
		if len(left[i]) <= maxFlagWidth {
			width = max(width, len(left[i]))
		}
	}
	for i, f := range flags {
		_, usage := pflag.UnquoteUsage(f)
		form := left[i]
		if len(form) > width {
			fmt.Fprintf(w, "  %s\n", form)
			form = ""
		}
		for _, line := range breakText(usage, helpWidth-width-4) {
			fmt.Fprintf(w, "  %-*s  %s\n", width, form, line)
			form = "" // beside the first line only
		}
	}
}

// breakText wraps text at blanks into lines of at most width bytes. A longer word has its own line.
func breakText(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
