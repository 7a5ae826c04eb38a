package main

import (
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var (
	inlineCode = regexp.MustCompile("`(lathe [^`\n]+)`")
	flagName   = regexp.MustCompile(`^--([a-z][a-z-]*)`)
	plainWord  = regexp.MustCompile(`^[a-z]+$`)
)

// withArgument are the commands that have both commands and an argument.
var withArgument = map[string]bool{"eval": true, "doctor": true}

// Each command of the program that the text of a page names exists, with its flags. The commands of code blocks are executed.
func TestPagesNameCommandsThatExist(t *testing.T) {
	t.Parallel()
	root := rootCommand(strings.NewReader(""), io.Discard, io.Discard, nil)
	checked := 0
	for name, text := range documents(t) {
		for _, m := range inlineCode.FindAllStringSubmatch(text, -1) {
			words := strings.Fields(m[1])[1:]
			at := root
			for len(words) > 0 {
				sub := subcommand(at, words[0])
				if sub == nil {
					break
				}
				at, words = sub, words[1:]
			}
			if len(words) > 0 && at.HasSubCommands() && !withArgument[at.Name()] && plainWord.MatchString(words[0]) && words[0] != "help" {
				t.Errorf("%s: `%s`: %s has no such command", name, m[1], at.CommandPath())
			}
			for _, w := range words {
				f := flagName.FindStringSubmatch(w)
				if f != nil && at.Flags().Lookup(f[1]) == nil && at.InheritedFlags().Lookup(f[1]) == nil && f[1] != "help" && f[1] != "version" {
					t.Errorf("%s: `%s`: %s has no flag --%s", name, m[1], at.CommandPath(), f[1])
				}
			}
			checked++
		}
	}
	if checked < 150 {
		t.Errorf("%d commands: the search is broken", checked)
	}
	t.Logf("%d commands", checked)
}

func subcommand(c *cobra.Command, name string) *cobra.Command {
	for _, sub := range c.Commands() {
		if sub.Name() == name || sub.HasAlias(name) {
			return sub
		}
	}
	return nil
}
