package main

import (
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// helpTexts returns the help of a command and of those below it.
func helpTexts(t *testing.T, c *cobra.Command) string {
	t.Helper()
	var b strings.Builder
	c.Root().SetOut(&b)
	if err := c.Help(); err != nil {
		t.Fatalf("%s: %v", c.CommandPath(), err)
	}
	for _, sub := range c.Commands() {
		b.WriteString(helpTexts(t, sub))
	}
	return b.String()
}

// A command that is made alone is the one that is made among all.
func TestCommandMadeAloneIsTheOneOfAll(t *testing.T) {
	t.Parallel()
	all := rootCommand(strings.NewReader(""), io.Discard, io.Discard, nil)
	named := map[string]bool{"help": true, "completion": true}
	for _, top := range topCommands() {
		named[top.name] = true
		alone := commandOf(strings.NewReader(""), io.Discard, io.Discard, []string{top.name})
		if list := alone.Commands(); len(list) != 1 || list[0].Name() != top.name {
			t.Errorf("%s: the root has %d commands", top.name, len(list))
			continue
		}
		whole, _, err := all.Find([]string{top.name})
		if err != nil || whole.Name() != top.name {
			t.Errorf("%s: found %s, %v", top.name, whole.Name(), err)
			continue
		}
		if got, want := helpTexts(t, alone.Commands()[0]), helpTexts(t, whole); got != want {
			t.Errorf("%s: made alone its help is\n%s\nand among all\n%s", top.name, got, want)
		}
	}
	for _, c := range all.Commands() {
		if !named[c.Name()] {
			t.Errorf("%s is a command that topCommands does not list", c.Name())
		}
	}
}

// All commands are made if the first argument is not one of them, so that errors and completion name each.
func TestAllCommandsAreMadeWithoutTheNameOfOne(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"help"}, {"--config", "x", "version"}, {"nothing"}, {cobra.ShellCompRequestCmd, "ru"}} {
		if n := len(commandOf(strings.NewReader(""), io.Discard, io.Discard, args).Commands()); n < len(topCommands()) {
			t.Errorf("%q: %d commands", args, n)
		}
	}
}
