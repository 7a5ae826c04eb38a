package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/wire"
)

// Formats of a grammar in addition to those of servers.
const (
	formGBNF     = "gbnf"
	formXGrammar = "xgrammar"
)

func grammarForms() []string {
	return append([]string{formGBNF, formXGrammar}, dialect.ConstraintServers()...)
}

// printGrammar writes the grammar, the structural tag or the request members that constrain a model to calls of the tools.
func (f *parseFlags) printGrammar(cmd *cobra.Command) error {
	switch {
	case f.Dialect != "" || f.Batch || f.Cut != 0:
		return usageError("--grammar reads no text: leave out --dialect, --batch and --cut")
	case f.Tools == "":
		return usageError("--grammar wants --tools: a file with the tools that the model is offered")
	case !slices.Contains(grammarForms(), f.Form):
		return usageError("--form wants one of %s", strings.Join(grammarForms(), ", "))
	}
	opts := dialect.ConstraintOptions{SingleCall: f.Single}
	switch name, isFunction := strings.CutPrefix(f.Choice, "function:"); {
	case isFunction && name != "":
		opts.Choice = lathe.ToolChoice{Mode: lathe.ChoiceFunction, Name: name}
	case f.Choice == lathe.ChoiceAuto || f.Choice == lathe.ChoiceRequired:
		opts.Choice = lathe.ToolChoice{Mode: f.Choice}
	default:
		return usageError("--tool-choice wants auto, required, or function:NAME")
	}
	d, err := app.LookupDialect(f.Grammar)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	if opts.Tools, err = readToolsFile(f.Tools); err != nil {
		return usageError("--tools: %w", err)
	}
	c, err := d.Constrain(&opts)
	if err != nil {
		return usageError("%s", app.Cause(err))
	}
	for _, path := range c.Loosened {
		cmd.PrintErrln("loosened: " + printable(path))
	}
	var out []byte
	switch f.Form {
	case formGBNF:
		out = []byte(c.GBNF)
	case formXGrammar:
		if c.Tag == nil {
			return usageError("%s has no structural tag: its turns are rows of messages or begin within a block. --form gbnf has a grammar", f.Grammar)
		}
		out = append(slices.Clone(c.Tag), '\n')
	default:
		members, err := c.Members(f.Form)
		if err != nil {
			return usageError("%s", app.Cause(err))
		}
		out = wire.JSON("{").Members(members, nil).Lit("}\n")
	}
	_, err = cmd.OutOrStdout().Write(out)
	return err
}
